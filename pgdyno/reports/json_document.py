"""A run's result for programs: what `--json` prints; `docs/json.md` describes the names.

Units stand in the names; a value that is not known is null, never left out. Times are microseconds.
"""

from __future__ import annotations

from typing import Any

from pgdyno.contract import Counters, Series, StatementResult, TransactionTypeResult
from pgdyno.experiment.store import Run
from pgdyno.reports.documents import TrialDocuments, read_run
from pgdyno.reports.measured import Measured, measure
from pgdyno.reports.resources import host_cpus, role_cpus
from pgdyno.reports.timeline import time_axis
from pgdyno.reports.wording import headline, trouble

JSON_VERSION = 1


def as_json(run: Run) -> dict[str, Any]:
    """The document of a run: its identity and one entry a trial."""
    documents = read_run(run)
    experiment = documents.experiment
    return {
        "version": JSON_VERSION,
        "id": experiment.id,
        "name": experiment.name,
        "question": experiment.question,
        "created": experiment.created,
        "pgdyno_version": experiment.pgdyno_version,
        "tags": list(documents.tags),
        "folder": str(run.folder),
        "trials": [_trial(trial) for trial in documents.trials],
    }


def _trial(documents: TrialDocuments) -> dict[str, Any]:
    trial, measured, summary = documents.trial, measure(documents), documents.summary
    variant = documents.variant
    return {
        "number": trial.number,
        "variant": trial.variant,
        "outcome": trial.outcome,
        "reason": trial.reason,
        "headline": headline(documents, measured),
        "trouble": list(trouble(documents, measured)),
        "notices": list(trial.notices),
        "folder": str(documents.stored.folder),
        "workload": variant.workload.model_dump(mode="json") if variant else None,
        "load": variant.load.model_dump(mode="json") if variant else None,
        "server_version": _server_version(documents),
        "durability": trial.durability.model_dump(mode="json") if trial.durability else None,
        "measurement": _measurement(measured) if measured else None,
        "transaction_types": [_type(one) for one in summary.transaction_types] if summary else [],
        "statements": [_statement(one) for one in summary.statements] if summary else [],
        "errors": [one.model_dump(mode="json") for one in summary.errors] if summary else [],
        "cpu": _cpu(documents),
        "data_load": trial.load.model_dump(mode="json") if trial.load else None,
        "prewarm": trial.prewarm.model_dump(mode="json") if trial.prewarm else None,
        "generator": trial.generator.model_dump(mode="json") if trial.generator else None,
        "checks": [one.model_dump(mode="json") for one in documents.checks],
        "missing": [{"what": one.what, "why": one.why} for one in documents.missing],
    }


def _server_version(documents: TrialDocuments) -> str | None:
    if documents.settings is not None:
        return documents.settings.server_version
    return documents.summary.server_version if documents.summary else None


def _measurement(measured: Measured) -> dict[str, Any]:
    cost, fair, law = measured.engine_cost, measured.fairness, measured.littles_law
    return {
        "partial": measured.partial,
        "measured_s": measured.measured_s,
        "throughput_per_s": measured.throughput_per_s,
        "throughput_with_connect_per_s": measured.throughput_with_connect_per_s,
        "server_commits": measured.server_commits,
        "server_commits_per_s": measured.server_commits_per_s,
        "counters": _counters(measured.counters),
        "response_time": _times(measured.response),
        "service_time": _times(measured.service),
        "schedule_lag": _times(measured.lag),
        "engine_cpu_user_s": cost.cpu_user_s if cost else None,
        "engine_cpu_sys_s": cost.cpu_sys_s if cost else None,
        "engine_cpu_per_transaction_us": cost.cpu_per_transaction_us if cost else None,
        "fairness_committed_stddev": fair.committed_stddev if fair else None,
        "littles_law_gap": law.gap if law else None,
    }


def _counters(counters: Counters) -> dict[str, Any]:
    return {**counters.model_dump(mode="json"), "failed_total": counters.failed.total}


def _times(series: Series | None) -> dict[str, Any] | None:
    """A series in microseconds."""
    if series is None:
        return None
    return {
        "count": series.count,
        "mean_us": series.mean_ns / 1e3,
        "stddev_us": series.stddev_ns / 1e3,
        "min_us": series.min_ns / 1e3,
        "p50_us": series.p50_ns / 1e3,
        "p90_us": series.p90_ns / 1e3,
        "p95_us": series.p95_ns / 1e3,
        "p99_us": series.p99_ns / 1e3,
        "p99_9_us": series.p99_9_ns / 1e3,
        "p99_99_us": series.p99_99_ns / 1e3,
        "max_us": series.max_ns / 1e3,
    }


def _type(result: TransactionTypeResult) -> dict[str, Any]:
    times = result.times
    return {
        "name": result.name,
        "weight": result.weight,
        "server_commits": result.server_commits,
        "counters": _counters(result.counters),
        "response_time": _times(times.response or times.service),
        "service_time": _times(times.service),
    }


def _statement(result: StatementResult) -> dict[str, Any]:
    return {
        "transaction_type": result.transaction_type,
        "number": result.number,
        "kind": result.kind,
        "text": result.text,
        "rows": result.rows,
        "errors": result.errors,
        "statement_time": _times(result.time),
    }


def _cpu(documents: TrialDocuments) -> dict[str, Any]:
    """CPU over the measurement: of hosts as mean shares, of processes as mean CPUs."""
    axis = time_axis(documents)
    if axis is None:
        return {"hosts": {}, "roles": {}}
    return {
        "hosts": {
            cpu.host: {f"{kind}_share": spread.average for kind, spread in cpu.kinds.items()}
            for cpu in host_cpus(documents, axis)
        },
        "roles": {
            role.role: {"user_cpus": role.user.average, "sys_cpus": role.sys.average}
            for role in role_cpus(documents, axis)
        },
    }
