"""The state's age from what a server says, and builds that are unfit for judging speed."""

from __future__ import annotations

import pytest

from pgdyno.observers.base import Row
from pgdyno.observers.server_build import build_concerns
from pgdyno.observers.state_age import checkpoint_distance_bytes, state_age

pytestmark = pytest.mark.unit

MB = 1024**2


def table(**changes: float | None) -> Row:
    row: Row = {
        "schema_name": "public", "name": "t", "live_rows": 100, "dead_rows": 7, "heap_bytes": 8192,
        "index_bytes": 16384, "since_vacuum_s": 3.0, "since_analyze_s": 2.0,
    }  # fmt: skip
    return {**row, **changes}


def test_tables_add_up_and_the_longest_time_counts() -> None:
    age = state_age([table(), table(dead_rows=1, since_vacuum_s=60.0)], None)
    assert (age.live_rows, age.dead_rows) == (200, 8)
    assert (age.heap_bytes, age.index_bytes) == (16384, 32768)
    assert (age.since_vacuum_s, age.since_analyze_s) == (60.0, 2.0)
    assert age.since_checkpoint_s is None


def test_what_is_not_known_is_not_zero() -> None:
    assert state_age([table(), table(since_vacuum_s=None)], None).since_vacuum_s is None
    assert state_age([], None).dead_rows is None


@pytest.mark.parametrize(
    ("redo", "end", "divisor", "distance"),
    [
        # 1 GB of WAL, 64 segments: 33 between two checkpoints of 18 (0.9), 25 of 10 (2 + 0.5).
        (0, 0, 1.9, 33 * 16 * MB),
        (0, 0, 2.5, 25 * 16 * MB),
        # The count begins with the segment in which the last checkpoint began.
        (16 * MB - 1, 16 * MB, 1.9, 32 * 16 * MB),
        (0, 40 * 16 * MB, 1.9, 0),
    ],
)
def test_the_distance_to_the_next_checkpoint(
    redo: int, end: int, divisor: float, distance: int
) -> None:
    assert distance == checkpoint_distance_bytes(
        redo, end, segment_bytes=16 * MB, max_wal_bytes=1024 * MB, divisor=divisor
    )


@pytest.mark.parametrize(
    ("assertions", "flags", "words"),
    [
        ("off", "-Wall -O2 -fno-strict-aliasing", []),
        ("off", None, []),
        (None, "-O3", []),
        ("on", "-O2", ["assertions"]),
        ("off", "-O2 -O0", ["-O0"]),
        ("off", "-g", ["no -O"]),
        ("on", "-ggdb -Og", ["assertions", "-Og"]),
    ],
)
def test_builds_for_finding_faults_are_named(
    assertions: str | None, flags: str | None, words: list[str]
) -> None:
    concerns = build_concerns(assertions, flags)
    assert len(concerns) == len(words)
    assert all(word in concern for word, concern in zip(words, concerns, strict=True))
