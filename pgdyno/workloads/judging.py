"""Judges the rules of a workload's checks from snapshots and counts. Pure.

A snapshot holds the one row of each check's query. Rules see `row.NAME` (now), `change.NAME` (now
minus before the measurement), the workload's parameters, `reused`, and what the engine counted over
warm-up and measurement together, since both change the data: `committed`, `failed`, `retries`,
`unknown`, `in_flight` in all, and `committed.TYPE` and so on for one transaction type.

A rule that cannot be judged is undecided with its reason, never held. A rule about unlogged tables
that a crash may have emptied is undecided rather than broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pgdyno.contract import Counters, Summary
from pgdyno.expressions import ExpressionError, Value, evaluate_truth, parse
from pgdyno.model import CheckResult
from pgdyno.workloads.definition import COUNT_NAMES, Check, ResolvedWorkload

Row = Mapping[str, Value]
_After = Literal["load", "measurement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLife:
    """When this life of the server began, as its own text; None where it does not tell us.

    `postmaster` changes at a restart, `checkpointer` also when the server recovers from a crash of
    one of its processes.
    """

    postmaster: str | None = None
    checkpointer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the queries of the checks returned at one moment: query → row, or query → why not."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    life: ServerLife = field(default_factory=ServerLife)


def counts_of(summary: Summary) -> dict[str, Counters]:
    """What the engine counted for each transaction type, warm-up and measurement together."""
    measured = {result.name: result.counters for result in summary.transaction_types}
    names = dict.fromkeys([*summary.warmup_by_type, *measured])
    return {
        name: added(summary.warmup_by_type.get(name, Counters()), measured.get(name, Counters()))
        for name in names
    }


def added(left: Counters, right: Counters) -> Counters:
    """Two partitions added up, class by class."""
    failed = {
        name: getattr(left.failed, name) + getattr(right.failed, name)
        for name in type(left.failed).model_fields
    }
    sums = {
        name: getattr(left, name) + getattr(right, name)
        for name in Counters.model_fields
        if name != "failed"
    }
    return Counters.model_validate(sums | {"failed": failed})


def judge_load(
    workload: ResolvedWorkload, now: Snapshot, *, reused: bool
) -> tuple[CheckResult, ...]:
    """The rules that must hold once data are loaded, or found and used again."""
    results = []
    for check in workload.checks:
        names = _common_names(workload) | {"reused": reused} | _prefixed("row", check, now)
        for rule in check.after_load:
            results.append(_judged(check, rule, "load", _Evidence(names=names, now=now)))
    return tuple(results)


def judge_measurement(
    workload: ResolvedWorkload,
    before: Snapshot,
    now: Snapshot,
    counts: Mapping[str, Counters] | None,
) -> tuple[CheckResult, ...]:
    """The rules that must hold after a measurement.

    `counts` None: the engine left no counts, so every rule that needs them is undecided.
    """
    results = []
    for check in workload.checks:
        names = _common_names(workload) | _prefixed("row", check, now)
        names |= _changes(check, before, now) | _count_names(workload, counts)
        crashed = _may_have_crashed(before.life, now.life) if check.unlogged else False
        evidence = _Evidence(
            names=names, now=now, before=before, counted=counts is not None, crashed=crashed
        )
        for rule in check.after_measurement:
            results.append(_judged(check, rule, "measurement", evidence))
    return tuple(results)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What one check is judged from. `crashed` None: it cannot be told."""

    names: Mapping[str, Value]
    now: Snapshot
    before: Snapshot | None = None
    counted: bool = True
    crashed: bool | None = False


def _judged(check: Check, rule: str, after: _After, evidence: _Evidence) -> CheckResult:
    """One rule: held, broken, or undecided with the reason."""
    verdict: Literal["held", "broken", "undecided"]
    try:
        read = sorted(parse(rule).names)
        detail = _why_unknown(check, read, evidence)
        if detail:
            verdict = "undecided"
        else:
            held = evaluate_truth(rule, evidence.names)
            shown = ", ".join(f"{name} = {_shown(evidence.names[name])}" for name in read)
            detail = f"{check.about} ({shown})" if held else f"not so: {check.about} ({shown})"
            verdict = "held" if held else "broken"
            if not held and evidence.crashed is not False:
                verdict = "undecided"
                reason = "restarted" if evidence.crashed else "may have restarted"
                detail = (
                    f"the server {reason}, and unlogged tables are empty after a crash ({shown})"
                )
    except ExpressionError as error:
        verdict, detail = "undecided", error.message
    return CheckResult(check=check.name, rule=rule, after=after, verdict=verdict, detail=detail)


def _why_unknown(check: Check, read: Sequence[str], evidence: _Evidence) -> str | None:
    """Why a rule cannot be judged, or None where all it reads is there."""
    needs_row = any(name.startswith(("row.", "change.")) for name in read)
    needs_change = any(name.startswith("change.") for name in read)
    if needs_row and check.query in evidence.now.problems:
        return evidence.now.problems[check.query]
    if needs_change and evidence.before is not None:
        if check.query in evidence.before.problems:
            return f"before the measurement: {evidence.before.problems[check.query]}"
        if check.query not in evidence.before.rows:
            return "nothing was read before the measurement"
    if not evidence.counted and any(name.split(".")[0] in COUNT_NAMES for name in read):
        return "the engine left no counts"
    return None


def _common_names(workload: ResolvedWorkload) -> dict[str, Value]:
    return dict(workload.names)


def _prefixed(prefix: str, check: Check, snapshot: Snapshot) -> dict[str, Value]:
    return {f"{prefix}.{name}": value for name, value in snapshot.rows.get(check.query, {}).items()}


def _changes(check: Check, before: Snapshot, now: Snapshot) -> dict[str, Value]:
    """Now minus before, for every number that both snapshots have."""
    earlier, later = before.rows.get(check.query, {}), now.rows.get(check.query, {})
    changes: dict[str, Value] = {}
    for name, value in later.items():
        first = earlier.get(name)
        if isinstance(value, int | float) and isinstance(first, int | float):
            changes[f"change.{name}"] = value - first
    return changes


def _count_names(
    workload: ResolvedWorkload, counts: Mapping[str, Counters] | None
) -> dict[str, Value]:
    if counts is None:
        return {}
    names: dict[str, Value] = {}
    total = Counters()
    known = {kind.name: Counters() for kind in workload.transaction_types}
    for kind, counters in (known | dict(counts)).items():
        names |= {f"{name}.{kind}": value for name, value in _of(counters).items()}
        total = added(total, counters)
    return names | _of(total)


def _of(counters: Counters) -> dict[str, Value]:
    return {
        "committed": counters.committed,
        "failed": counters.failed.total,
        "retries": counters.retries,
        "unknown": counters.unknown,
        "in_flight": counters.in_flight_at_end,
        "skipped": counters.skipped,
    }


def _may_have_crashed(before: ServerLife, now: ServerLife) -> bool | None:
    """Whether the server began a new life in between; None where it cannot be told."""
    if before.postmaster and now.postmaster and before.postmaster != now.postmaster:
        return True
    if before.checkpointer is None or now.checkpointer is None:
        return None
    return before.checkpointer != now.checkpointer


def _shown(value: Value) -> str:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
