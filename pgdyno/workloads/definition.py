"""What a workload folder says: the shape of `workload.toml`, and a workload as it was read.

A `Workload` still has its parameters open; `resolving.py` gives them values and renders the files.
`docs/workloads.md` describes the format for people; these classes hold files to it. Texts marked
*expression* are read by `pgdyno.expressions`, texts marked *template* are rendered by Jinja2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from pgdyno.contract import LoadSection, Noun, TransactionType
from pgdyno.errors import nearest_hint
from pgdyno.expressions import ExpressionError, parse
from pgdyno.model import ParameterValue

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
ExpressionText = Annotated[str, StringConstraints(min_length=1)]
Template = Annotated[str, StringConstraints(min_length=1)]
Affects = Literal["data", "load"]

SCHEMA_FILE = "schema.sql"
LOAD_FILE = "load.sql"
INDEXES_FILE = "indexes.sql"
FUNCTIONS_FILE = "functions.sql"
RESET_FILE = "reset.sql"

# What rules of checks may use besides parameters, `row.` and `change.` (see `judging.py`).
AFTER_LOAD_NAMES = frozenset({"reused"})
COUNT_NAMES = frozenset({"committed", "failed", "retries", "unknown", "in_flight", "skipped"})


class Parameter(Noun):
    """One parameter: its type, default and limits. Units `bytes` and `s` allow `2GB` and `30s`."""

    type: Literal["integer", "number", "choice", "boolean", "text"]
    default: ParameterValue
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    unit: str | None = None
    affects: Affects = Field(description="data: another value needs other data; load: it does not")
    about: str

    @model_validator(mode="after")
    def _fits_itself(self) -> Self:
        if (self.type == "choice") != bool(self.choices):
            raise ValueError("choices belong to type 'choice', which needs them")
        kinds: dict[str, tuple[type, ...]] = {
            "integer": (int,),
            "number": (int, float),
            "boolean": (bool,),
        }
        if not isinstance(self.default, kinds.get(self.type, (str,))) or (
            isinstance(self.default, bool) != (self.type == "boolean")
        ):
            raise ValueError(f"default {self.default!r} is not of type '{self.type}'")
        return self


class Constraint(Noun):
    """A rule between parameters; `message` is said where it does not hold."""

    rule: ExpressionText
    message: str


class FailureColumn(Noun):
    """Which result column says that a statement did not do its work (see `contract.Failure`)."""

    column: Template
    success: str
    when: ExpressionText | None = None


class TransactionDefinition(Noun):
    """One transaction type, or with `for_each = { shard = "shards" }` one for every 0…shards-1."""

    name: Template
    file: str
    weight: int | ExpressionText = 1
    when: ExpressionText | None = None
    for_each: dict[Identifier, ExpressionText] = Field(default={}, max_length=1)
    failure: FailureColumn | None = None


class TableDefinition(Noun):
    """A table that the workload makes; `unlogged` is an expression of parameters."""

    name: Template
    for_each: dict[Identifier, ExpressionText] = Field(default={}, max_length=1)
    unlogged: ExpressionText | None = None


class CheckDefinition(Noun):
    """Rules over the one row that a query in `checks/` returns."""

    name: Identifier
    file: str
    about: str
    when: ExpressionText | None = None
    unlogged: ExpressionText | None = Field(
        default=None, description="true where the rows it counts are gone after a crash"
    )
    after_load: tuple[ExpressionText, ...] = ()
    after_measurement: tuple[ExpressionText, ...] = ()


class WorkloadFile(Noun):
    """`workload.toml`. With `base`, whatever is not said here is said there."""

    description: str
    source: str
    base: str | None = None
    data_version: int = Field(default=1, ge=1)
    extensions: tuple[Identifier, ...] = ()
    expected_bytes: ExpressionText = "0"
    adopt: bool = Field(
        default=False, description="tables made by others may be used where they fit"
    )
    parameters: dict[Identifier, Parameter] = Field(default={})
    derived: dict[Identifier, ExpressionText] = Field(default={})
    constraints: tuple[Constraint, ...] = ()
    tables: tuple[TableDefinition, ...] = ()
    transaction_types: tuple[TransactionDefinition, ...] = ()
    checks: tuple[CheckDefinition, ...] = ()

    def expressions(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Every expression in the file: the key it stands at, its text, the names it may use."""
        given = frozenset(self.parameters)
        known = given
        for name, text in self.derived.items():
            yield f"derived.{name}", text, known
            known |= {name}
        for n, constraint in enumerate(self.constraints):
            yield f"constraints[{n}].rule", constraint.rule, given
        yield "expected_bytes", self.expected_bytes, known
        for n, table in enumerate(self.tables):
            yield from _repetition(f"tables[{n}]", table.for_each, known)
            yield f"tables[{n}].unlogged", table.unlogged or "false", known
        for n, kind in enumerate(self.transaction_types):
            at = f"transaction_types[{n}]"
            yield from _repetition(at, kind.for_each, known)
            yield f"{at}.weight", str(kind.weight), known | frozenset(kind.for_each)
            yield f"{at}.when", kind.when or "true", known
            yield f"{at}.failure.when", (kind.failure and kind.failure.when) or "true", known
        for n, check in enumerate(self.checks):
            yield f"checks[{n}].when", check.when or "true", known
            yield f"checks[{n}].unlogged", check.unlogged or "false", known
            for i, rule in enumerate(check.after_load):
                yield f"checks[{n}].after_load[{i}]", rule, known | AFTER_LOAD_NAMES
            for i, rule in enumerate(check.after_measurement):
                yield f"checks[{n}].after_measurement[{i}]", rule, known | COUNT_NAMES

    def expression_problems(self) -> list[str]:
        """Every expression that cannot be read or uses an unknown name, one line each."""
        problems = []
        for key, text, known in self.expressions():
            try:
                read = parse(text).names
            except ExpressionError as error:
                problems.append(f"{key}: {error.message}")
                continue
            for name in sorted(read - known):
                if not _is_measured(name, key):
                    near = nearest_hint(name, known)
                    problems.append(f"{key}: '{name}' is not known, {near}")
        return problems


