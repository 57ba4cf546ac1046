"""What a pooler's own program says of a configuration, before anything is made of it.

Every version judges by its own rules. Programs tell one fault at a time, so what is named is left
out and the rest is judged again, until all is told.

pgpool reads its file when told to stop, and says nothing of names that it does not know: those are
not among its own texts. It also takes some values for others (`load_balance_mode = maybe` is off),
which `pgpool.differences` finds once it runs. HAProxy can judge a file. PgBouncer must be started.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pgdyno.errors import InvalidInput, PgdynoError, Problems, nearest_hint
from pgdyno.hosts.base import Command, Host
from pgdyno.model import PoolerChoice
from pgdyno.servers import limits, orphans
from pgdyno.servers.base import Pooler
from pgdyno.servers.poolers.asking import ask_once
from pgdyno.servers.poolers.base import Backend, Capacity, Fault, Plan
from pgdyno.servers.poolers.haproxy import Haproxy
from pgdyno.servers.poolers.kinds import KINDS
from pgdyno.servers.poolers.pgbouncer import Pgbouncer
from pgdyno.servers.poolers.pgpool import Pgpool
from pgdyno.servers.poolers.planning import backend_roles, settings_for
from pgdyno.servers.poolers.programs import find_program
from pgdyno.servers.poolers.running import Lodging, lodging, running
from pgdyno.servers.poolers.translation import base_name

NO_SUCH: Final = "does not exist"
_ASK_DEADLINE_S: Final = 20.0
_START_DEADLINE_S: Final = 10.0
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A configuration that its program takes: what it lets through, what became of old settings."""

    capacity: Capacity
    notices: tuple[str, ...] = ()


def judge(choice: PoolerChoice, roles: Sequence[str], host: Host, ledger: orphans.Ledger) -> Judged:
    """Find the program and let it judge; `roles` are those of the system's servers.

    Raises `Problems` with all that is wrong with the settings, `PgdynoError` where the program is
    not there. Nothing is left running.
    """
    kind = KINDS[choice.kind]
    program = find_program(kind.facts, host)
    chosen = backend_roles(choice, roles)
    translated = settings_for(choice, kind.facts, program)
    if reason := limits.why_not(choice.limits):
        raise InvalidInput(f"{choice.kind}: {reason}")
    with lodging(program, host, ledger) as place:
        plan = Plan(
            program=program,
            mode=choice.mode,
            settings=translated.settings,
            backends=tuple(_nobody(role, place.folder) for role in chosen),
            folder=place.folder,
            port=5432,
            tcp=False,
            user="postgres",
            database="postgres",
        )
        problems = list(_problems(plan, place, choice)) if translated.settings else []
    if problems:
        raise Problems(problems)
    return Judged(capacity=kind.capacity(plan), notices=translated.notices)


def _nobody(role: str, folder: Path) -> Backend:
    """A server that need not be there."""
    return Backend(role=role, host=str(folder), port=5432)


def _problems(plan: Plan, place: Lodging, choice: PoolerChoice) -> Iterator[str]:
    """A line for each fault."""
    shown = f"({choice.kind} {plan.program.shown})"
    kind = KINDS[choice.kind]
    if isinstance(kind, Pgpool):
        unknown = unknown_names(plan.program.path, plan.settings)
        for name, hint in unknown.items():
            yield f"setting '{name}' does not exist, it would be ignored; {hint} {shown}"
        plan = _without(plan, *unknown)
    while (fault := _fault(plan, place, choice)) is not None:
        value = None if fault.setting is None else plan.settings.get(fault.setting)
        if fault.setting is None or value is None:
            yield f"the configuration cannot be: {fault.said} {shown}"
            return
        how = "" if fault.said == NO_SUCH else f"cannot be '{value}': "
        yield f"setting '{fault.setting}' {how}{fault.said} {shown}"
        plan = _without(plan, fault.setting)


def _without(plan: Plan, *names: str) -> Plan:
    left = {name: value for name, value in plan.settings.items() if name not in names}
    return replace(plan, settings=left)


def _fault(plan: Plan, place: Lodging, choice: PoolerChoice) -> Fault | None:
    """What the program says first; None: it takes the configuration."""
    match KINDS[choice.kind]:
        case Pgpool() as pgpool:
            place.write(pgpool.files(plan))
            return pgpool_fault(_say(pgpool.words_to_judge(plan), place))
        case Haproxy() as haproxy:
            place.write(haproxy.files(plan))
            settings = [setting for _, setting in haproxy.lines(plan)]
            return haproxy_fault(_say(haproxy.words_to_judge(plan), place), settings)
        case Pgbouncer() as pgbouncer:
            return _pgbouncer_trial(pgbouncer, plan, place)
        case _:
            return None


