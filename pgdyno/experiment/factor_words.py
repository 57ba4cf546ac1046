"""The plain words for what a trial can vary: what each changes, and how its level is read. Pure.

A word that is missing here can be named by `pgdyno run` and not by an experiment: add it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from pgdyno.errors import InvalidInput, nearest_hint
from pgdyno.experiment import levels, system_levels
from pgdyno.experiment.levels import Level
from pgdyno.expressions import Value

Part = Literal["workload", "system", "load", "variant"]
Names = Mapping[str, Value]
Read = Callable[[Level, Names], dict[str, Any]]
"""A level and what expressions may use → the fields it sets; a dict goes into the field's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word: the part of a variant that it changes, how its level is read, and an example."""

    part: Part
    read: Read
    about: str
    example: str


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


def _sessions(level: Level, _names: Names) -> dict[str, Any]:
    rate_per_s, transactions = levels.sessions(level)
    return {"sessions": {"rate_per_s": rate_per_s, "transactions": transactions}}


def _reconnect(level: Level, _names: Names) -> dict[str, Any]:
    return {"reconnect": {} if levels.truth(level) else None}


def _standbys(level: Level, _names: Names) -> dict[str, Any]:
    found, quorum = system_levels.standbys(level)
    return {"standbys": found, "quorum": quorum}


def _one_of(*known: str) -> Callable[[Level, Names], str]:
    """Reads one of a few names."""

    def read(level: Level, _names: Names) -> str:
        if level not in known:
            raise InvalidInput(f"'{level}' is not known", hint=nearest_hint(str(level), known))
        return str(level).replace("-", "_")

    return read


def _inside(field: str, name: str, read: Callable[[Level, Names], Any]) -> Read:
    """Reads a level into one field of a part's part."""
    return lambda level, names: {field: {name: read(level, names)}}


_WORKLOAD, _SYSTEM, _LOAD, _VARIANT = (
    partial(Word, part=part) for part in ("workload", "system", "load", "variant")
)
_LIMIT_S = levels.seconds_above_zero


def _system(level: Level, _names: Names) -> dict[str, Any]:
    """A file cannot be read here: whoever may read one takes `system_file.with_word`."""
    raise InvalidInput(f"'{levels.text(level)}' is a file", hint="a system file is read elsewhere")


def _profile(level: Level, _names: Names) -> dict[str, Any]:
    """What is in a profile is not known here: `system_file.with_word` knows."""
    raise InvalidInput(f"'{levels.text(level)}' is a profile", hint="a profile is read elsewhere")


WORDS: Final[Mapping[str, Word]] = {
    "workload": _WORKLOAD(
        read=_field("name", _text),
        about="a name of `pgdyno workloads`, a folder or a .sql file",
        example='"tpcb"',
    ),
    "system": _SYSTEM(
        read=_system,
        about="the system as a file, beside this one; other words come on top",
        example='"pair.toml"',
    ),
    "pg": _SYSTEM(
        read=_field("pg", lambda level, _: str(level)),
        about="PostgreSQL to start: version, `build:NAME`, `git:REF` or path",
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
    "standbys": _SYSTEM(
        read=_standbys,
        about="standbys that stream from the private server",
        example='2, "2 synchronous" or "3 any 1 synchronous with slots"',
    ),
    "pooler": _SYSTEM(
        read=_field("pooler", lambda level, _: system_levels.pooler(level)),
        about="what stands in front of the private server: none, pgpool, pgbouncer or haproxy",
        example='"pgbouncer transaction"',
    ),
    "profile": _SYSTEM(
        read=_profile,
        about="a published configuration (docs/servers.md); single settings win over it",
        example='"osc-2014"',
    ),
    "checksums": _SYSTEM(
        read=_inside("initdb", "checksums", _truth),
        about="whether the private server's pages have checksums",
        example="true",
    ),
    "wal_segment_size": _SYSTEM(
        read=_inside("initdb", "wal_segment_bytes", lambda level, _: levels.size_bytes(level)),
        about="size of its WAL segments, from 11 on",
        example='"64MB"',
    ),
    "locale": _SYSTEM(
        read=_inside("initdb", "locale", _text),
        about="locale of its databases; default: C",
        example='"en_US.UTF-8"',
    ),
    "encoding": _SYSTEM(
        read=_inside("initdb", "encoding", _text), about="their encoding", example='"UTF8"'
    ),
    "wal_folder": _SYSTEM(
        read=_inside("storage", "wal", _text), about="where its WAL lies", example='"/srv/wal"'
    ),
    "temporary_folder": _SYSTEM(
        read=_inside("storage", "temporary", _text),
        about="where its temporary files lie",
        example='"/srv/fast"',
    ),
    "cpu_limit": _SYSTEM(
        read=_inside("limits", "cpu_share", lambda level, _: levels.cpu_time(level)),
        about="CPU time the private server gets at most",
        example="0.5",
    ),
    "memory_limit": _SYSTEM(
        read=_inside("limits", "memory_bytes", lambda level, _: levels.size_bytes(level)),
        about="memory it gets at most, with its page cache",
        example='"2GB"',
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
        read=_field("protocol", _one_of("simple", "extended", "prepared")),
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
    "sessions": _LOAD(
        read=_sessions,
        about="partly open: sessions arrive at a rate, each of some transactions",
        example='"50/s of 10"',
    ),
    "arrivals": _LOAD(
        read=_field("arrival", _one_of("poisson", "constant")),
        about="how arrivals are spaced: poisson or constant",
        example='"constant"',
    ),
    "schedule": _LOAD(
        read=_field("schedule", _one_of("shared", "per-client")),
        about="open loop: who takes an arrival, whoever is free or each client its own",
        example='"per-client"',
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
    "think_times": _LOAD(
        read=_field("think_time", _one_of("constant", "exponential")),
        about="how those pauses vary: constant or exponential",
        example='"exponential"',
    ),
    "max_tries": _LOAD(
        read=_inside("retry", "max_tries", _count),
        about="tries of a transaction that fails by serialization or deadlock; 0: no limit",
        example="3",
    ),
    "retry_time": _LOAD(
        read=_inside("retry", "max_time_s", _LIMIT_S),
        about="no try begins later than this after the transaction's start",
        example='"2s"',
    ),
    "reconnect": _LOAD(
        read=_reconnect, about="clients that lose their connection get another", example="true"
    ),
    "reconnect_for": _LOAD(
        read=_inside("reconnect", "give_up_s", _LIMIT_S),
        about="the same, and a client without a connection for this long gives up",
        example='"60s"',
    ),
    "statement_timeout": _LOAD(
        read=_field("statement_timeout_s", _LIMIT_S),
        about="the engine cancels a request that takes longer",
        example='"500ms"',
    ),
    "min_clients": _LOAD(
        read=_field("min_clients", _positive),
        about="begin with so many, even if the server refuses others",
        example="8",
    ),
    "transaction_log": _LOAD(
        read=_inside("transaction_log", "rate", lambda level, _: levels.share(level)),
        about="write this share of transactions to transactions.log.jsonl",
        example='"1 %"',
    ),
    "history": _LOAD(
        read=_field("history", _truth),
        about="write begin and end of every try to history.jsonl",
        example="true",
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
