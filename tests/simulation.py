"""A made-up measurement for the builders: times, intervals, histogram logs and observations.

Every number comes from a generator with a fixed seed, so a simulation is the same each time.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from hdrh.histogram import HdrHistogram

from pgdyno.contract import Counters, Failed, Interval, IntervalType, Series, Times
from pgdyno.model import CheckResult
from pgdyno.stats.percentiles import Distribution

SECOND_NS = 1_000_000_000
MONOTONIC_NS = 5_000 * SECOND_NS
WALL_NS = 1_795_200_000 * SECOND_NS
CLIENTS = 16
HOUR_NS = 3_600 * SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What kind of run to build."""

    name: str = "userlogin"
    question: str | None = None
    warmup_s: int = 5
    duration_s: int = 40
    shards: int = 2
    missing: tuple[str, ...] = ()
    outcome: str = "completed"
    reason: str | None = None
    durability: str = "D2"
    login_statement: str = "SELECT f_user_login_{shard}(:userid);"
    error_message: str = "deadlock detected"
    setting_value: str = "512MB"
    table_name: str = "user_info_{shard}"
    tags: tuple[str, ...] = ()
    clients: int = CLIENTS
    extra_checks: tuple[CheckResult, ...] = field(default=())
    empty: bool = False
    draws: int = 240


class Recorder:
    """Exact sums beside counted values, as the engine keeps them beside its histograms."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.count = self.sum_ns = self.sum_squares_ns2 = self.max_ns = 0
        self.min_ns = HOUR_NS

    def record(self, value_ns: int, count: int) -> None:
        self.counts[value_ns] += count
        self.count += count
        self.sum_ns += value_ns * count
        self.sum_squares_ns2 += value_ns**2 * count
        self.min_ns, self.max_ns = min(self.min_ns, value_ns), max(self.max_ns, value_ns)

    def add(self, other: Recorder) -> None:
        self.counts.update(other.counts)
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.sum_squares_ns2 += other.sum_squares_ns2
        self.min_ns, self.max_ns = min(self.min_ns, other.min_ns), max(self.max_ns, other.max_ns)

    def series(self) -> Series:
        distribution = Distribution.of(self.counts)

        def at(quantile: float) -> int:
            return min(distribution.value_at(quantile), self.max_ns)

        return Series(
            count=self.count,
            sum_ns=self.sum_ns,
            sum_squares_ns2=self.sum_squares_ns2,
            min_ns=self.min_ns if self.count else 0,
            max_ns=self.max_ns,
            p50_ns=at(0.5),
            p90_ns=at(0.9),
            p95_ns=at(0.95),
            p99_ns=at(0.99),
            p99_9_ns=at(0.999),
            p99_99_ns=at(0.9999),
        )

    def encoded(self) -> str:
        """The values as an HdrHistogram, as it stands in a log."""
        histogram = HdrHistogram(1, HOUR_NS, 3)
        for value_ns, count in self.counts.items():
            histogram.record_value(value_ns, count)
        return histogram.encode().decode()


class Simulation:
    """A made-up measurement: recorders of each transaction type and of its statements."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.random = random.Random(20130417)
        self.types = tuple(f"both_{shard}" for shard in range(options.shards))
        self.total = {name: Recorder() for name in self.types}
        self.warmup = {name: Recorder() for name in self.types}
        self.statements = {(name, n): Recorder() for name in self.types for n in (1, 2, 3)}
        self.begin_ns = MONOTONIC_NS + SECOND_NS // 5
        self.measurement_ns = self.begin_ns + options.warmup_s * SECOND_NS
        self.end_ns = self.measurement_ns + options.duration_s * SECOND_NS

    def slowness(self, second: int) -> float:
        """How much slower this second is than an undisturbed one: warming up, then a checkpoint."""
        measured = second - self.options.warmup_s
        cold = 1.2 * math.exp(-second / 2.0)
        checkpoint = 0.9 if 0.45 < measured / max(self.options.duration_s, 1) < 0.62 else 0.0
        return 1.0 + cold + checkpoint + self.random.uniform(-0.04, 0.04)

    def intervals(self, hlog: HlogWriter) -> Iterator[Interval]:
        for second in range(self.options.warmup_s + self.options.duration_s):
            warm = second < self.options.warmup_s
            begin_ns = self.begin_ns + second * SECOND_NS
            slow = self.slowness(second)
            per_type: dict[str, IntervalType] = {}
            merged = Recorder()
            for name in self.types:
                recorder = self.one_second(name, slow, warm)
                prefix = "warmup." if warm else ""
                hlog.transactions(f"{prefix}{name}.service", begin_ns, recorder)
                merged.add(recorder)
                (self.warmup if warm else self.total)[name].add(recorder)
                per_type[name] = IntervalType(
                    counters=counters(recorder.count), service=recorder.series()
                )
            yield Interval(
                phase="warmup" if warm else "measurement",
                begin_ns=begin_ns,
                end_ns=begin_ns + SECOND_NS,
                counters=counters(merged.count),
                server_commits=merged.count * 2,
                in_flight=self.options.clients,
                times=Times(service=merged.series()),
                types=per_type,
                cpu_user_ns=int(0.11e9 / slow),
                cpu_sys_ns=int(0.19e9 / slow),
            )

    def one_second(self, name: str, slow: float, warm: bool) -> Recorder:
        recorder = Recorder()
        # So many that clients = throughput × mean response time.
        per_draw = 8_980 / self.options.shards / self.options.draws
        for _ in range(self.options.draws):
            weight = int(per_draw / slow + self.random.random())
            login_ns = int(self.random.lognormvariate(math.log(0.9e6 * slow), 0.35))
            logout_ns = int(self.random.lognormvariate(math.log(0.76e6 * slow), 0.33))
            if self.random.random() < 0.004:
                login_ns *= 6
            choose_ns = self.random.randint(180, 420)
            recorder.record(choose_ns + login_ns + logout_ns, weight)
            if not warm:
                for number, value_ns in enumerate((choose_ns, login_ns, logout_ns), start=1):
                    self.statements[name, number].record(value_ns, weight)
        return recorder