def _say(words: list[str], place: Lodging) -> str:
    """What a command writes."""
    done = place.host.run(
        Command(words=words, user=place.user, folder=place.folder, environment={"LC_ALL": "C"}),
        deadline_s=_ASK_DEADLINE_S,
    )
    return done.output + done.error


def pgpool_fault(said: str) -> Fault | None:
    """What pgpool's words tell. Pure.

    >>> pgpool_fault('main pid 1: FATAL:  invalid value for parameter "max_pool": "x"').setting
    'max_pool'
    >>> pgpool_fault("main pid 1: FATAL:  could not read pid file") is None
    True
    """
    fatal = re.search(r"FATAL:\s+(.*)", said)
    if fatal is None or "could not read pid file" in fatal.group(1):
        return None
    name = re.search(r'(?:parameter|key) "(\w+)"', fatal.group(1))
    more = [part.strip() for part in re.findall(r"(?:HINT|DETAIL):\s+(.*)", said)]
    reason = "; ".join([fatal.group(1).split(" for parameter")[0].strip(), *more])
    return Fault(setting=name.group(1) if name else None, said=reason)


def haproxy_fault(said: str, settings: Sequence[str | None]) -> Fault | None:
    """What HAProxy's words tell; `settings` are those of the file's lines. Pure.

    >>> haproxy_fault("[ALERT] (1) : config : parsing [a.cfg:2] : no such thing", [None, "x"])
    Fault(setting='x', said='no such thing')
    """
    alert = re.search(r"\[ALERT\].*?\[[^\]]*:(\d+)\] : (.*)", said)
    if alert is not None:
        return Fault(setting=settings[int(alert.group(1)) - 1], said=alert.group(2).strip())
    other = re.search(r"\[ALERT\][^:]*: (.*)", said)
    return None if other is None else Fault(setting=None, said=other.group(1).strip())


def pgbouncer_fault(said: str) -> Fault:
    """What the log of a PgBouncer tells that ended when it was started. Pure.

    >>> pgbouncer_fault("ERROR unknown parameter: pgbouncer/x").setting
    'x'
    """
    unknown = re.search(r"unknown parameter: pgbouncer/(\S+)", said)
    if unknown is not None:
        return Fault(setting=unknown.group(1), said=NO_SUCH)
    invalid = re.search(r'(invalid value) "[^"]*" for parameter (\S+)', said)
    if invalid is not None:
        return Fault(setting=invalid.group(2), said=invalid.group(1))
    lines = re.findall(r"(?:ERROR|FATAL) (.*)", said) or ["it does not start"]
    return Fault(setting=None, said=lines[0])


def _pgbouncer_trial(kind: Pgbouncer, plan: Plan, place: Lodging) -> Fault | None:
    """Start it before no server; once its console answers, it has taken the configuration."""
    place.log.unlink(missing_ok=True)
    with running(kind, plan, place) as process:
        console = Pooler(
            kind="pgbouncer",
            version=plan.program.shown,
            conninfo="",
            host_name=place.host.name,
            statistics=kind.statistics(plan),
            backends=tuple(backend.role for backend in plan.backends),
        )
        end_s = time.monotonic() + _START_DEADLINE_S
        while process.status() is None and time.monotonic() < end_s:
            with contextlib.suppress(PgdynoError):
                ask_once(console)
                return None
            time.sleep(_POLL_S)
    return pgbouncer_fault(place.host.read_text(place.log) or "")


def unknown_names(program: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that pgpool would ignore, each with a hint.

    A name that it knows is one of the texts in its own file.
    """
    try:
        content = program.read_bytes()
    except OSError:  # It may be run and not read: nothing can be said.
        return {}
    texts = {one.decode() for one in re.findall(rb"\0([A-Za-z][A-Za-z_0-9]{2,60})(?=\0)", content)}
    found = {}
    for name in settings:
        if not {name, base_name(name)} & texts:
            hint = nearest_hint(name, {one for one in texts if "_" in one})
            found[name] = hint if hint.startswith("did you mean") else "its manual lists them"
    return found
