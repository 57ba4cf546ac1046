"""Where the kernel forbids io_uring the engine measures with epoll, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.contract import Summary
from pgdyno.engine import find_engine
from tests.pg.engine_runs import write_plan

pytestmark = pytest.mark.pg
WITHOUT_IO_URING = Path(__file__).with_name("without_io_uring.py")


def run_without_io_uring(plan: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(WITHOUT_IO_URING), str(find_engine()), "run", str(plan)]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)


def test_the_probe_falls_back_to_epoll(tmp_path: Path, database: str) -> None:
    ended = run_without_io_uring(write_plan(tmp_path, database, "select 1;"))
    assert ended.returncode == 0, ended.stderr
    summary = Summary.model_validate_json((tmp_path / "out" / "summary.json").read_text())
    assert summary.engine.reactor == "epoll" and summary.measurement.committed > 0


def test_io_uring_asked_for_by_name_is_refused(tmp_path: Path, database: str) -> None:
    ended = run_without_io_uring(write_plan(tmp_path, database, "select 1;", reactor="io_uring"))
    assert ended.returncode == 1
    assert "io_uring" in ended.stderr and "hint:" in ended.stderr
