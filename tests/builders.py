"""Builders of whole run folders, written through the real nouns and the real store.

`build_run(folder)` gives what a measurement of seed 002's kind leaves: two shards of user login and
logout, 40 s with a warm-up of 5 s, a checkpoint in the middle that slows it down. Numbers come from
a seeded generator, so every build is the same. Options leave things out, as a kill would.

>>> run = build_run(Path("/tmp/x"), RunOptions(missing=("summary.json",)))  # doctest: +SKIP
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

from pgdyno.contract import (
    ClientResult,
    ClockAnchor,
    Counters,
    EngineFacts,
    ErrorSeen,
    Failed,
    Interval,
    IntervalType,
    OwnCost,
    Plan,
    Series,
    StatementResult,
    Summary,
    Timeline,
    Times,
    TransactionType,
    TransactionTypeResult,
)
from pgdyno.experiment.store import Run, StoredTrial, new_run
from pgdyno.model import (
    CheckResult,
    Checks,
    Durability,
    Environment,
    Experiment,
    HostFacts,
    LoadChoice,
    LoadReport,
    LoadStep,
    Phase,
    Placement,
    PrewarmReport,
    Settings,
    SettingValue,
    Sizes,
    StateIdentity,
    StorageFacts,
    SystemChoice,
    TableSize,
    Trial,
    Variant,
    WorkloadChoice,
)
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
        return Series(
            count=self.count,
            sum_ns=self.sum_ns,
            sum_squares_ns2=self.sum_squares_ns2,
            min_ns=self.min_ns if self.count else 0,
            max_ns=self.max_ns,
            p50_ns=distribution.value_at(0.5),
            p90_ns=distribution.value_at(0.9),
            p95_ns=distribution.value_at(0.95),
            p99_ns=distribution.value_at(0.99),
            p99_9_ns=distribution.value_at(0.999),
            p99_99_ns=distribution.value_at(0.9999),
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


def build_run(output: Path, options: RunOptions | None = None) -> Run:
    """A run of one variant and one trial below `output`."""
    options = options or RunOptions()
    experiment = build_experiment(options)
    run = new_run(experiment, output)
    if options.tags:
        run.set_tags(options.tags)
    stored = run.new_trial(build_trial(options))
    if not options.empty:
        write_trial(stored, options)
    for name in options.missing:
        (stored.folder / name).unlink()
    return run


def write_trial(stored: StoredTrial, options: RunOptions) -> None:
    """Everything below a trial folder but `trial.json`."""
    simulation = Simulation(options)
    hlog = HlogWriter(stored.folder)
    with (stored.folder / "intervals.jsonl").open("w") as file:
        for interval in simulation.intervals(hlog):
            file.write(interval.model_dump_json() + "\n")
    for (name, number), recorder in simulation.statements.items():
        hlog.statements(f"{name}:{number}", simulation.measurement_ns, recorder)
    stored.write("plan.json", build_plan(stored, options))
    stored.write("summary.json", build_summary(simulation, options))
    stored.write("settings.json", build_settings(options))
    stored.write("sizes.json", build_sizes(options))
    stored.write("environment.json", build_environment())
    stored.write("checks.json", Checks(results=build_checks(options)))
    write_observations(stored.folder / "observations", simulation)


def build_experiment(options: RunOptions) -> Experiment:
    variant = Variant(
        name=options.name,
        workload=WorkloadChoice(
            name="userlogin",
            parameters={"users": 2_000_000, "shards": options.shards, "transactions": "both"},
        ),
        system=SystemChoice(pg="15", settings={"shared_buffers": "512MB"}),
        load=LoadChoice(
            clients=options.clients, warmup_s=options.warmup_s, duration_s=options.duration_s
        ),
    )
    return Experiment(
        id="k7m2qd",
        name=options.name,
        question=options.question,
        created="2026-11-20T18:40:00+00:00",
        pgdyno_version="0.1.0",
        variants=(variant,),
    )


def build_trial(options: RunOptions) -> Trial:
    steps = (
        LoadStep(name="create", duration_s=0.04),
        LoadStep(name="rows", duration_s=9.8, rows=4_000_000, bytes=742_000_000),
        LoadStep(name="indexes", duration_s=2.9),
        LoadStep(name="vacuum", duration_s=2.2),
    )
    ends = (2.1, 17.0, 18.4, 18.6 + options.warmup_s)
    return Trial(
        number=1,
        variant=options.name,
        began="2026-11-20T18:40:00+00:00",
        outcome=options.outcome,
        reason=options.reason,
        phases=(
            Phase(name="provision", begin_s=0, end_s=ends[0]),
            Phase(name="load", begin_s=ends[0], end_s=ends[1]),
            Phase(name="prewarm", begin_s=ends[1], end_s=ends[2]),
            Phase(name="warmup", begin_s=ends[2] + 0.2, end_s=ends[3]),
            Phase(name="measure", begin_s=ends[3], end_s=ends[3] + options.duration_s),
        ),
        state=StateIdentity(
            digest="9f2c41",
            server_version_num=150018,
            block_size=8192,
            wal_block_size=8192,
            workload="userlogin",
            data_version=1,
            parameters={"users": 2_000_000},
        ),
        placement={
            "server": Placement(host="local", cpus=()),
            "engine": Placement(host="local", cpus=()),
        },
        durability=Durability(
            durability_class=options.durability,
            because=(
                "synchronous_commit is on in the load's sessions",
                "fsync is on and full_page_writes is on",
                "no synchronous standby is named",
            ),
        ),
        load=LoadReport(
            reused=False,
            reason="the database held no data",
            steps=steps,
            data_bytes=1_131_000_000,
            memory_bytes=8 * 1024**3,
        ),
        prewarm=PrewarmReport(
            method="pg_prewarm", duration_s=1.4, bytes=1_131_000_000, shared_buffers_share=0.47
        ),
    )


def build_plan(stored: StoredTrial, options: RunOptions) -> Plan:
    return Plan(
        name=options.name,
        conninfo="host=/var/tmp/socket user=postgres dbname=pgdyno",
        clients=options.clients,
        seed=20130417,
        warmup_s=options.warmup_s,
        duration_s=options.duration_s,
        transaction_types=tuple(
            TransactionType(
                name=f"both_{shard}",
                weight=1,
                source=f"both_{shard}.sql",
                script="\n".join(statement_texts(options, shard)),
            )
            for shard in range(options.shards)
        ),
        output_dir=str(stored.folder),
    )


def statement_texts(options: RunOptions, shard: int) -> tuple[str, str, str]:
    return (
        f"\\setrandom userid {shard * 1_000_000 + 1} {(shard + 1) * 1_000_000}",
        options.login_statement.format(shard=shard),
        f"SELECT f_user_logout_{shard}(:userid);",
    )


def build_summary(simulation: Simulation, options: RunOptions) -> Summary:
    total, warmup = Recorder(), Recorder()
    for name in simulation.types:
        total.add(simulation.total[name])
        warmup.add(simulation.warmup[name])
    deadlocks = Failed(deadlock=3)
    begin_ns, end_ns = simulation.measurement_ns, simulation.end_ns
    share = total.count // options.clients
    return Summary(
        engine=EngineFacts(version="0.1.0", reactor="io_uring", threads=1, pid=4242),
        outcome="completed",
        clock=ClockAnchor(monotonic_ns=MONOTONIC_NS, wall_unix_ns=WALL_NS),
        timeline=Timeline(
            connect_begin_ns=MONOTONIC_NS,
            connect_end_ns=MONOTONIC_NS + 46_000_000,
            warmup_begin_ns=simulation.begin_ns,
            measurement_begin_ns=begin_ns,
            measurement_end_ns=end_ns,
            drain_end_ns=end_ns + 2_300_000,
        ),
        clients_asked=options.clients,
        clients_connected=options.clients,
        server_version="15.18 (Debian 15.18-0+deb12u1)",
        session_settings={"synchronous_commit": "on"},
        warmup=counters(warmup.count),
        warmup_by_type={name: counters(one.count) for name, one in simulation.warmup.items()},
        warmup_server_commits=warmup.count * 2,
        measurement=counters(total.count, failed=deadlocks),
        server_commits=total.count * 2,
        times=Times(service=total.series()),
        transaction_types=tuple(
            TransactionTypeResult(
                name=name,
                weight=1,
                counters=counters(one.count, failed=deadlocks if not index else Failed()),
                server_commits=one.count * 2,
                times=Times(service=one.series()),
            )
            for index, (name, one) in enumerate(simulation.total.items())
        ),
        statements=tuple(build_statements(simulation, options)),
        clients=tuple(
            ClientResult(
                committed=share + (index % 5) * 9 - 18,
                sum_service_ns=total.sum_ns // options.clients,
            )
            for index in range(options.clients)
        ),
        errors=(
            ErrorSeen(
                sqlstate="40P01",
                message=options.error_message,
                transaction_type=simulation.types[0],
                statement=2,
                phase="measurement",
                count=3,
                first_ns=begin_ns + 7 * SECOND_NS,
                last_ns=begin_ns + 21 * SECOND_NS,
            ),
        ),
        own_cost=OwnCost(
            cpu_user_ns=int(options.duration_s * 0.11e9),
            cpu_sys_ns=int(options.duration_s * 0.19e9),
            max_rss_bytes=21 * 1024**2,
            loops=190_000,
            events=772_000,
        ),
    )


def build_statements(simulation: Simulation, options: RunOptions) -> Iterator[StatementResult]:
    for shard, name in enumerate(simulation.types):
        for number, text in enumerate(statement_texts(options, shard), start=1):
            recorder = simulation.statements[name, number]
            yield StatementResult(
                transaction_type=name,
                number=number,
                kind="meta" if text.startswith("\\") else "sql",
                text=text,
                time=recorder.series(),
                rows=0 if number == 1 else recorder.count,
                errors=3 if shard == 0 and number == 2 else 0,
            )


def build_settings(options: RunOptions) -> Settings:
    changed = (
        SettingValue(
            name="shared_buffers",
            value=options.setting_value,
            default="8MB",
            source="command line",
        ),
        SettingValue(name="max_wal_size", value="4GB", default="1GB", source="configuration file"),
        SettingValue(name="listen_addresses", value="", default="localhost", source="command line"),
    )
    return Settings(
        server_version="15.18 (Debian 15.18-0+deb12u1)",
        server_version_num=150018,
        non_default=changed,
        all={each.name: each.value for each in changed} | {"fsync": "on"},
    )


def build_sizes(options: RunOptions) -> Sizes:
    def tables(grown: int) -> Iterator[TableSize]:
        for shard in range(options.shards):
            name = options.table_name.format(shard=shard)
            size = 376_832_000 // options.shards
            yield TableSize(
                schema_name="public", name=name, kind="table", bytes=size, rows_estimate=1_000_000
            )
            yield TableSize(
                schema_name="public",
                name=f"{name}_pkey",
                kind="index",
                table=name,
                bytes=22_487_040,
            )
        yield TableSize(
            schema_name="public", name="user_login_rec", kind="table", bytes=8192 + grown
        )

    before, after = tuple(tables(0)), tuple(tables(41_000_000))
    return Sizes(
        database_bytes_before=sum(one.bytes for one in before),
        database_bytes_after=sum(one.bytes for one in after),
        before=before,
        after=after,
    )


def build_environment() -> Environment:
    host = HostFacts(
        name="local",
        cpu_model="AMD EPYC 7763 64-Core Processor",
        cpus=2,
        memory_bytes=8 * 1024**3,
        kernel="6.1.0-28-amd64",
        operating_system="Debian GNU/Linux 12 (bookworm)",
        virtualization="kvm",
        transparent_huge_pages="madvise",
        clock_source="tsc",
    )
    storage = StorageFacts(
        folder="/var/tmp/data",
        filesystem="ext4",
        device="/dev/vda1",
        mount_options="rw,relatime",
        scheduler="none",
        write_cache="write back",
        free_bytes=61 * 1024**3,
    )
    return Environment(
        pgdyno_version="0.1.0", hosts=(host,), storage=(storage,), python_version="3.11.2"
    )


def build_checks(options: RunOptions) -> tuple[CheckResult, ...]:
    return (
        CheckResult(
            check="users",
            rule="row.users == users",
            after="load",
            verdict="held",
            detail="2000000 = 2000000",
        ),
        CheckResult(
            check="logins",
            rule="change.login_rows >= committed.both",
            after="measurement",
            verdict="held",
            detail="one log row for each login",
        ),
        *options.extra_checks,
    )


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
