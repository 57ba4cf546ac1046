"""Words for what a trial can vary, and the change that each makes to a variant. Pure.

The words are those of `pgdyno run`: `clients`, `rate`, `pg` …, and three families with a name
behind a colon: `set:NAME` (a server setting), `param:NAME` (a parameter of the workload) and
`mix:TYPE` (the weight of a transaction type). Where a number is wanted, an expression over facts of
the host may stand (`2 * cpus`); inside a setting it stands in braces (`{memory_mb // 4}MB`).

>>> from pgdyno.model import LoadChoice, SystemChoice, Variant, WorkloadChoice
>>> plain = Variant(name="a", workload=WorkloadChoice(name="tpcb"), system=SystemChoice(),
...                 load=LoadChoice())
>>> with_level(plain, "clients", "2 * cpus", {"cpus": 8}).load.clients
16
>>> with_level(plain, "set:synchronous_commit", False, {}).system.settings
{'synchronous_commit': 'off'}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from pydantic import ValidationError

from pgdyno.errors import InvalidInput, nearest_hint
from pgdyno.experiment import levels
from pgdyno.experiment.levels import Level
from pgdyno.expressions import ExpressionError, Value
from pgdyno.model import Variant

Part = Literal["workload", "system", "load", "variant"]
Names = Mapping[str, Value]
Read = Callable[[Level, Names], dict[str, Any]]
"""A level and what expressions may use → the fields it sets."""

FAMILIES: Final = ("set", "param", "mix")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word: the part of a variant that it changes, how its level is read, and an example."""

    part: Part
    read: Read
    about: str
    example: str


def parse_assignment(text: str) -> tuple[str, str]:
    """`set:synchronous_commit=off` as word and level; `InvalidInput` where it is not one.

    >>> parse_assignment("clients=2 * cpus")
    ('clients', '2 * cpus')
    """
    name, equals, level = text.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(
            f"'{text}' is not of the form WORD=LEVEL",
            hint="for example set:synchronous_commit=off or clients=16",
        )
    check_word(name.strip())
    return name.strip(), level.strip()


def check_word(name: str) -> None:
    """Raise `InvalidInput` with the nearest for a word that names nothing."""
    family, colon, rest = name.partition(":")
    if name in WORDS or (colon and family in FAMILIES and rest):
        return
    if colon and family in FAMILIES:
        raise InvalidInput(f"'{name}' names nothing", hint=f"write {family}:NAME")
    if colon:
        hint = nearest_hint(family, FAMILIES)
        raise InvalidInput(f"'{name}' is not a factor", hint=hint)
    families = [f"{each}:NAME" for each in FAMILIES]
    dashed = name.replace("-", "_")
    hint = f"did you mean '{dashed}'?" if dashed in WORDS else _nearest(name, families)
    raise InvalidInput(f"'{name}' is not a factor", hint=hint)


def with_level(variant: Variant, name: str, level: Level, names: Names) -> Variant:
    """The variant with one word set. `names` are what expressions may use: facts of the host.

    Raises `InvalidInput` for an unknown word or a level that cannot be.
    """
    check_word(name)
    family, colon, rest = name.partition(":")
    seen = {**names, "clients": variant.load.clients}
    if colon:
        return _with_family(variant, (family, rest), level, seen)
    word = WORDS[name]
    try:
        change = word.read(level, seen)
    except ExpressionError as error:
        raise InvalidInput(error.message, hint=error.hint) from None
    except InvalidInput as error:
        hint = f"for example {word.example}"
        raise InvalidInput(f"{name}: {error.message}", hint=error.hint or hint) from None
    if word.part == "variant":
        return variant.model_copy(update=change)
    part = getattr(variant, word.part)
    try:
        changed = type(part).model_validate(part.model_dump() | change)
    except ValidationError as error:
        said = error.errors()[0]["msg"].lower()
        raise InvalidInput(f"{name}: {level!r}: {said}") from None
    return variant.model_copy(update={word.part: changed})


def conflicts(variant: Variant) -> tuple[str, ...]:
    """What cannot go together in one variant, one line each."""
    system, load = variant.system, variant.load
    found = []
    if system.dsn is not None:
        private = {
            "pg": system.pg, "set": system.settings, "data": system.data, "tcp": system.tcp,
            "port": system.port, "server_cpus": system.cpus,
        }  # fmt: skip
        if words := [word for word, value in private.items() if value]:
            found.append(f"{', '.join(words)} cannot be used with dsn: it is a server of its own")
    if system.port is not None and not system.tcp:
        found.append("port needs tcp = true: without it there is only a socket")
    scheduled = bool(load.stages) or load.rate_per_s is not None
    if load.stages and load.steady_warmup:
        found.append("a warm-up until steady state cannot come before stages, which begin after it")
    if load.stages and load.rate_per_s is not None:
        found.append("rate and stages cannot be used together: a stage has its own rate")
    if scheduled and load.think_time_s:
        found.append("rate or stages and think_time cannot be used together")
    if load.backlog_limit_s is not None and not scheduled:
        found.append("backlog_limit needs rate or stages: a closed loop has no backlog")
    return tuple(found)


def short_name(factor: str) -> str:
    """A factor without its family: `synchronous_commit` for `set:synchronous_commit`."""
    return factor.partition(":")[2] or factor


def _nearest(name: str, families: list[str]) -> str:
    known = sorted(WORDS) + families
    return nearest_hint(name, known) if name else f"there are {', '.join(known)}"


