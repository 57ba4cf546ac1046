"""Builders of whole run folders, written through the real nouns and the real store.

`build_run(folder)` gives what a measurement of seed 002's kind leaves: two shards of user login and
logout, 40 s with a warm-up of 5 s, a checkpoint in the middle that slows it down. Numbers come from
a seeded generator, so every build is the same. Options leave things out, as a kill would.

>>> run = build_run(Path("/tmp/x"), RunOptions(missing=("summary.json",)))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.contract import (
    ClientResult,
    ClockAnchor,
    EngineFacts,
    ErrorSeen,
    Failed,
    OwnCost,
    Plan,
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
    GeneratorUse,
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
from tests.simulation import (
    MONOTONIC_NS,
    SECOND_NS,
    WALL_NS,
    HlogWriter,
    Recorder,
    RunOptions,
    Simulation,
    counters,
    write_observations,
)

__all__ = ["RunOptions", "build_run", "build_trial", "write_trial"]


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
        generator=GeneratorUse(of_ceiling=0.23, busy=0.31, ceiling_per_core_per_s=140_000),
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
        transaction_types=tuple(build_types(simulation, deadlocks)),
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


def build_types(simulation: Simulation, deadlocks: Failed) -> Iterator[TransactionTypeResult]:
    """Results of each type; the deadlocks are the first one's."""
    for index, (name, one) in enumerate(simulation.total.items()):
        yield TransactionTypeResult(
            name=name,
            weight=1,
            counters=counters(one.count, failed=deadlocks if not index else Failed()),
            server_commits=one.count * 2,
            times=Times(service=one.series()),
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
