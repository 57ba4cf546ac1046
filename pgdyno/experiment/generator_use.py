"""How much of what the load generator can do a measurement needed, by the ceiling kept for it."""

from __future__ import annotations

import shlex

from pgdyno.calibration.store import ceiling_of, generator_of
from pgdyno.contract import Plan, Summary
from pgdyno.engine import find_engine
from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.model import GeneratorUse, ParameterValue, Variant
from pgdyno.observers.environment import host_facts
from pgdyno.servers.orphans import state_folder
from pgdyno.stats.ceiling import generator_share
from pgdyno.workloads import catalog


def generator_use(plan: Plan, summary: Summary, variant: Variant, host: Host) -> GeneratorUse:
    """The generator's shares, or the command that would make them known."""
    facts = host_facts(host)
    ceiling = ceiling_of(plan, generator_of(facts, find_engine()), state_folder())
    share = generator_share(summary, ceiling, facts.cpus)
    if ceiling is None:
        return GeneratorUse(busy=share.busy, calibrate=_command(variant))
    return GeneratorUse(
        of_ceiling=share.of_ceiling,
        busy=share.busy,
        ceiling_per_core_per_s=ceiling.per_core_per_s,
    )


def _command(variant: Variant) -> str | None:
    """`pgdyno calibrate` for this load; None: weights and CPUs of one's own are not for it."""
    load, workload = variant.load, variant.workload
    if workload.weights or load.cpus:
        return None
    words = ["pgdyno", "calibrate", workload.name, "--clients", str(load.clients)]
    if load.threads:
        words += ["--threads", str(load.threads)]
    if load.protocol != "prepared":
        words += ["--protocol", load.protocol]
    usual = _defaults(workload.name)
    for name, value in workload.parameters.items():
        if usual.get(name) != value:
            words += ["--param", f"{name}={_as_word(value)}"]
    return shlex.join(words)


def _defaults(workload: str) -> dict[str, ParameterValue]:
    """What need not be said; a workload that is no longer where it was needs everything said."""
    try:
        return {name: one.default for name, one in catalog.find(workload).parameters.items()}
    except PgdynoError:
        return {}


def _as_word(value: ParameterValue) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
