"""Under what a stored trial was measured: what a comparison holds the two sides to.

Only what was written down: a document that is missing or damaged leaves its circumstances None.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from pgdyno.contract import Plan, Summary
from pgdyno.errors import PgdynoError
from pgdyno.experiment.readings import Age, Circumstances
from pgdyno.experiment.store import StoredTrial
from pgdyno.model import Environment, HostFacts, LoadChoice, Settings, Trial, Variant
from pgdyno.stats.ceiling import generator_share
from pgdyno.units import format_bytes, format_duration_s, format_per_s

_T = TypeVar("_T")
# Settings that say where a server is and how it logs, not how it works.
_OF_PLACE = frozenset(
    {
        *("application_name", "cluster_name", "config_file", "data_directory", "event_source"),
        *("external_pid_file", "hba_file", "ident_file", "listen_addresses", "port"),
        *("unix_socket_directories", "unix_socket_permissions", "lc_messages", "data_checksums"),
        *("shared_memory_size", "shared_memory_size_in_huge_pages", "server_encoding"),
        *("client_encoding", "log_timezone", "TimeZone"),
    }
)


def circumstances_of(
    stored: StoredTrial, variant: Variant | None, summary: Summary | None
) -> Circumstances:
    """Everything about a trial that a comparison may be refused for, or that may differ."""
    trial = stored.trial
    settings = readable(lambda: stored.settings)
    environment = readable(lambda: stored.environment)
    plan = readable(lambda: stored.plan)
    host = environment.hosts[0] if environment and environment.hosts else None
    age, durability = trial.state_age, trial.durability
    return Circumstances(
        tool_version=summary.engine.version if summary else None,
        workload=variant.workload.name if variant else None,
        data=_data(trial),
        load=_load_words(variant, trial, plan),
        settings=_settings(settings),
        levels=dict(variant.levels) if variant else {},
        server_version=_server_version(settings, summary),
        build=_build(settings, trial),
        host=_host_words(trial, host),
        kernel=host.kernel if host else None,
        durability=durability.label if durability else None,
        writes=None if durability is None else durability.durability_class != "none",
        age=Age()
        if age is None
        else Age(
            measurements=age.measurements,
            dead_share=_share(age.dead_rows, age.live_rows),
            bytes=_sum(age.heap_bytes, age.index_bytes),
        ),
        generator_share=_generator_share(trial, summary, environment),
    )


def _share(dead: int | None, live: int | None) -> float | None:
    return None if dead is None or live is None else dead / max(dead + live, 1)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _data(trial: Trial) -> dict[str, str] | None:
    """What the loaded data are made of; the server's version is told apart."""
    state = trial.state
    if state is None:
        return None
    return {
        "workload": state.workload,
        "data version": str(state.data_version),
        "block size": str(state.block_size),
        "WAL block size": str(state.wal_block_size),
        "initdb options": " ".join(state.initdb_options) or "none",
        **{name: str(value) for name, value in state.parameters.items()},
    }


def _load_words(variant: Variant | None, trial: Trial, plan: Plan | None) -> dict[str, str]:
    """How hard and how long, and what of the workload's parameters does not shape its data."""
    if variant is None:
        return {}
    shaping = trial.state.parameters if trial.state else {}
    own = {
        name: str(value)
        for name, value in variant.workload.parameters.items()
        if name not in shaping
    }
    return {**_shape_words(variant.load), **own, **_script_words(plan)}


def _shape_words(load: LoadChoice) -> dict[str, str]:
    arrivals = "closed loop"
    if load.rate_per_s is not None:
        arrivals = f"open loop at {format_per_s(load.rate_per_s)}"
    elif load.stages:
        arrivals = f"open loop in {len(load.stages)} stages"
    elif load.sessions is not None:
        rate = format_per_s(load.sessions.rate_per_s)
        arrivals = f"sessions of {load.sessions.transactions} transactions at {rate}"
    if arrivals != "closed loop":
        arrivals += f", {load.arrival}, {load.schedule.replace('_', ' ')} schedule"
    length = (
        format_duration_s(load.duration_s)
        if load.duration_s is not None
        else f"{load.transactions_per_client} transactions a client"
    )
    return {
        "clients": str(load.clients),
        "protocol": load.protocol,
        "arrivals": arrivals,
        "think time": f"{format_duration_s(load.think_time_s)} {load.think_time}",
        "tries": str(load.retry.max_tries or "no limit") if load.retry else "1",
        "reconnect": "on" if load.reconnect else "off",
        "statement timeout": format_duration_s(load.statement_timeout_s)
        if load.statement_timeout_s
        else "none",
        "length": length,
        "warm-up": ("steady, at most " if load.steady_warmup else "")
        + format_duration_s(load.warmup_s),
        "prewarm": "on" if load.prewarm else "off",
    }


def _script_words(plan: Plan | None) -> dict[str, str]:
    if plan is None:
        return {}
    scripts = [(each.name, each.weight, each.script) for each in plan.transaction_types]
    digest = hashlib.sha256(json.dumps(scripts).encode()).hexdigest()
    return {"scripts and weights": digest[:8], "threads": str(plan.threads or "by rule")}


def _settings(settings: Settings | None) -> dict[str, str] | None:
    if settings is None:
        return None
    return {
        each.name: each.value
        for each in settings.non_default
        if each.name not in _OF_PLACE and not each.name.startswith(("log_", "lc_"))
    }


def _server_version(settings: Settings | None, summary: Summary | None) -> str | None:
    if settings is not None:
        return settings.server_version
    return summary.server_version if summary else None


def _build(settings: Settings | None, trial: Trial) -> tuple[str, ...]:
    """What makes the server's build unfit for measuring."""
    found = []
    if settings is not None and settings.all.get("debug_assertions") == "on":
        found.append("assertions are compiled in")
    if any("without optimi" in notice for notice in trial.notices):
        found.append("it was compiled without optimisation")
    return tuple(found)


def _host_words(trial: Trial, host: HostFacts | None) -> str | None:
    """What the measurement ran on: hardware, and where the server was if it was elsewhere."""
    if host is None:
        return None
    words = f"{host.cpus} × {host.cpu_model or 'CPU'}, {format_bytes(host.memory_bytes)}"
    server, engine = trial.server_place, trial.placement.get("engine")
    if server is not None and engine is not None and server.host != engine.host:
        words += f", server on {server.host}"
    elif engine is not None and len(engine.cpus) != host.cpus:
        words += f", {len(engine.cpus)} CPUs allowed"
    return words


def _generator_share(
    trial: Trial, summary: Summary | None, environment: Environment | None
) -> float | None:
    """Of the generator's ceiling, or how busy it was: the larger of what is known."""
    known: list[float | None] = []
    if trial.generator is not None:
        known = [trial.generator.of_ceiling, trial.generator.busy]
    elif summary is not None and environment is not None and environment.hosts:
        # Folders of 0.1 say only what the engine itself used.
        known = [generator_share(summary, None, environment.hosts[0].cpus).busy]
    return max((share for share in known if share is not None), default=None)


def readable(read: Callable[[], _T | None]) -> _T | None:
    """What a document says; a damaged one counts as a missing one."""
    try:
        return read()
    except (PgdynoError, ValidationError, OSError, ValueError):
        return None
