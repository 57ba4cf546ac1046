"""The file in which a person describes an experiment: its shape, and reading it with line numbers.

At the top level stands what all variants have in common, in the words of `factors` (`clients`,
`pg`, `set.shared_buffers`); `[factors]` gives words several levels, `[[variants]]` chooses
combinations. `docs/experiments.md` describes it for people. What the words mean together is
`design`'s to say; here a file is only held to its shape, and told all that is wrong with it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    field_validator,
)

from pgdyno.contract import Noun
from pgdyno.errors import InvalidInput, Problems, nearest_hint
from pgdyno.experiment.factor_words import WORDS
from pgdyno.experiment.factors import FAMILIES, check_word
from pgdyno.experiment.levels import Level, text_of
from pgdyno.experiment.responses import METRICS
from pgdyno.experiment.toml_lines import KeyPath, key_lines
from pgdyno.experiment.toml_shape import line_of, not_toml, place_of, spelled, without
from pgdyno.model import ResetMethod

HINT: Final = "docs/experiments.md describes the file"
"""What helps with every problem of a file."""
_FAMILY_PATTERN = f"^({'|'.join(FAMILIES)}):.+$"

_LEVEL_SCHEMA: Final = {"type": ["boolean", "integer", "number", "string"]}
_LEVELS_SCHEMA: Final = {"type": "array", "minItems": 1, "items": _LEVEL_SCHEMA}
_FACTORS_SCHEMA: Final = {
    "type": "object",
    "properties": {
        each: {"type": "object", "additionalProperties": {"anyOf": [_LEVELS_SCHEMA, {}]}}
        for each in FAMILIES
    },
    "additionalProperties": _LEVELS_SCHEMA,
}
LevelField = Annotated[Level | None, WithJsonSchema(_LEVEL_SCHEMA)]

if TYPE_CHECKING:

    class _Words(Noun):
        """The plain words, each with a level or none."""

else:
    _Words = create_model(
        "_Words",
        __base__=Noun,
        **{
            name: (LevelField, Field(default=None, description=f"{word.about}: {word.example}"))
            for name, word in WORDS.items()
        },
    )


def _close(schema: dict[str, Any]) -> None:
    """Beside its keys a table takes the families' words (`"set:NAME"`), and nothing else."""
    schema["additionalProperties"] = False
    schema["patternProperties"] = {_FAMILY_PATTERN: _LEVEL_SCHEMA}


