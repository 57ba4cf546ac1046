"""Readings of stored trials: every response metric's value, and what it was measured under.

CPU and WAL of the server are means over the measurement, from the observers' samples that cover it,
divided by the transactions of the same time.
"""

from __future__ import annotations

from collections.abc import Collection

from pgdyno.contract import Series, Summary
from pgdyno.experiment.disturbances import disturbances_of
from pgdyno.experiment.readings import Reading, Side
from pgdyno.experiment.responses import METRICS
from pgdyno.experiment.samples import Samples
from pgdyno.experiment.store import Run, StoredTrial
from pgdyno.experiment.trial_circumstances import circumstances_of, readable
from pgdyno.model import Experiment, Trial
from pgdyno.stats.rates import growth

_JIFFY_US = 10_000
_LIMITED = {"goodput_per_s", "late_share"}
_SERVER_CPU = "server_cpu_us_per_transaction"
_WAL = "wal_bytes_per_transaction"


def sides_of(run: Run) -> tuple[Side, ...]:
    """Every variant of a run with its trials, in the order of the experiment's variants.

    A trial that did not complete and was repeated in its place is left out.
    """
    experiment = run.experiment
    readings = [_read(stored, run.id, experiment) for stored in run.trials]
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
    return _read(stored, run.id, run.experiment)


def values_of(stored: StoredTrial, names: Collection[str]) -> dict[str, float]:
    """The values of these metrics, for which no more is read than they need.

    Nothing of a trial that is not complete.
    """
    trial = stored.trial
    summary = readable(lambda: stored.summary) if trial.outcome == "completed" else None
    if summary is None or not _is_whole(summary):
        return {}
    return _values(Samples(stored=stored, summary=summary), names)


def _read(stored: StoredTrial, run: str, experiment: Experiment) -> Reading:
    trial = stored.trial
    variant = next((each for each in experiment.variants if each.name == trial.variant), None)
    summary = readable(lambda: stored.summary)
    complete = trial.outcome == "completed" and summary is not None and _is_whole(summary)
    samples = Samples(stored=stored, summary=summary) if summary is not None else None
    values = _values(samples, METRICS) if samples is not None and complete else {}
    return Reading(
        label=f"{run} trial {trial.number}",
        variant=trial.variant,
        source=str(stored.folder),
        run=run,
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
        disturbances=disturbances_of(samples) if samples is not None else (),
        circumstances=circumstances_of(stored, variant, summary),
    )


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


def _values(samples: Samples, names: Collection[str]) -> dict[str, float]:
    """Those of these metrics that this trial has a value of."""
    stored, summary = samples.stored, samples.summary
    found = {
        "throughput_per_s": summary.throughput_per_s,
        "server_commits_per_s": _per_s(summary.server_commits, summary),
        **_shares(summary),
        **_times(summary.times.response or summary.times.service),
        **_costs(samples, names),
    }
    plan = readable(lambda: stored.plan) if _LIMITED & set(names) else None
    if plan is not None and plan.response_time_limit_s is not None:
        found["goodput_per_s"] = summary.goodput_per_s
        found["late_share"] = summary.measurement.late / max(summary.measurement.committed, 1)
    if summary.times.lag is not None and summary.times.lag.count:
        found["p99_lag_us"] = summary.times.lag.p99_ns / 1e3
    return {name: value for name, value in found.items() if value is not None and name in names}


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


def _costs(samples: Samples, names: Collection[str]) -> dict[str, float | None]:
    """What a transaction took of CPUs and WAL; tables are read only for what is in `names`."""
    summary = samples.summary
    per_s = summary.throughput_per_s or 0.0
    if not per_s:
        return {}
    found: dict[str, float | None] = {}
    if _SERVER_CPU in names:
        jiffies_per_s = _server_jiffies_per_s(samples)
        found[_SERVER_CPU] = None if jiffies_per_s is None else jiffies_per_s * _JIFFY_US / per_s
    if _WAL in names:
        wal_per_s = _grown_per_s(samples.measured("wal"), "wal_position_bytes")
        found[_WAL] = None if wal_per_s is None else wal_per_s / per_s
    if (own := summary.own_cost) is not None:
        own_us = (own.cpu_user_ns + own.cpu_sys_ns) / 1e3
        found["engine_cpu_us_per_transaction"] = own_us / max(summary.measurement.committed, 1)
    return found


def _server_jiffies_per_s(samples: Samples) -> float | None:
    """CPU time of the whole system under test; None where a part of it is not known."""
    grown = [
        _grown_per_s(samples.measured("processes", role=role), name)
        for role in samples.stored.trial.system_roles or ("server",)
        for name in ("user_jiffies", "sys_jiffies")
    ]
    known = [each for each in grown if each is not None]
    return sum(known) if len(known) == len(grown) else None


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
    if name in _LIMITED:
        return "no response time limit was given"
    if name == "p99_lag_us":
        return "in a closed loop nothing is scheduled"
    return "this trial did not record it"


def _broken(stored: StoredTrial) -> tuple[str, ...]:
    checks = readable(lambda: stored.checks) or ()
    return tuple(f"{each.check} ({each.rule})" for each in checks if each.verdict == "broken")
