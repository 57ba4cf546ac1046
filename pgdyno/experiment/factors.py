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

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import ValidationError

from pgdyno.errors import InvalidInput, nearest_hint
from pgdyno.experiment import levels
from pgdyno.experiment.factor_words import WORDS, Names
from pgdyno.experiment.levels import Level
from pgdyno.expressions import ExpressionError
from pgdyno.model import InitdbChoice, Limits, LoadChoice, StorageChoice, Variant

FAMILIES: Final = ("set", "param", "mix")
# What a part's part is where only one of its words is given.
_PARTS: Final[dict[str, dict[str, Any]]] = {"retry": {"max_tries": 0}}


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


def in_order(words: Iterable[str]) -> list[str]:
    """The order to set words in: a system before its parts, clients before what is told by them."""
    first = ("system", "clients")
    return sorted(words, key=lambda word: (*first, word).index(word))


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
        changed = type(part).model_validate(_merged(part.model_dump(), change))
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
            "port": system.port, "server_cpus": system.cpus, "standbys": system.standbys,
            "pooler": system.pooler, "a word of initdb": system.initdb != InitdbChoice(),
            "a folder": system.storage != StorageChoice(), "a limit": system.limits != Limits(),
        }  # fmt: skip
        if words := [word for word, value in private.items() if value]:
            found.append(f"{', '.join(words)} cannot be used with dsn: it is a server of its own")
    if system.port is not None and not system.tcp:
        found.append("port needs tcp = true: without it there is only a socket")
    return (*found, *_load_conflicts(load))


def _load_conflicts(load: LoadChoice) -> Iterator[str]:
    given = {"rate": load.rate_per_s, "stages": load.stages, "sessions": load.sessions}
    kinds = [word for word, value in given.items() if value]
    if len(kinds) > 1:
        yield f"{' and '.join(kinds)} cannot be used together: each says what arrives"
    if load.stages and load.steady_warmup:
        yield "a warm-up until steady state cannot come before stages, which begin after it"
    if (load.stages or load.rate_per_s) and load.think_time_s:
        yield "rate or stages and think_time cannot be used together"
    if load.think_time != "constant" and not load.think_time_s:
        yield "think_times needs think_time: it says how that pause varies"
    usual = LoadChoice()
    arriving = {
        "arrivals": load.arrival != usual.arrival,
        "schedule": load.schedule != usual.schedule,
        "backlog_limit": load.backlog_limit_s is not None,
    }
    for word in [word for word, is_given in arriving.items() if is_given and not kinds]:
        yield f"{word} needs rate, stages or sessions: in a closed loop nothing arrives"
    if load.schedule == "per_client" and load.sessions:
        yield "schedule per-client cannot be used with sessions"
    if load.min_clients is not None and load.min_clients > load.clients:
        yield f"min_clients {load.min_clients} is more than {load.clients} clients"


def short_name(factor: str) -> str:
    """A factor without its family: `synchronous_commit` for `set:synchronous_commit`."""
    return factor.partition(":")[2] or factor


def _merged(fields: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Fields with a change; what is a dict changes only the keys that it has."""
    whole = dict(fields)
    for name, value in change.items():
        before = whole.get(name) or _PARTS.get(name, {})
        whole[name] = before | value if isinstance(value, dict) else value
    return whole


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
