"""The engine against bad servers: it ends in time, its counters add up, it keeps its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgdyno.calibration.null_server import NullServerChoice, null_server
from pgdyno.hosts.local import Local
from tests.pg.engine_runs import EngineRun, assert_adds_up, run_engine

pytestmark = pytest.mark.pg

BLOCK = "\\set a random(1, 9)\nBEGIN;\nSELECT a FROM t WHERE b = :a;\nCOMMIT;\n"
WHILE_CONNECTING = ("connect", "startup", "authentication")
AT_WORK = ("parse", "bind", "describe", "execute", "sync", "row", "complete", "commit")


def run_against(kind: str, folder: Path, script: str, **words: Any) -> EngineRun:
    """Run the engine against a null server that misbehaves so."""
    defaults: dict[str, Any] = {
        "clients": 3,
        "duration_s": 0.6,
        "connect_deadline_s": 1.0,
        "drain_deadline_s": 1.0,
        "session_settings": [],
    }
    with null_server(NullServerChoice(misbehave=kind), Local()) as server:
        run = run_engine(folder, server.conninfo, script, **(defaults | words))
    assert "panicked" not in run.error
    summary = run.summary
    assert summary.own_cost is None or summary.own_cost.max_rss_bytes < 64 << 20
    assert_adds_up(run)
    return run


@pytest.mark.parametrize("moment", WHILE_CONNECTING)
@pytest.mark.parametrize("loss", ["abort", "reconnect"])
def test_closed_while_connecting(moment: str, loss: str, tmp_path: Path) -> None:
    run = run_against(f"close-at={moment}", tmp_path, BLOCK, on_connection_loss=loss)
    assert (run.status, run.summary.outcome) == (1, "aborted")
    assert run.summary.clients_connected == 0
    assert "no client could connect" in run.error
    assert "closed" in run.error or "reset" in run.error


@pytest.mark.parametrize("settings", [[], ["work_mem"]])
@pytest.mark.parametrize("loss", ["abort", "reconnect"])
def test_closed_as_soon_as_it_is_ready(settings: list[str], loss: str, tmp_path: Path) -> None:
    run = run_against(
        "close-at=ready", tmp_path, BLOCK, on_connection_loss=loss, session_settings=settings
    )
    assert run.summary.measurement.committed == 0
    if loss == "abort":
        assert (run.status, run.summary.outcome) == (1, "aborted")
        assert "closed" in run.error or "reset" in run.error or "broke" in run.error


@pytest.mark.parametrize("moment", ["query", "row", "complete", "commit"])
@pytest.mark.parametrize("loss", ["abort", "reconnect"])
def test_closed_at_work_simple(moment: str, loss: str, tmp_path: Path) -> None:
    run = run_against(
        f"close-at={moment}", tmp_path, BLOCK, protocol="simple", on_connection_loss=loss
    )
    check_closed_at_work(run, loss, moment)


@pytest.mark.parametrize("moment", AT_WORK)
@pytest.mark.parametrize("protocol", ["extended", "prepared"])
@pytest.mark.parametrize("loss", ["abort", "reconnect"])
def test_closed_at_work_extended(moment: str, protocol: str, loss: str, tmp_path: Path) -> None:
    script = BLOCK.replace("= :a;", "= :a \\gset")
    run = run_against(
        f"close-at={moment}", tmp_path, script, protocol=protocol, on_connection_loss=loss
    )
    check_closed_at_work(run, loss, moment)


def check_closed_at_work(run: EngineRun, loss: str, moment: str) -> None:
    """Without an answer nothing is committed; only what was sent with COMMIT is unknown."""
    summary = run.summary
    measurement = summary.measurement
    assert measurement.committed == 0
    if loss == "abort":
        assert (run.status, summary.outcome) == (1, "aborted")
        assert measurement.scheduled == 3
        assert summary.outages[0].attempts == 0
    else:
        assert measurement.scheduled > 3
        assert summary.outages[0].attempts >= measurement.scheduled - 3
        assert summary.outages[0].first_success_ns is None
    # In this script only the COMMIT can commit.
    expected = "unknown" if moment == "commit" else "connection"
    lost = {"unknown": measurement.unknown, "connection": measurement.failed.connection}
    assert lost[expected] == measurement.scheduled, lost


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_an_autocommit_statement_without_an_answer_is_unknown(
    protocol: str, tmp_path: Path
) -> None:
    run = run_against("close-at=complete", tmp_path, "UPDATE t SET a = 1;", protocol=protocol)
    measurement = run.summary.measurement
    assert (measurement.committed, measurement.unknown, measurement.scheduled) == (0, 3, 3)


@pytest.mark.parametrize("kind", ["half-message", "garbage"])
@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("loss", ["abort", "reconnect"])
def test_half_messages_and_garbage(kind: str, protocol: str, loss: str, tmp_path: Path) -> None:
    run = run_against(kind, tmp_path, BLOCK, protocol=protocol, on_connection_loss=loss)
    assert run.summary.measurement.committed == 0
    assert run.summary.errors
    if kind == "garbage":
        assert any("broke the protocol" in error.message for error in run.summary.errors)


def test_a_slow_loris_is_only_slow(tmp_path: Path) -> None:
    run = run_against("slow-loris", tmp_path, "SELECT 1;", connect_deadline_s=20.0)
    assert run.status == 0, run.error
    assert run.summary.measurement.committed > 0
    assert run.summary.times.service.min_ns > 10_000_000
    assert run.summary.errors == ()


@pytest.mark.parametrize("reactor", ["io_uring", "epoll"])
def test_a_server_that_freezes_is_cut_off(reactor: str, tmp_path: Path) -> None:
    run = run_against("freeze-after=5", tmp_path, "SELECT 1;", reactor=reactor)
    measurement = run.summary.measurement
    assert (run.status, measurement.committed, measurement.in_flight_at_end) == (0, 15, 3)


def test_a_frozen_connection_is_replaced_when_requests_have_a_limit(tmp_path: Path) -> None:
    run = run_against(
        "freeze-after=5",
        tmp_path,
        "SELECT 1;",
        duration_s=1.5,
        statement_timeout_s=0.1,
        on_connection_loss="reconnect",
        reconnect={"first_pause_s": 0.01},
    )
    summary = run.summary
    assert run.status == 0, run.error
    # Each life of a connection: five answers, a time limit, a cancel request, a time limit.
    assert summary.measurement.committed > 15
    assert summary.measurement.unknown >= 6
    assert summary.statement_timeouts >= summary.measurement.unknown
    assert any("cancel request" in error.message for error in summary.errors)