class Combination(_Words):
    """One of `[[variants]]`: a name, and what it has that the others may not have."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_close)

    name: str | None = Field(default=None, description="default: from its levels")
    set: dict[str, Any] = Field(default={}, description="server settings of a private server")
    param: dict[str, Any] = Field(default={}, description="parameters of the workload")
    mix: dict[str, Any] = Field(default={}, description="transaction type → weight")


class ResponseEntry(Noun):
    """What the experiment judges."""

    metric: str = Field(description="for example throughput_per_s, p99_us")
    direction: Literal["higher", "lower"] | None = Field(
        default=None, description="which is better; default: the metric's own"
    )
    matters: LevelField = Field(default=None, description='the difference that would matter: "2 %"')


_RESPONSES_SCHEMA: Final = {
    "type": "array",
    "items": {
        "anyOf": [{"enum": list(METRICS)}, ResponseEntry.model_json_schema()],
    },
}


class ExperimentFile(Combination):
    """An experiment as a person writes it, in TOML."""

    question: str | None = Field(default=None, description="what it shall answer")
    factors: Annotated[dict[str, Any], WithJsonSchema(_FACTORS_SCHEMA)] = Field(
        default={}, description="word → its levels: every combination of them is a variant"
    )
    variants: list[Combination] = Field(
        default=[], description="chosen combinations, instead of factors"
    )
    baseline: str | dict[str, Any] | None = Field(
        default=None, description="what the others are compared with: a name, or levels"
    )
    replicates: int | None = Field(
        default=None, ge=1, le=10_000, description="trials of each variant; default: 10"
    )
    precision: LevelField = Field(
        default=None, description='until every effect is known to within "1 %", instead'
    )
    max_replicates: int | None = Field(
        default=None, ge=2, le=1_000, description="with precision: trials at most; default: 50"
    )
    budget: LevelField = Field(default=None, description='whole time: "2h", instead')
    matters: Annotated[Level, WithJsonSchema(_LEVEL_SCHEMA)] = Field(
        default=0.02, description="the difference that would matter"
    )
    responses: Annotated[list[ResponseEntry], WithJsonSchema(_RESPONSES_SCHEMA)] = Field(
        default=[ResponseEntry(metric="throughput_per_s")],
        description="what is judged; an empty list: nothing is compared",
    )
    aa: bool | None = Field(
        default=None,
        description="the baseline runs twice in each block, to tell noise; "
        "default: before the first comparison on a machine",
    )
    order_seed: int = Field(default=1, ge=0, lt=2**63, description="of the order within blocks")
    reset: ResetMethod = Field(default="auto", description="how a trial gets its loaded state")

    @field_validator("responses", mode="before")
    @classmethod
    def _names_alone(cls, entries: Any) -> Any:
        """`responses = ["p99_us"]` is short for an entry with nothing else."""
        if not isinstance(entries, list):
            return entries
        return [{"metric": each} if isinstance(each, str) else each for each in entries]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A level (of a factor: all its levels) as it stands in the file, and where."""

    level: Any
    path: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A file as read. `raw` is the TOML without what is wrong in it, `file` its shape.

    `problems` says what was wrong, as (place, text); whoever goes on adds more and tells them all.
    """

    path: Path
    file: ExperimentFile
    raw: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    problems: tuple[tuple[KeyPath, str], ...] = ()

    @property
    def given(self) -> frozenset[str]:
        """The keys that the person wrote at the top level."""
        return frozenset(self.raw)

    def is_wrong(self, *keys: str) -> bool:
        """Whether something was wrong below one of these keys of the top level."""
        return any(where[:1] == (key,) for where, _ in self.problems for key in keys)

    def raise_problems(self, more: Sequence[tuple[KeyPath, str]]) -> None:
        """Raise these problems and those of reading, if any: in the file's order, each once."""
        found = sorted((*self.problems, *more), key=lambda each: line_of(self.lines, each[0]))
        if found:
            told = [f"{self.path}:{line_of(self.lines, where)}: {text}" for where, text in found]
            raise Problems(list(dict.fromkeys(told)), hint=HINT)

    def words(self, *path: str | int) -> dict[str, Given]:
        """The words in a table of the file: the top level, or an element of `variants`."""
        table: Any = self.raw
        for key in path:
            table = table[key]
        return dict(flat_words(table, path, keep=lambda name: name in WORDS or ":" in name))

    def factors(self) -> dict[str, list[Given]]:
        """The factors with their levels, in the person's order."""
        return {
            name: [
                Given(level=level, path=(*given.path, number))
                for number, level in enumerate(given.level)
            ]
            for name, given in flat_words(self.raw.get("factors", {}), ("factors",))
            if given.level
        }


def read_definition(path: Path) -> Definition:
    """Read an experiment file. Raises `Problems` only where it is no TOML at all."""
    text = _text_of(path)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Problems([not_toml(path, text, str(error))]) from None
    problems = list(_unknown_words(raw))
    raw = without(raw, [where for where, _ in problems])
    try:
        file = ExperimentFile.model_validate(raw)
    except ValidationError as error:
        wrong = [(place_of(each["loc"]), _told(each)) for each in error.errors()]
        problems += [(where, f"{spelled(where)}{said}") for where, said in wrong]
        raw = without(raw, [where for where, _ in wrong])
        file = ExperimentFile.model_validate(raw)
    return Definition(
        path=path, file=file, raw=raw, lines=key_lines(text), problems=tuple(problems)
    )


