"""Looks at the server that a trial got: writes down what it is, refuses what could not work."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.errors import Problems
from pgdyno.experiment.context import Context
from pgdyno.experiment.measuring import EnginePid, observer_connections, observers_of
from pgdyno.experiment.progress import Step
from pgdyno.experiment.storage_figures import with_figures
from pgdyno.model import Placement
from pgdyno.observers import durability_facts
from pgdyno.observers.environment import environment
from pgdyno.observers.replication import primary_observers
from pgdyno.observers.server_build import build_concerns, read_compiler_flags
from pgdyno.observers.server_settings import read_settings
from pgdyno.observers.session import session
from pgdyno.observers.sizes import read_sizes
from pgdyno.servers import preflight
from pgdyno.servers.base import Server, alone
from pgdyno.servers.cache import made_as
from pgdyno.servers.settings import understood
from pgdyno.servers.topology import primary_role
from pgdyno.units import parse_bytes


def describe(context: Context, server: Server) -> None:
    """Write down what the trial runs on, and what is wrong with the server's build."""
    context.diary.learn(placement=_placement(context, server))
    with session(server.conninfo, server.password) as asked:
        if server.data is not None:
            context.storage = durability_facts.server_storage(asked, context.host, server.data)
        found = environment((context.host,), context.storage)
        if server.private and context.variant.system.storage.measure:
            context.diary.progress.step(Step(text="measuring flushes and the clock"))
            found = with_figures(found, server, context.host)
        context.stored.write("environment.json", found)
        settings = read_settings(asked)
        flags = read_compiler_flags(asked)
    build = {"compiler_flags": flags, "build": made_as(server.bin_dir)}
    context.stored.write("settings.json", settings.model_copy(update=build))
    told = () if not server.private else _translated(context, server)
    for concern in (
        *told,
        *_shared_cpus(context),
        *build_concerns(settings.all.get("debug_assertions"), flags),
    ):
        if concern not in context.diary.trial.notices:
            context.diary.notice(concern)


def _translated(context: Context, server: Server) -> tuple[str, ...]:
    """What became of settings in the words of another version."""
    asked = context.variant.system.settings
    return understood(asked, server.version_num, context.host).notices


def _shared_cpus(context: Context) -> list[str]:
    """Roles that were pinned to CPUs of the load generator's."""
    system, engine = context.variant.system, context.variant.load.cpus
    pinned = {each.name: each.cpus for each in system.standbys if each.cpus}
    pinned |= {primary_role(system): system.cpus} if system.cpus else {}
    if not engine or not pinned:
        return []
    return preflight.shared_cpus({**pinned, "engine": engine}, ())


def refuse_unfit(context: Context, server: Server, *, data_bytes: int) -> None:
    """Raise `Problems` for what would fail later: connections, and room for `data_bytes`."""
    observers = observers_of(alone(server), context.host, EnginePid())
    needed = context.sessions or context.variant.load.clients
    needed += observer_connections(observers)
    needed += len(primary_observers("", None)) if context.variant.system.standbys else 0
    limits = preflight.gather(server.conninfo, server.password, private=server.private)
    problems = preflight.check_connections(needed, limits)
    if server.private:
        problems += _memory_problems(context)
    if server.data is not None:
        # What lies there already is either used again or replaced.
        with session(server.conninfo, server.password) as asked:
            there_bytes = read_sizes(asked).database_bytes_before
        room_bytes = preflight.free_bytes(_place_of_tables(context, server.data)) + there_bytes
        problems += preflight.check_disk(data_bytes, room_bytes)
    if problems:
        raise Problems(problems)


def _place_of_tables(context: Context, data: Path) -> Path:
    """Where new tables go: the data folder, or the person's tablespace."""
    system = context.variant.system
    named = system.settings.get("default_tablespace", "")
    return Path(system.storage.tablespaces.get(named, data))


def _memory_problems(context: Context) -> list[str]:
    """What is wrong with a private server's shared buffers and the memory that it may use."""
    settings, environment = context.stored.settings, context.stored.environment
    if settings is None or environment is None:
        return []
    memory_bytes = environment.hosts[0].memory_bytes
    most_bytes = context.variant.system.limits.memory_bytes or memory_bytes
    buffers_bytes = parse_bytes(settings.all["shared_buffers"])
    return preflight.check_memory(buffers_bytes, min(most_bytes, memory_bytes))


def _placement(context: Context, server: Server) -> dict[str, Placement]:
    """Hosts and CPUs of the roles."""
    host = context.host.name
    ours = tuple(sorted(os.sched_getaffinity(0)))
    choice = context.variant
    roles = {
        "engine": Placement(host=host, cpus=choice.load.cpus or ours),
        "observers": Placement(host=host, cpus=ours),
    }
    role = primary_role(choice.system)
    if server.host_name == host:
        roles[role] = Placement(host=host, cpus=choice.system.cpus or ours)
    else:
        roles[role] = Placement(host=server.host_name, cpus=())
    return roles