class HlogWriter:
    """Writes HdrHistogram V2 interval logs with tags, as the engine does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        header = "#[Histogram log format version 1.3]\n"
        header += f"#[StartTime: {MONOTONIC_NS / 1e9:.3f}]\n"
        header += (
            '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
        )
        for name in ("transactions", "statements"):
            (folder / f"{name}.hlog").write_text(header)

    def transactions(self, tag: str, begin_ns: int, recorder: Recorder) -> None:
        self._write("transactions", tag, begin_ns, recorder)

    def statements(self, tag: str, begin_ns: int, recorder: Recorder) -> None:
        self._write("statements", tag, begin_ns, recorder)

    def _write(self, name: str, tag: str, begin_ns: int, recorder: Recorder) -> None:
        start_s = (begin_ns - MONOTONIC_NS) / 1e9
        line = f"Tag={tag},{start_s:.3f},1.000,{recorder.max_ns / 1e6:.3f},{recorder.encoded()}\n"
        with (self.folder / f"{name}.hlog").open("a") as file:
            file.write(line)


def counters(committed: int, *, failed: Failed = Failed()) -> Counters:  # noqa: B008
    """Counters of a closed loop that finished what it began."""
    return Counters(scheduled=committed + failed.total, committed=committed, failed=failed)


def write_observations(folder: Path, simulation: Simulation) -> None:
    """Tables as the observers write them, one sample a second, for warm-up and measurement."""
    folder.mkdir()
    counters: defaultdict[str, float] = defaultdict(float)
    tables: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
    seconds = simulation.options.warmup_s + simulation.options.duration_s
    for second in range(seconds + 1):
        taken_ns = simulation.begin_ns + second * SECOND_NS + 3_000_000
        clocks = {
            "monotonic_ns": taken_ns,
            "wall_unix_ns": taken_ns - MONOTONIC_NS + WALL_NS,
        }
        slow = simulation.slowness(second)
        for name, row in observe(counters, slow, simulation.random):
            tables[name].append({**row, **clocks})
    for name, rows in tables.items():
        write_table(folder, name, rows)


def observe(
    counters: defaultdict[str, float], slow: float, chance: random.Random
) -> Iterator[tuple[str, dict[str, object]]]:
    """One sample of every table; `counters` hold what has been counted so far."""

    def counted(name: str, more: float) -> int:
        counters[name] += more
        return int(counters[name])

    user, sys = 92 / slow + chance.uniform(-4, 4), 58 / slow + chance.uniform(-3, 3)
    wait = 6 * slow + chance.uniform(0, 3)
    for cpu, share in (("all", 1.0), ("0", 0.5), ("1", 0.5)):
        yield (
            "host_cpu",
            {
                "cpu": cpu,
                "user_jiffies": counted(f"user {cpu}", user * share),
                "sys_jiffies": counted(f"sys {cpu}", sys * share),
                "wait_jiffies": counted(f"wait {cpu}", wait * share),
                "steal_jiffies": 0,
                "idle_jiffies": counted(f"idle {cpu}", max(200 - user - sys - wait, 0) * share),
            },
        )
    for role, share in (("engine", 0.18), ("server", 0.75)):
        yield (
            "processes",
            {
                "role": role,
                "user_jiffies": counted(f"{role} user", user * share),
                "sys_jiffies": counted(f"{role} sys", sys * share),
            },
        )
    written = 19e6 / slow + (46e6 if slow > 1.6 else 0)
    yield (
        "host_disk",
        {
            "device": "vda",
            "read_bytes": counted("read", 120_000 if slow > 1.6 else 0),
            "write_bytes": counted("written", written + chance.uniform(0, 2e6)),
            "flushes": counted("flushes", 1900 / slow),
        },
    )
    yield (
        "host_network",
        {
            "interface": "eth0",
            "received_bytes": counted("received", 900 + chance.uniform(0, 400)),
            "sent_bytes": counted("sent", 700 + chance.uniform(0, 900)),
        },
    )
    yield "host_tasks", {"context_switches": counted("switches", 41_000 / slow)}
    yield (
        "wal",
        {
            "wal_position_bytes": counted("wal", 15e6 / slow + chance.uniform(0, 1e6)),
            "wal_syncs": counted("syncs", 1900 / slow),
        },
    )
    yield "database", {"commits": counted("commits", 17_000 / slow), "temp_bytes": 0}


def write_table(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    """One observer's table."""
    pa.parquet.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