def _with_family(variant: Variant, name: tuple[str, str], level: Level, names: Names) -> Variant:
    family, rest = name
    match family:
        case "set":
            settings = variant.system.settings | {rest: levels.filled(levels.text_of(level), names)}
            system = variant.system.model_copy(update={"settings": settings})
            return variant.model_copy(update={"system": system})
        case "param":
            # Kept as written: only the workload knows what type it has (see `design`).
            parameters = variant.workload.parameters | {rest: level}
            workload = variant.workload.model_copy(update={"parameters": parameters})
        case _:
            weights = variant.workload.weights | {rest: levels.whole(level, names, least=0)}
            workload = variant.workload.model_copy(update={"weights": weights})
    return variant.model_copy(update={"workload": workload})


def _text(level: Level, _names: Names) -> str:
    return levels.text(level)


def _truth(level: Level, _names: Names) -> bool:
    return levels.truth(level)


def _cpus(level: Level, _names: Names) -> tuple[int, ...]:
    return levels.cpus(level)


def _positive(level: Level, names: Names) -> int:
    return levels.whole(level, names, least=1)


def _count(level: Level, names: Names) -> int:
    return levels.whole(level, names, least=0)


def _field(name: str, read: Callable[[Level, Names], Any]) -> Read:
    """Reads a level into one field."""
    return lambda level, names: {name: read(level, names)}


def _time(level: Level, names: Names) -> dict[str, Any]:
    length_s = levels.seconds_above_zero(level, names)
    return {"duration_s": length_s, "transactions_per_client": None}


def _transactions(level: Level, names: Names) -> dict[str, Any]:
    return {"transactions_per_client": _positive(level, names), "duration_s": None}


def _warmup(level: Level, names: Names) -> dict[str, Any]:
    most_s, steady = levels.warmup(level, names)
    return {"warmup_s": most_s, "steady_warmup": steady}


def _stages(level: Level, _names: Names) -> dict[str, Any]:
    """The stages; the measurement is as long as all of them."""
    found = levels.stages(level)
    return {"stages": found, "duration_s": sum(stage.duration_s for stage in found)}


def _protocol(level: Level, _names: Names) -> str:
    known = ("simple", "extended", "prepared")
    if level not in known:
        raise InvalidInput(f"'{level}' is not a protocol", hint=nearest_hint(str(level), known))
    return str(level)


_WORKLOAD, _SYSTEM, _LOAD, _VARIANT = (
    partial(Word, part=part) for part in ("workload", "system", "load", "variant")
)
_LIMIT_S = levels.seconds_above_zero

WORDS: Final[Mapping[str, Word]] = {
    "workload": _WORKLOAD(
        read=_field("name", _text),
        about="a name of `pgdyno workloads`, a folder or a .sql file",
        example='"tpcb"',
    ),
    "pg": _SYSTEM(
        read=_field("pg", lambda level, _: str(level)),
        about="PostgreSQL to start: version or path",
        example='"18"',
    ),
    "dsn": _SYSTEM(
        read=_field("dsn", _text),
        about="your server instead: conninfo or URI",
        example='"host=db.example dbname=bench"',
    ),
    "data": _SYSTEM(
        read=_field("data", _text),
        about="keep the private server's data in this folder",
        example='"/srv/bench"',
    ),
    "tcp": _SYSTEM(
        read=_field("tcp", _truth),
        about="private server on loopback TCP, with a password",
        example="true",
    ),
    "port": _SYSTEM(read=_field("port", _positive), about="its port, with tcp", example="5433"),
    "server_cpus": _SYSTEM(
        read=_field("cpus", _cpus), about="CPUs of the private server", example='"0-3"'
    ),
    "engine_cpus": _LOAD(
        read=_field("cpus", _cpus), about="CPUs of the load generator", example='"4-7"'
    ),
    "clients": _LOAD(
        read=_field("clients", _positive),
        about="clients, each with a connection",
        example='16 or "2 * cpus"',
    ),
    "threads": _LOAD(
        read=_field("threads", _count),
        about="threads of the load generator; 0: its own rule",
        example="2",
    ),
    "protocol": _LOAD(
        read=_field("protocol", _protocol),
        about="how statements are sent: simple, extended or prepared",
        example='"prepared"',
    ),
    "time": _LOAD(read=_time, about="length of the measurement", example='"30s"'),
    "transactions_per_client": _LOAD(
        read=_transactions,
        about="length as a number of transactions of each client, instead of a time",
        example="1000",
    ),
    "warmup": _LOAD(
        read=_warmup,
        about="before the measurement: a length, or until steady state",
        example='"10s" or "steady, at most 30s"',
    ),
    "rate": _LOAD(
        read=_field("rate_per_s", levels.rate_per_s),
        about="open loop: transactions arrive at this rate",
        example='"5000/s"',
    ),
    "stages": _LOAD(
        read=_stages,
        about="open loop at rates that change",
        example='"30s@100/s..900/s, 60s@900/s"',
    ),
    "backlog_limit": _LOAD(
        read=_field("backlog_limit_s", _LIMIT_S),
        about="open loop: what waited longer for a client is skipped",
        example='"1s"',
    ),
    "response_limit": _LOAD(
        read=_field("response_time_limit_s", _LIMIT_S),
        about="responses that take longer are late",
        example='"20ms"',
    ),
    "think_time": _LOAD(
        read=_field("think_time_s", levels.seconds),
        about="pause of a client between two transactions",
        example='"100ms"',
    ),
    "seed": _LOAD(
        read=_field("seed", _count),
        about="seed of the load's random numbers in the first block",
        example="1",
    ),
    "prewarm": _LOAD(
        read=_field("prewarm", _truth), about="bring the data into memory first", example="true"
    ),
    "before": _VARIANT(
        read=_field("before", _text),
        about="shell command before each trial, once its server runs",
        example='"psql -c checkpoint"',
    ),
}
"""Every plain word, in the order they are told in help and documents."""