def _repetition(
    at: str, for_each: dict[str, str], known: frozenset[str]
) -> Iterator[tuple[str, str, frozenset[str]]]:
    for name, text in for_each.items():
        yield f"{at}.for_each.{name}", text, known


def _is_measured(name: str, key: str) -> bool:
    """Whether only a check's query or the engine can say what a dotted name is."""
    first, dot, _ = name.partition(".")
    if not dot:
        return False
    if ".after_load" in key:
        return first == "row"
    return ".after_measurement" in key and first in {"row", "change", *COUNT_NAMES}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of a workload: `shown` is the name in messages. `plain`: never rendered."""

    shown: str
    text: str
    plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload as read, complete and valid by itself.

    `data_name` names whose data it works on: its own or its base's, so that workloads with one
    base share loaded data. `files` are keyed by their path in the folder. `open_parameters`: any
    name may be given and becomes a variable of the script (a bare `.sql` file).
    """

    name: str
    data_name: str
    definition: WorkloadFile
    files: dict[str, SourceFile]
    folder: Path | None = None
    open_parameters: bool = False

    @property
    def description(self) -> str:
        """One sentence for lists."""
        return self.definition.description

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters by name, the base's first."""
        return self.definition.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a resolved workload."""

    name: str
    unlogged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of a resolved workload: its query and the rules over the query's one row."""

    name: str
    about: str
    source: str
    query: str
    unlogged: bool
    after_load: tuple[str, ...]
    after_measurement: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedWorkload:
    """A workload whose parameters have values: everything that load, measure and check need.

    `parameters` has every value written out; `data_parameters` those that the data depend on;
    `names` what expressions see (parameters and derived numbers); `variables` what scripts see.
    """

    name: str
    data_name: str
    data_version: int
    parameters: dict[str, ParameterValue]
    data_parameters: dict[str, ParameterValue]
    names: dict[str, ParameterValue]
    variables: dict[str, str]
    extensions: tuple[str, ...]
    tables: tuple[Table, ...]
    schema_sql: str
    sections: tuple[LoadSection, ...]
    index_statements: tuple[str, ...]
    functions_sql: str
    reset_sql: str
    transaction_types: tuple[TransactionType, ...]
    checks: tuple[Check, ...]
    expected_bytes: int
    adopt: bool

    @property
    def rows(self) -> int:
        """Rows to load, over all sections."""
        return sum(section.rows for section in self.sections)

    @property
    def unlogged_tables(self) -> tuple[str, ...]:
        """Tables that are empty after a crash."""
        return tuple(table.name for table in self.tables if table.unlogged)
