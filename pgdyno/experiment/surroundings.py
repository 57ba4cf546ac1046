"""Standbys and pooler of a trial: put around the server that has its data, waited for, warmed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.experiment.context import Context, target_of
from pgdyno.model import Placement
from pgdyno.servers.base import Server, System, alone
from pgdyno.servers.replication import await_replay
from pgdyno.servers.topology import surround
from pgdyno.units import format_counted
from pgdyno.workloads.prewarming import prewarm


@contextmanager
def surrounded(context: Context, primary: Server) -> Iterator[System]:
    """The trial's whole system; placed and ready when the context begins."""
    choice = context.variant.system
    if not choice.standbys and choice.pooler is None:
        yield alone(primary)
        return
    diary = context.diary
    made = [format_counted(len(choice.standbys), "standby")] if choice.standbys else []
    made += [choice.pooler.kind] if choice.pooler is not None else []
    diary.begin("provision", f"starting {' and '.join(made)}")
    with surround(primary, choice, context.host, notice=diary.notice) as system:
        diary.learn(placement=diary.trial.placement | _placement(context, system))
        diary.end()
        yield system


def catch_up(context: Context, system: System) -> None:
    """Wait until every standby has replayed what the load and its preparations wrote."""
    if system.standbys:
        with context.diary.phase("reset", "waiting for the standbys"):
            await_replay(system.primary, system.standbys)


def prewarm_standbys(context: Context, system: System) -> None:
    """Bring the data into the memory of every standby, as they are in the primary's."""
    if system.standbys:
        catch_up(context, system)
        with context.diary.phase("prewarm", "on the standbys"):
            for standby in system.standbys.values():
                prewarm(context.workload, target_of(standby))


def _placement(context: Context, system: System) -> dict[str, Placement]:
    """Where standbys and pooler run; the others are placed already."""
    ours = tuple(sorted(os.sched_getaffinity(0)))
    hosts = {role: server.host_name for role, server in system.standbys.items()}
    hosts |= {role: pooler.host_name for role, pooler in system.poolers.items()}
    return {
        role: Placement(host=host, cpus=system.cpus.get(role) or ours)
        for role, host in hosts.items()
    }
