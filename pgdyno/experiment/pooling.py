"""Holds every variant's load against its pooler, before the first trial of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.errors import InvalidInput, Problems
from pgdyno.hosts.base import Host
from pgdyno.model import Experiment, Variant
from pgdyno.servers import orphans
from pgdyno.servers.poolers.fitness import Demand, Fit, fit
from pgdyno.servers.poolers.judging import Judged, judge
from pgdyno.servers.topology import primary_role
from pgdyno.workloads.definition import ResolvedWorkload

_MAX_CONNECTIONS = 100
"""PostgreSQL's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """What a variant's trials are told, and how many connections of a server its clients take."""

    notices: tuple[str, ...] = ()
    sessions: int | None = None


def judge_poolers(
    experiment: Experiment, workloads: Mapping[str, ResolvedWorkload], host: Host
) -> dict[str, Pooling]:
    """Variant → what is known of its pooler; those without one are left out.

    Raises `Problems` with all that is wrong, `PgdynoError` where a program is missing.
    """
    known: dict[str, Judged] = {}
    found: dict[str, Pooling] = {}
    problems: list[str] = []
    several = len(experiment.variants) > 1
    for variant in experiment.variants:
        if variant.system.pooler is None or variant.system.dsn is not None:
            continue
        before = f"{variant.name}: " if several else ""
        try:
            judged = _judge(variant, host, known)
        except InvalidInput as error:
            problems += [before + line for line in str(error).splitlines()]
            continue
        fitted = _fit(variant, workloads[variant.name], judged)
        problems += [before + line for line in fitted.problems]
        found[variant.name] = Pooling(
            notices=(*judged.notices, *fitted.notices), sessions=fitted.sessions
        )
    if problems:
        raise Problems(list(dict.fromkeys(problems)))
    return found


def _judge(variant: Variant, host: Host, known: dict[str, Judged]) -> Judged:
    """Each configuration is judged once."""
    system = variant.system
    assert system.pooler is not None
    roles = [primary_role(system), *(standby.name for standby in system.standbys)]
    key = f"{system.pooler.model_dump_json()} {roles}"
    if key not in known:
        known[key] = judge(system.pooler, roles, host, orphans.Ledger())
    return known[key]


def _fit(variant: Variant, workload: ResolvedWorkload, judged: Judged) -> Fit:
    system, load = variant.system, variant.load
    asked = system.settings.get("max_connections", "")
    return fit(
        judged.capacity,
        Demand(
            clients=load.clients,
            enough=load.min_clients,
            protocol=load.protocol,
            scripts={one.name: one.script for one in workload.transaction_types if one.weight > 0},
            max_connections=int(asked) if asked.isdigit() else _MAX_CONNECTIONS,
        ),
    )
