"""How far standbys were behind, as a report says it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pgdyno.reports.documents import read_run
from pgdyno.reports.replication import lags
from pgdyno.reports.timeline import time_axis
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit

SECOND_NS = 10**9


def test_each_standby_has_its_line(tmp_path: Path) -> None:
    (documents,) = read_run(build_run(tmp_path, RunOptions(duration_s=8, warmup_s=2))).trials
    axis = time_axis(documents)
    assert axis is not None
    rows = [
        {
            "monotonic_ns": axis.zero_monotonic_ns + at * SECOND_NS,
            "standby": standby,
            "sync_state": state,
            "replay_lag_bytes": behind,
            "replay_lag_s": lag_s,
        }
        for at in range(9)
        for standby, state, behind, lag_s in (
            ("standby-1", "sync", 1024 * at, 0.001 * at),
            ("standby-2", "async", 2048, None),
            ("standby-3", "async", None, None),
        )
    ]
    seen = SimpleNamespace(observations={"replication": pa.Table.from_pylist(rows)})
    assert lags(seen, axis) == [  # type: ignore[arg-type]
        ("standby-1", "sync; 4.0 kB of WAL behind on average, 8.0 kB at most; "
         "replay lag at most 8.000 ms"),
        ("standby-2", "async; 2.0 kB of WAL behind on average, 2.0 kB at most"),
        ("standby-3", "async; how far behind is not known"),
    ]  # fmt: skip
    assert lags(SimpleNamespace(observations={}), axis) == []  # type: ignore[arg-type]
