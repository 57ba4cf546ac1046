"""Readings of stored trials: every response metric's value, and what it was measured under.

CPU and WAL of the server are means over the measurement, from the observers' samples that cover it,
divided by the transactions of the same time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from pgdyno.contract import Plan, Series, Summary
from pgdyno.errors import PgdynoError
from pgdyno.experiment.disturbances import disturbances_of
from pgdyno.experiment.readings import Age, Circumstances, Reading, Side
from pgdyno.experiment.responses import METRICS
from pgdyno.experiment.samples import measured_rows
from pgdyno.experiment.store import Run, StoredTrial
from pgdyno.model import Environment, HostFacts, LoadChoice, Settings, Trial, Variant
from pgdyno.stats.ceiling import generator_share
from pgdyno.stats.rates import growth
from pgdyno.units import format_bytes, format_duration_s, format_per_s

_T = TypeVar("_T")
_JIFFY_US = 10_000
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


def sides_of(run: Run) -> tuple[Side, ...]:
    """Every variant of a run with its trials, in the order of the experiment's variants.

    A trial that did not complete and was repeated in its place is left out.
    """
    experiment = run.experiment
    readings = [read_trial(stored, run) for stored in run.trials]
    done = {_place(each) for each in readings if each.complete}
    kept = [each for each in readings if each.complete or _place(each) not in done]
    return tuple(
        Side(
            name=variant.name,
            readings=tuple(each for each in kept if each.variant == variant.name),
        )
        for variant in experiment.variants
    )


def _place(reading: Reading) -> tuple[str, int | None]:
    return reading.variant, reading.block


def read_trial(stored: StoredTrial, run: Run) -> Reading:
    """What a comparison knows of one stored trial; damaged documents count as missing ones."""
    trial = stored.trial
    variant = next((each for each in run.experiment.variants if each.name == trial.variant), None)
    summary = _readable(lambda: stored.summary)
    complete = trial.outcome == "completed" and summary is not None and _is_whole(summary)
    values = _values(stored, summary) if summary is not None and complete else {}
    return Reading(
        label=f"{run.id} trial {trial.number}",
        variant=trial.variant,
        source=str(stored.folder),
        run=run.id,
        number=trial.number,
        block=trial.block if trial.block is not None else trial.replicate,
        began=trial.began,
        took_s=max((each.end_s or each.begin_s for each in trial.phases), default=None),
        complete=complete,
        unfinished=trial.outcome in (None, "interrupted"),
        reason=None if complete else _why_incomplete(trial, summary),
        values=values,
        absent={name: _why_absent(name) for name in METRICS if name not in values},
        committed=summary.measurement.committed if summary else None,
        broken=_broken(stored),
        disturbances=disturbances_of(stored, summary) if summary is not None else (),
        circumstances=_circumstances(stored, variant, summary),
    )


def _readable(read: Callable[[], _T | None]) -> _T | None:
    try:
        return read()
    except (PgdynoError, ValidationError, OSError, ValueError):
        return None


def _is_whole(summary: Summary) -> bool:
    """Whether the engine did all it was told, with every client."""
    whole = summary.outcome == "completed" and bool(summary.throughput_per_s)
    return whole and summary.clients_connected >= summary.clients_asked


def _why_incomplete(trial: Trial, summary: Summary | None) -> str:
    if trial.outcome != "completed":
        how = "never came to its end" if trial.outcome is None else f"was {trial.outcome}"
        return (how.replace("was failed", "failed")) + (f": {trial.reason}" if trial.reason else "")
    if summary is None:
        return "has no readable summary.json"
    if summary.clients_connected < summary.clients_asked:
        return f"ran with {summary.clients_connected} of {summary.clients_asked} clients"
    return f"has an engine that was {summary.outcome}" if summary.outcome != "completed" else (
        "committed nothing"
    )  # fmt: skip


def _values(stored: StoredTrial, summary: Summary) -> dict[str, float]:
    """Every metric that this trial has a value of."""
    found = {
        "throughput_per_s": summary.throughput_per_s,
        "server_commits_per_s": _per_s(summary.server_commits, summary),
        **_shares(summary),
        **_times(summary.times.response or summary.times.service),
        **_costs(stored, summary),
    }
    plan = _readable(lambda: stored.plan)
    if plan is not None and plan.response_time_limit_s is not None:
        found["goodput_per_s"] = summary.goodput_per_s
        found["late_share"] = summary.measurement.late / max(summary.measurement.committed, 1)
    if summary.times.lag is not None and summary.times.lag.count:
        found["p99_lag_us"] = summary.times.lag.p99_ns / 1e3
    return {name: value for name, value in found.items() if value is not None}


def _per_s(count: int, summary: Summary) -> float | None:
    return count / summary.measured_s if summary.measured_s else None


def _shares(summary: Summary) -> dict[str, float]:
    counters = summary.measurement
    scheduled = max(counters.scheduled, 1)
    lost = counters.failed.total + counters.unknown + counters.skipped
    return {
        "failed_share": counters.failed.total / scheduled,
        "skipped_share": counters.skipped / scheduled,
        "not_committed_share": lost / scheduled,
    }


def _times(series: Series) -> dict[str, float]:
    """Times in microseconds; none where nothing was committed."""
    if not series.count:
        return {}
    return {
        "average_us": series.mean_ns / 1e3,
        "p50_us": series.p50_ns / 1e3,
        "p90_us": series.p90_ns / 1e3,
        "p95_us": series.p95_ns / 1e3,
        "p99_us": series.p99_ns / 1e3,
        "p99_9_us": series.p99_9_ns / 1e3,
        "max_us": series.max_ns / 1e3,
    }


def _costs(stored: StoredTrial, summary: Summary) -> dict[str, float | None]:
    """What a transaction took of CPUs and WAL."""
    per_s = summary.throughput_per_s or 0.0
    if not per_s:
        return {}
    server = measured_rows(stored, summary, "processes", role="server")
    wal = measured_rows(stored, summary, "wal")
    jiffies = [_grown_per_s(server, name) for name in ("user_jiffies", "sys_jiffies")]
    wal_per_s = _grown_per_s(wal, "wal_position_bytes")
    own = summary.own_cost
    own_ns = None if own is None else own.cpu_user_ns + own.cpu_sys_ns
    known = [each for each in jiffies if each is not None]
    return {
        "server_cpu_us_per_transaction": (
            sum(known) * _JIFFY_US / per_s if len(known) == len(jiffies) else None
        ),
        "engine_cpu_us_per_transaction": (
            None if own_ns is None else own_ns / 1e3 / max(summary.measurement.committed, 1)
        ),
        "wal_bytes_per_transaction": None if wal_per_s is None else wal_per_s / per_s,
    }


def _grown_per_s(rows: list[dict[str, object]], counter: str) -> float | None:
    """Mean growth of a counter from first to last sample, a second."""
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    grown = growth(_number(first.get(counter)), _number(last.get(counter)))
    length_s = (int(str(last["monotonic_ns"])) - int(str(first["monotonic_ns"]))) / 1e9
    return None if grown is None or length_s <= 0 else grown / length_s


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _why_absent(name: str) -> str:
    if name in ("goodput_per_s", "late_share"):
        return "no response time limit was given"
    if name == "p99_lag_us":
        return "in a closed loop nothing is scheduled"
    return "this trial did not record it"


def _broken(stored: StoredTrial) -> tuple[str, ...]:
    checks = _readable(lambda: stored.checks) or ()
    return tuple(f"{each.check} ({each.rule})" for each in checks if each.verdict == "broken")


def _circumstances(
    stored: StoredTrial, variant: Variant | None, summary: Summary | None
) -> Circumstances:
    trial = stored.trial
    settings = _readable(lambda: stored.settings)
    environment = _readable(lambda: stored.environment)
    plan = _readable(lambda: stored.plan)
    host = environment.hosts[0] if environment and environment.hosts else None
    age, durability = trial.state_age, trial.durability
    return Circumstances(
        tool_version=summary.engine.version if summary else None,
        workload=variant.workload.name if variant else None,
        data=_data(trial),
        load=_load_words(variant, trial, plan),
        settings=_settings(settings),
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
    server, engine = trial.placement.get("server"), trial.placement.get("engine")
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
