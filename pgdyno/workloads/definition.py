"""What a workload folder says: the shape of `workload.toml`, and a workload as it was read.

A `Workload` still has its parameters open; `resolving.py` gives them values and renders the files.
`docs/workloads.md` describes the format for people; these classes hold files to it. Texts marked
*expression* are read by `pgdyno.expressions`, texts marked *template* are rendered by Jinja2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from pgdyno.contract import LoadSection, Noun, TransactionType
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

    def expressions(self) -> dict[str, str]:
        """Every expression in the file, by the key it stands at."""
        found = {"expected_bytes": self.expected_bytes}
        found |= {f"derived.{name}": text for name, text in self.derived.items()}
        found |= {f"constraints[{n}].rule": each.rule for n, each in enumerate(self.constraints)}
        for n, table in enumerate(self.tables):
            found |= {f"tables[{n}].for_each.{k}": text for k, text in table.for_each.items()}
            found[f"tables[{n}].unlogged"] = table.unlogged or "false"
        for n, kind in enumerate(self.transaction_types):
            at = f"transaction_types[{n}]"
            found |= {f"{at}.for_each.{k}": text for k, text in kind.for_each.items()}
            found[f"{at}.weight"] = str(kind.weight)
            found[f"{at}.when"] = kind.when or "true"
            found[f"{at}.failure.when"] = (kind.failure and kind.failure.when) or "true"
        for n, check in enumerate(self.checks):
            at = f"checks[{n}]"
            found |= {f"{at}.after_load[{i}]": text for i, text in enumerate(check.after_load)}
            rules = enumerate(check.after_measurement)
            found |= {f"{at}.after_measurement[{i}]": text for i, text in rules}
            found[f"{at}.when"] = check.when or "true"
            found[f"{at}.unlogged"] = check.unlogged or "false"
        return found

    def expression_problems(self) -> list[str]:
        """Every expression that cannot be read, one line each."""
        problems = []
        for key, text in self.expressions().items():
            try:
                parse(text)
            except ExpressionError as error:
                problems.append(f"{key}: {error.message}")
        return problems


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
