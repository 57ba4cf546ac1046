"""Judging checks: held, broken and undecided, each with its reason. No server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.contract import Counters, Failed
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Check, ResolvedWorkload
from pgdyno.workloads.judging import (
    ServerLife,
    Snapshot,
    added,
    judge_load,
    judge_measurement,
)
from pgdyno.workloads.resolving import resolve

pytestmark = pytest.mark.unit

LIFE = ServerLife(postmaster="8:00", checkpointer="8:00:01")


def workload(
    *rules: str, unlogged: bool = False, after_load: tuple[str, ...] = ()
) -> ResolvedWorkload:
    check = Check(
        name="rows",
        about="there is a row for each",
        source="mine/checks/rows.sql",
        query="select rows",
        unlogged=unlogged,
        after_load=after_load,
        after_measurement=rules,
    )
    noop = resolve(catalog.find("tpcb"), {"scale": "2"})
    return replace(noop, checks=(check,))


def snapshot(life: ServerLife = LIFE, **row: int | str) -> Snapshot:
    return Snapshot(rows={"select rows": row}, life=life)


def verdict(
    rule: str, counts: dict[str, Counters] | None, before: Snapshot, now: Snapshot
) -> tuple[str, str]:
    (result,) = judge_measurement(workload(rule), before, now, counts)
    return result.verdict, result.detail


COUNTS = {
    "tpcb": Counters(
        scheduled=18,
        committed=10,
        failed=Failed(serialization=1, other=2),
        unknown=3,
        in_flight_at_end=2,
        retries=4,
    )
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("change.rows == 12", "held"),
        ("committed <= change.rows <= committed + unknown + in_flight", "held"),
        ("change.rows <= committed", "broken"),
        ("committed.tpcb == 10 and failed.tpcb == 3 and failed == 3", "held"),
        ("retries == 4 and unknown.tpcb == 3", "held"),
        ("row.rows == 6 * scale * 9", "broken"),
        ("row.rows == 112", "held"),
        ("change.other == 1", "undecided"),
        ("change.rows + 1", "undecided"),
        ("change.rows / 0 == 1", "undecided"),
        ("committed.tbcp == 1", "undecided"),
    ],
)
def test_rules(rule: str, expected: str) -> None:
    found, detail = verdict(rule, COUNTS, snapshot(rows=100), snapshot(rows=112))
    assert (found, bool(detail)) == (expected, True)


def test_a_broken_rule_shows_what_it_saw() -> None:
    found = verdict("committed == change.rows", COUNTS, snapshot(rows=100), snapshot(rows=1109))
    assert found == (
        "broken",
        "not so: there is a row for each (change.rows = 1 009, committed = 10)",
    )


def test_without_counts_only_what_needs_them_is_undecided() -> None:
    before, now = snapshot(rows=1), snapshot(rows=1)
    assert verdict("change.rows == 0", None, before, now)[0] == "held"
    undecided = verdict("change.rows == committed", None, before, now)
    assert undecided == ("undecided", "the engine left no counts")
    assert verdict("failed.tpcb == 0", None, before, now)[0] == "undecided"


def test_what_could_not_be_read_is_undecided_with_the_reason() -> None:
    lost = Snapshot(problems={"select rows": "mine/checks/rows.sql: statement timeout"})
    seen = snapshot(rows=1)
    assert (
        verdict("change.rows == 0", {}, seen, lost)[1] == "mine/checks/rows.sql: statement timeout"
    )
    assert verdict("change.rows == 0", {}, lost, seen)[1].startswith("before the measurement: ")
    assert verdict("change.rows == 0", {}, Snapshot(), seen)[0] == "undecided"
    assert verdict("row.rows == 1", {}, Snapshot(), seen)[0] == "held"


@pytest.mark.parametrize(
    ("life", "expected"),
    [
        (LIFE, "broken"),
        (replace(LIFE, checkpointer="9:00"), "undecided"),
        (replace(LIFE, postmaster="9:00"), "undecided"),
        (replace(LIFE, checkpointer=None), "undecided"),
    ],
)
def test_a_crash_excuses_unlogged_tables_only(life: ServerLife, expected: str) -> None:
    before, now = snapshot(rows=5), snapshot(life, rows=0)
    (unlogged,) = judge_measurement(workload("change.rows >= 0", unlogged=True), before, now, {})
    (logged,) = judge_measurement(workload("change.rows >= 0"), before, now, {})
    assert (unlogged.verdict, logged.verdict) == (expected, "broken")
    (held,) = judge_measurement(workload("change.rows < 0", unlogged=True), before, now, {})
    assert held.verdict == "held"


def test_rules_after_a_load_know_whether_data_were_there_before() -> None:
    fresh = workload(after_load=("reused or row.rows == 0", "row.rows < 9"))
    assert [r.verdict for r in judge_load(fresh, snapshot(rows=3), reused=False)] == [
        "broken",
        "held",
    ]
    assert [r.verdict for r in judge_load(fresh, snapshot(rows=3), reused=True)] == ["held", "held"]
    assert {r.after for r in judge_load(fresh, snapshot(rows=3), reused=True)} == {"load"}


counters = st.builds(
    Counters,
    scheduled=st.integers(0, 10**9),
    committed=st.integers(0, 10**9),
    failed=st.builds(Failed, deadlock=st.integers(0, 99), connection=st.integers(0, 99)),
    unknown=st.integers(0, 99),
    in_flight_at_end=st.integers(0, 99),
    retries=st.integers(0, 99),
)


@given(counters, counters)
def test_counters_add_up_class_by_class(left: Counters, right: Counters) -> None:
    total = added(left, right)
    assert total.committed == left.committed + right.committed
    assert total.failed.total == left.failed.total + right.failed.total
    assert total.failed.deadlock == left.failed.deadlock + right.failed.deadlock
    assert added(total, Counters()) == total == added(right, left)


def bank(committed: int, delta: int) -> dict[str, int]:
    """The row of tpcb's check after `committed` transactions that added `delta` altogether."""
    return {
        "branches": 1,
        "branches_balance": delta,
        "tellers": 10,
        "tellers_balance": delta,
        "accounts": 100_000,
        "accounts_balance": delta,
        "history_rows": committed,
        "history_delta": delta,
        "primary_keys": 3,
    }


@given(
    committed=st.integers(0, 1000), delta=st.integers(-(10**6), 10**6), unknown=st.integers(0, 3),
    arrived=st.integers(0, 3), earlier=st.integers(-50, 50),
)  # fmt: skip
def test_the_bank_holds_whatever_became_of_unknown_transactions(
    committed: int, delta: int, unknown: int, arrived: int, earlier: int
) -> None:
    """Those of unknown outcome may have committed: all, some or none of them."""
    tpcb = resolve(catalog.find("tpcb"), {"scale": "1"})
    query = tpcb.checks[0].query
    really = committed + min(unknown, arrived)
    before = Snapshot(rows={query: bank(500, earlier)}, life=LIFE)
    now = Snapshot(rows={query: bank(500 + really, earlier + delta)}, life=LIFE)
    counts = {"tpcb": Counters(scheduled=committed + unknown, committed=committed, unknown=unknown)}
    assert {each.verdict for each in judge_measurement(tpcb, before, now, counts)} == {"held"}
    lost = {"tpcb": Counters(scheduled=really + 1, committed=really + 1)}
    found = judge_measurement(tpcb, before, now, lost)
    assert [each.check for each in found if each.verdict == "broken"] == ["history"]
