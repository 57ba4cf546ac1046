"""Equal shares among clients, and N = X·R as a check of a measurement."""

from __future__ import annotations

import pytest

from pgdyno.contract import (
    ClientResult,
    ClockAnchor,
    ClosedLoop,
    Counters,
    EngineFacts,
    ErrorSeen,
    Failed,
    Interval,
    OpenLoop,
    OwnCost,
    Series,
    Summary,
    Timeline,
    Times,
)
from pgdyno.stats.fairness import fairness
from pgdyno.stats.littles_law import check, in_flight_counts

pytestmark = pytest.mark.unit


def series(count: int, mean_ns: int) -> Series:
    percentiles = dict.fromkeys(
        ("p50_ns", "p90_ns", "p95_ns", "p99_ns", "p99_9_ns", "p99_99_ns"), mean_ns
    )
    return Series(
        count=count, sum_ns=count * mean_ns, sum_squares_ns2=count * mean_ns**2,
        min_ns=mean_ns, max_ns=mean_ns, **percentiles,
    )  # fmt: skip


def summary(
    *, committed: int, service_ns: int, connected: int = 4, failed: int = 0, lost: int = 0
) -> Summary:
    """A measurement of ten seconds that asked for four clients."""
    counters = Counters(
        scheduled=committed + failed, committed=committed, failed=Failed(other=failed)
    )
    errors = (
        ErrorSeen(
            sqlstate=None, message="server closed the connection", transaction_type=None,
            statement=None, phase="measurement", count=lost, first_ns=0, last_ns=0,
        ),
    )  # fmt: skip
    return Summary(
        engine=EngineFacts(version="1", reactor="epoll", threads=1, pid=1),
        outcome="completed",
        clock=ClockAnchor(monotonic_ns=0, wall_unix_ns=0),
        timeline=Timeline(
            connect_begin_ns=0, measurement_begin_ns=10**9, measurement_end_ns=11 * 10**9
        ),
        clients_asked=4, clients_connected=connected, session_settings={},
        warmup=Counters(), warmup_by_type={}, warmup_server_commits=0,
        measurement=counters, server_commits=committed,
        times=Times(service=series(committed, service_ns)),
        transaction_types=(), statements=(), clients=(), errors=errors if lost else (),
        own_cost=OwnCost(cpu_user_ns=0, cpu_sys_ns=0, max_rss_bytes=0, loops=0, events=0),
    )  # fmt: skip


def in_flight(count: int, phase: str = "measurement") -> Interval:
    return Interval.model_validate(
        {
            "phase": phase, "begin_ns": 0, "end_ns": 1, "counters": {}, "server_commits": 0,
            "in_flight": count, "times": {"service": series(1, 1)}, "types": {},
            "cpu_user_ns": 0, "cpu_sys_ns": 0,
        }
    )  # fmt: skip


def test_equal_shares() -> None:
    found = fairness([ClientResult(committed=100, sum_service_ns=100 * 5000)] * 4)
    assert found is not None
    assert (found.committed_average, found.committed_stddev, found.jain_index) == (100, 0, 1)
    assert (found.service_time_average_ns, found.service_time_stddev_ns) == (5000, 0)


def test_one_client_got_everything() -> None:
    idle = ClientResult(committed=0, sum_service_ns=0)
    found = fairness([ClientResult(committed=40, sum_service_ns=40 * 1000), idle, idle, idle])
    assert found is not None
    assert found.jain_index == 0.25
    assert (found.committed_min, found.committed_max, found.committed_average) == (0, 40, 10)
    assert found.committed_stddev == pytest.approx(300**0.5)
    assert found.service_time_average_ns == 1000


def test_no_clients_have_no_fairness_and_idle_ones_are_equal() -> None:
    assert fairness([]) is None
    found = fairness([ClientResult(committed=0, sum_service_ns=0)])
    assert found is not None
    assert found.jain_index == 1.0


def test_four_busy_clients_are_accounted_for() -> None:
    found = check(summary(committed=40_000, service_ns=1_000_000), ClosedLoop(), ())
    assert found is not None
    assert (found.concurrency, found.accounted, found.gap) == (
        4,
        pytest.approx(4),
        pytest.approx(0),
    )
    assert not found.relevant


def test_think_time_is_part_of_the_law() -> None:
    load = ClosedLoop(think_time_s=0.009)
    found = check(summary(committed=4_000, service_ns=1_000_000), load, ())
    assert found is not None
    assert found.gap == pytest.approx(0)


def test_missing_time_is_a_gap_with_what_is_known_about_it() -> None:
    found = check(
        summary(committed=20_000, service_ns=1_000_000, connected=3, failed=7, lost=1),
        ClosedLoop(),
        (),
    )
    assert found is not None
    assert found.gap == pytest.approx(1 / 3)
    assert found.relevant
    assert [text.split(";")[0] for text in found.explanations] == [
        "7 transactions failed or stayed unknown",
        "1 of 4 clients never connected",
        "connections were lost",
    ]


@pytest.mark.parametrize(
    ("clients", "per_10_s", "response_us", "active"),
    [(300, 144_460, 10_293, 148.7), (400, 143_580, 6_795, 97.6), (300, 232_819, 12_758, 297.0)],
)
def test_clients_that_a_pooler_keeps_waiting_are_missing(
    clients: int, per_10_s: int, response_us: int, active: float
) -> None:
    # Published runs: two through a pgpool of 150 processes, the third straight to the server.
    measured = summary(committed=per_10_s, service_ns=response_us * 1000, connected=clients)
    found = check(measured, ClosedLoop(), ())
    assert found is not None
    assert found.accounted == pytest.approx(active, abs=0.05)
    assert found.relevant is (active < clients / 2)


def test_open_loop_takes_the_concurrency_it_saw() -> None:
    intervals = [in_flight(90, "warmup"), in_flight(1), in_flight(3)]
    assert in_flight_counts(intervals) == [1, 3]
    load = OpenLoop(rate_per_s=2000)
    found = check(summary(committed=20_000, service_ns=1_000_000), load, intervals)
    assert found is not None
    assert (found.concurrency, found.gap) == (2, pytest.approx(0))


def test_few_samples_of_an_open_loop_prove_no_gap_but_many_do() -> None:
    load = OpenLoop(rate_per_s=2000)
    # 20 000 transactions of 0.3 ms in 10 s: 0.6 in flight on average, and 2 of 10 looks saw one.
    looks = [in_flight(count) for count in (0, 0, 1, 0, 0, 0, 1, 0, 0, 0)]
    found = check(summary(committed=20_000, service_ns=300_000), load, looks)
    assert found is not None
    assert found.gap == pytest.approx(-2)
    assert not found.relevant
    found = check(summary(committed=20_000, service_ns=300_000), load, looks * 100)
    assert found is not None
    assert found.relevant


def test_nothing_committed_cannot_be_judged() -> None:
    assert check(summary(committed=0, service_ns=0), ClosedLoop(), ()) is None
