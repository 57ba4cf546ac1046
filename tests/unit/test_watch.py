"""Watching: samples on a grid, what becomes of trouble, what a kill leaves, and stored tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pgdyno.errors import PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.observers.base import Column, Noop, Row, Table
from pgdyno.observers.collect import arrow_schema, read_lines
from pgdyno.observers.host import host_observers
from pgdyno.observers.watch import collect, watch

pytestmark = pytest.mark.unit

COUNTED = Table(
    name="counted",
    about="a number that grows",
    columns=(
        Column(name="label", unit="", kind="label", about="which", type="text"),
        Column(name="n", unit="things", kind="counter", about="how many"),
        Column(name="share", unit="", kind="gauge", about="how much", type="real"),
    ),
)


@dataclass
class Counting:
    """Counts its samples; `before_sample` may raise or take its time."""

    resolution_s: float | None = 0.05
    table: Table = COUNTED
    before_sample: Callable[[int], None] = lambda n: None
    calls: list[str] = field(default_factory=list)
    n: int = 0

    def begin(self) -> None:
        self.calls.append("begin")

    def sample(self) -> Iterable[Row]:
        self.n += 1
        self.before_sample(self.n)
        yield {"label": "a", "n": self.n, "share": 0.5 if self.n > 1 else None}
        yield {"label": "b", "n": -self.n, "share": 1}

    def end(self) -> None:
        self.calls.append("end")


def lines(folder: Path, name: str = "counted") -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def wait_until(holds: Callable[[], bool], *, deadline_s: float = 10.0) -> None:
    end_s = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end_s, f"not so after {deadline_s} s"
        time.sleep(0.005)


def test_rows_are_on_disk_while_it_watches_and_have_both_clocks(tmp_path: Path) -> None:
    begin_ns, wall_ns = time.monotonic_ns(), time.time_ns()
    with watch([Counting()], tmp_path / "observations") as watching:
        wait_until(lambda: len(lines(tmp_path / "observations")) >= 4)
        assert watching.names == ("counted",)
    rows = lines(tmp_path / "observations")
    assert [row["n"] for row in rows[:4]] == [1, -1, 2, -2]
    for row in rows:
        assert begin_ns <= int(str(row["monotonic_ns"])) <= time.monotonic_ns()
        assert wall_ns <= int(str(row["wall_unix_ns"])) <= time.time_ns()
    assert watching.notices == ()


def test_samples_lie_on_a_grid_and_a_slow_one_skips_moments(tmp_path: Path) -> None:
    def slow_once(n: int) -> None:
        if n == 2:
            time.sleep(0.5)

    observer = Counting(resolution_s=0.2, before_sample=slow_once)
    with watch([observer], tmp_path):
        wait_until(lambda: observer.n >= 5)
    stamps = [int(str(row["monotonic_ns"])) / 1e9 for row in lines(tmp_path)[::2]]
    offsets = [stamp - stamps[0] for stamp in stamps[:-1]]
    # Sample 2 at 0.2 s took until 0.7 s, so the third is at 0.8 s: on the grid, not at 0.9 s.
    assert [round(offset / 0.2) for offset in offsets[:3]] == [0, 1, 4]
    assert max(abs(offset - round(offset / 0.2) * 0.2) for offset in offsets) < 0.08


def test_without_a_resolution_there_is_one_before_and_one_after(tmp_path: Path) -> None:
    observer = Counting(resolution_s=None)
    with watch([observer], tmp_path):
        assert observer.n == 1
        time.sleep(0.05)
        assert observer.n == 1
    assert [row["n"] for row in lines(tmp_path)] == [1, -1, 2, -2]
    assert observer.calls == ["begin", "end"]


def test_a_sample_can_be_asked_for(tmp_path: Path) -> None:
    observer = Counting(resolution_s=None)
    with watch([observer], tmp_path) as watching:
        watching.sample_now()
        wait_until(lambda: len(lines(tmp_path)) == 4)
    assert len(lines(tmp_path)) == 6


def test_the_newest_two_samples_are_at_hand(tmp_path: Path) -> None:
    observer = Counting(resolution_s=None)
    with watch([observer], tmp_path) as watching:
        for n in (2, 3):
            watching.sample_now()
            wait_until(lambda n=n: watching.recent("counted")[-1].rows[0]["n"] == n)
        older, newer = watching.recent("counted")
        assert (older.rows[0]["n"], newer.rows[0]["n"]) == (2, 3)
        assert older.monotonic_ns < newer.monotonic_ns
        assert watching.recent("unheard of") == ()


def test_samples_that_fail_are_counted_and_never_fatal(tmp_path: Path) -> None:
    def sometimes(n: int) -> None:
        if n == 2:
            raise PgdynoError("the server is away", hint="start it")

    observer = Counting(resolution_s=None, before_sample=sometimes)
    with watch([observer], tmp_path) as watching:
        watching.sample_now()
        wait_until(lambda: bool(watching.notices))
    assert watching.notices == ("observer 'counted' missed 1 of 3 samples: the server is away",)
    assert [row["n"] for row in lines(tmp_path)] == [1, -1, 3, -3]


def test_an_observer_that_cannot_begin_is_left_out(tmp_path: Path) -> None:
    class Absent(Noop):
        def begin(self) -> None:
            raise OSError("no such thing")

    with watch([Absent(), Counting(resolution_s=None)], tmp_path) as watching:
        assert watching.names == ("counted",)
    assert watching.notices == ("observer 'noop' is left out: no such thing",)


def test_two_of_one_name_do_not_write_into_one_file(tmp_path: Path) -> None:
    first, second = Counting(resolution_s=None), Counting(resolution_s=None)
    with watch([first, second], tmp_path) as watching:
        pass
    assert (first.n, second.n) == (2, 0)
    assert watching.notices == ("observer 'counted' is left out: there are two of that name",)


def test_a_slow_observer_delays_nobody_else(tmp_path: Path) -> None:
    released = threading.Event()
    slow = Counting(
        table=Table(name="slow", about="waits", columns=COUNTED.columns),
        before_sample=lambda n: None if n == 1 else released.wait(5) and None,
    )
    quick = Counting()
    with watch([slow, quick], tmp_path):
        wait_until(lambda: quick.n >= 5)
        assert slow.n == 2
        released.set()


def test_an_error_in_the_measurement_ends_the_watch(tmp_path: Path) -> None:
    observer = Counting(resolution_s=None)
    with pytest.raises(KeyboardInterrupt), watch([observer], tmp_path):
        raise KeyboardInterrupt
    assert observer.calls == ["begin", "end"]
    assert len(lines(tmp_path)) == 4


def test_an_interruption_while_it_begins_closes_what_is_open(tmp_path: Path) -> None:
    class Interrupting(Noop):
        def begin(self) -> None:
            raise KeyboardInterrupt

    observer = Counting(resolution_s=None)
    with pytest.raises(KeyboardInterrupt), watch([observer, Interrupting()], tmp_path):
        pytest.fail("it never began")
    assert observer.calls == ["begin", "end"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_stops_that_observer_and_is_told(tmp_path: Path) -> None:
    def wrong(n: int) -> None:
        assert n == 1, "a defect"

    with watch([Counting(before_sample=wrong)], tmp_path) as watching:
        wait_until(lambda: bool(watching.notices))
    assert watching.notices == ("observer 'counted' stopped after 2 samples: it has a defect",)
    assert [row["n"] for row in lines(tmp_path)] == [1, -1]


def test_collected_tables_are_typed_and_described(tmp_path: Path) -> None:
    observer = Counting(resolution_s=None)
    with watch([observer], tmp_path):
        pass
    assert collect([observer], tmp_path) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counted.parquet"]
    stored = pq.read_table(tmp_path / "counted.parquet")
    assert stored.schema.names == ["monotonic_ns", "wall_unix_ns", "label", "n", "share"]
    assert [str(one) for one in stored.schema.types] == [
        "int64", "int64", "string", "int64", "double",
    ]  # fmt: skip
    assert stored.column("share").to_pylist() == [None, 1.0, 0.5, 1.0]
    assert stored.schema.field("n").metadata == {
        b"unit": b"things", b"kind": b"counter", b"about": b"how many",
    }  # fmt: skip
    assert stored.schema.metadata[b"about"] == b"a number that grows"


def test_a_half_line_is_dropped_and_nothing_at_all_is_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "counted.jsonl"
    whole = '{"monotonic_ns": 1, "wall_unix_ns": 2, "label": "a", "n": 3, "share": null}\n'
    path.write_text(whole + whole[:40])
    assert read_lines(path, COUNTED).to_pylist() == [
        {"monotonic_ns": 1, "wall_unix_ns": 2, "label": "a", "n": 3, "share": None}
    ]
    path.write_text("")
    assert read_lines(path, COUNTED).num_rows == 0
    assert read_lines(path, COUNTED).schema == arrow_schema(COUNTED)


def test_lines_that_cannot_be_read_stay(tmp_path: Path) -> None:
    (tmp_path / "counted.jsonl").write_text('{"monotonic_ns": 1, "n": "three"}\n')
    (notice,) = collect([Counting()], tmp_path)
    assert notice.startswith("counted.jsonl stays as it is: ")
    assert [path.name for path in tmp_path.iterdir()] == ["counted.jsonl"]


def test_a_killed_watch_leaves_lines_that_can_be_collected(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from pgdyno.hosts.local import Local\n"
        "from pgdyno.observers.host import host_observers\n"
        "from pgdyno.observers.watch import watch\n"
        "with watch(host_observers(Local(), resolution_s=0.05), Path(sys.argv[1])):\n"
        "    time.sleep(60)\n"
    )
    root = Path(__file__).parent.parent.parent
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=root)
    try:
        cpu = tmp_path / "host_cpu.jsonl"
        wait_until(lambda: cpu.exists() and cpu.read_text().count('"all"') >= 3)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert collect(host_observers(Local()), tmp_path) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "host_cpu.parquet", "host_disk.parquet", "host_memory.parquet", "host_network.parquet",
        "host_tasks.parquet",
    ]  # fmt: skip
    stored = pq.read_table(tmp_path / "host_cpu.parquet").to_pylist()
    assert sum(row["cpu"] == "all" for row in stored) >= 3