def flat_words(
    table: Mapping[str, Any], path: KeyPath = (), *, keep: Any = lambda _: True
) -> Iterator[tuple[str, Given]]:
    """The words of a table as (word, level); `set.x = 1`, `set = {x = 1}` and `"set:x" = 1` alike.

    A dotted name inside a family is one name: `set.pg_stat_statements.track` is a setting's.
    """
    for name, value in table.items():
        where = (*path, name)
        if name in FAMILIES and isinstance(value, dict):
            yield from _flat_family(name, value, where)
        elif keep(name):
            yield name, Given(level=value, path=where)


def _flat_family(
    family: str, table: Mapping[str, Any], path: KeyPath
) -> Iterator[tuple[str, Given]]:
    for name, value in table.items():
        if isinstance(value, dict):
            for rest, given in _flat_family(name, value, (*path, name)):
                inner = rest.partition(":")[2]
                yield f"{family}:{name}.{inner}", given
        else:
            yield f"{family}:{name}", Given(level=value, path=(*path, name))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start + 1})") from None
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {(error.strerror or '').lower()}",
            hint="give the experiment's TOML file",
        ) from None


def _unknown_words(raw: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Keys that are neither the file's nor words, and what stands where no level can."""
    own = set(ExperimentFile.model_fields) - set(WORDS)
    yield from _unknown_in(raw, (), own)
    combinations = raw.get("variants", [])
    for number, table in enumerate(combinations if isinstance(combinations, list) else ()):
        if isinstance(table, dict):
            yield from _unknown_in(table, ("variants", number), {"name", *FAMILIES})
    factors = raw.get("factors")
    if isinstance(factors, dict):
        yield from _wrong_factors(factors)
    baseline = raw.get("baseline")
    if isinstance(baseline, dict):
        yield from _unknown_in(baseline, ("baseline",), set(FAMILIES))


def _unknown_in(
    table: Mapping[str, Any], path: KeyPath, own: set[str]
) -> Iterator[tuple[KeyPath, str]]:
    for name, given in flat_words(table, path):
        if name in own:
            continue
        try:
            check_word(name)
        except InvalidInput as error:
            families = {f"{each}.NAME" for each in FAMILIES}
            near = nearest_hint(name, own | set(WORDS) | families)
            hint = error.hint if ":" in name else near
            yield given.path, f"unknown key '{name}'; {hint}"
            continue
        if ":" in name and not isinstance(given.level, Level):
            yield given.path, f"'{name}' must be a text, a number, or true or false"


def _wrong_factors(factors: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for name, given in flat_words(factors, ("factors",)):
        try:
            check_word(name)
        except InvalidInput as error:
            yield given.path, f"{error.message}; {error.hint}"
            continue
        levels = given.level
        if not isinstance(levels, list) or not levels:
            yield given.path, f"factor '{name}' must be a list of levels, such as [1, 2]"
            continue
        for number, level in enumerate(levels):
            if not isinstance(level, Level):
                said = f"factor '{name}': a level is a text, a number, or true or false"
                yield (*given.path, number), said
            elif level in levels[:number]:
                said = f"factor '{name}' has the level {text_of(level)} twice"
                yield (*given.path, number), said


def _told(error: Any) -> str:
    """One of pydantic's errors in our words."""
    match error["type"]:
        case "extra_forbidden":
            near = nearest_hint(str(error["loc"][-1]), ResponseEntry.model_fields)
            return f"unknown key; {near}"
        case "missing":
            return "missing"
        case "dict_type" | "model_type":
            return "must be a table"
        case "list_type" | "tuple_type":
            return "must be a list"
        case "int_parsing" | "int_from_float":
            return "must be a whole number"
        case "bool_parsing":
            return "must be true or false"
        case "bool_type" | "int_type" | "float_type" | "string_type":
            return "must be a text, a number, or true or false"
        case _:
            message = str(error["msg"]).removeprefix("Input ")
            return message[:1].lower() + message[1:]
