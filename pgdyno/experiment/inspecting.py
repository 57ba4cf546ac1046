"""Looks at the server that a trial got: writes down what it is, refuses what could not work."""

from __future__ import annotations

import os

from pgdyno.errors import Problems
from pgdyno.experiment.context import Context
from pgdyno.experiment.measuring import EnginePid, observer_connections, observers_of
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
from pgdyno.servers.settings import understood
from pgdyno.servers.topology import primary_role


def describe(context: Context, server: Server) -> None:
    """Write down what the trial runs on, and what is wrong with the server's build."""
    context.diary.learn(placement=_placement(context, server))
    with session(server.conninfo, server.password) as asked:
        if server.data is not None:
            context.storage = durability_facts.server_storage(asked, context.host, server.data)
        context.stored.write("environment.json", environment((context.host,), context.storage))
        settings = read_settings(asked)
        flags = read_compiler_flags(asked)
    context.stored.write("settings.json", settings.model_copy(update={"compiler_flags": flags}))
    told = () if not server.private else _translated(context, server)
    for concern in (*told, *build_concerns(settings.all.get("debug_assertions"), flags)):
        if concern not in context.diary.trial.notices:
            context.diary.notice(concern)


def _translated(context: Context, server: Server) -> tuple[str, ...]:
    """What became of settings in the words of another version."""
    asked = context.variant.system.settings
    return understood(asked, server.version_num, context.host).notices


def refuse_unfit(context: Context, server: Server, *, data_bytes: int) -> None:
    """Raise `Problems` for what would fail later: connections, and room for `data_bytes`."""
    observers = observers_of(alone(server), context.host, EnginePid())
    needed = context.variant.load.clients + observer_connections(observers)
    needed += len(primary_observers("", None)) if context.variant.system.standbys else 0
    limits = preflight.gather(server.conninfo, server.password, private=server.private)
    problems = preflight.check_connections(needed, limits)
    if server.data is not None:
        # What lies there already is either used again or replaced.
        with session(server.conninfo, server.password) as asked:
            there_bytes = read_sizes(asked).database_bytes_before
        room_bytes = preflight.free_bytes(server.data) + there_bytes
        problems += preflight.check_disk(data_bytes, room_bytes)
    if problems:
        raise Problems(problems)


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
