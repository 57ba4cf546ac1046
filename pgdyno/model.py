"""The nouns of an experiment and of what it leaves on disk: frozen values, next to no behaviour.

An `Experiment` asks a question with `Variant`s; each `Trial` is one independent execution of one of
them, from known state to stored result, in named `Phase`s. Every class here is written to a run
folder; `docs/results-format.md` describes the files and `docs/schemas/` holds their JSON Schemas.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from pgdyno.contract import (
    Arrival,
    Noun,
    Protocol,
    Reconnect,
    Retry,
    Stage,
    ThinkTime,
    TransactionLog,
)

FORMAT_VERSION = 1

ParameterValue = bool | int | float | str


class WorkloadChoice(Noun):
    """Which workload, with every parameter written out."""

    name: str = Field(description="a catalogue name, or the folder or .sql file it came from")
    parameters: dict[str, ParameterValue] = Field(default={})
    weights: dict[str, int] = Field(
        default={}, description="transaction type → weight, where not default"
    )


class InitdbChoice(Noun):
    """What is fixed when a cluster is made. None: as `servers.initdb` says."""

    checksums: bool | None = None
    wal_segment_bytes: int | None = Field(default=None, description="a power of two, from 11 on")
    locale: str | None = None
    encoding: str | None = None
    locale_provider: Literal["libc", "icu", "builtin"] | None = None
    icu_locale: str | None = None


class StorageChoice(Noun):
    """Folders of a private server beside its data folder. None: inside it."""

    wal: str | None = None
    temporary: str | None = None
    tablespaces: dict[str, str] = Field(default={}, description="name → folder")
    measure: bool = Field(
        default=False, description="flushes and the clock are measured, as facts of the system"
    )


class Limits(Noun):
    """What the kernel grants the processes of one role at most, beside the CPUs they run on."""

    cpu_share: float | None = Field(default=None, gt=0, description="of one CPU: 0.5, 2")
    memory_bytes: int | None = Field(default=None, gt=0)


class StandbyChoice(Noun):
    """A server that streams from the primary."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", description="its role: standby-1")
    synchronous: bool = Field(default=False, description="commits on the primary wait for it")
    slot: bool = Field(default=False, description="the primary keeps its WAL in a slot")
    settings: dict[str, str] = Field(default={}, description="where not the primary's")
    port: int | None = Field(default=None, description="none: a free one (with tcp)")
    cpus: tuple[int, ...] = Field(default=(), description="empty: any")
    limits: Limits = Limits()


class PoolerChoice(Noun):
    """What stands between the load and the servers."""

    kind: Literal["pgpool", "pgbouncer", "haproxy"]
    mode: Literal["session", "transaction", "statement"] | None = Field(
        default=None, description="how long a client keeps a server connection; none: its default"
    )
    backends: tuple[str, ...] = Field(
        default=(), description="roles of the servers it sends to; empty: as its kind does"
    )
    settings: dict[str, str] = Field(default={}, description="its own, in its own words")
    port: int | None = Field(default=None, description="none: a free one (with tcp)")
    cpus: tuple[int, ...] = Field(default=(), description="empty: any")
    limits: Limits = Limits()


class SystemChoice(Noun):
    """Which PostgreSQL: a private one of a version or path with settings, or the person's own.

    A private one may have standbys that stream from it and a pooler in front.
    """

    pg: str | None = Field(
        default=None,
        description="version, path, build:NAME or git:REVISION; none: the newest found",
    )
    settings: dict[str, str] = Field(default={})
    initdb: InitdbChoice = InitdbChoice()
    data: str | None = Field(
        default=None, description="data folder to keep; none: temporary, removed"
    )
    storage: StorageChoice = StorageChoice()
    tcp: bool = Field(
        default=False, description="listen on loopback too, with a generated password"
    )
    port: int | None = Field(default=None, description="port of a private server; none: a free one")
    cpus: tuple[int, ...] = Field(default=(), description="CPUs of a private server; empty: any")
    limits: Limits = Limits()
    standbys: tuple[StandbyChoice, ...] = ()
    quorum: int | None = Field(
        default=None,
        ge=1,
        description="commits wait for any so many synchronous standbys; none: for all of them",
    )
    pooler: PoolerChoice | None = None
    dsn: str | None = Field(default=None, description="your server (no password is stored)")


class Sessions(Noun):
    """A partly open load: sessions arrive, and each is some transactions, one after the other."""

    rate_per_s: float = Field(gt=0)
    transactions: int = Field(ge=1, lt=2**32, description="of each session")


class LoadChoice(Noun):
    """How hard and how long."""

    clients: int = Field(default=16, ge=1)
    threads: int = Field(default=0, ge=0, description="0: by the engine's own rule")
    cpus: tuple[int, ...] = Field(default=(), description="CPUs of the engine; empty: any")
    protocol: Protocol = "prepared"
    warmup_s: float = Field(default=10.0, ge=0)
    duration_s: float | None = 60.0
    transactions_per_client: int | None = None
    rate_per_s: float | None = Field(default=None, description="open loop; none: closed loop")
    stages: tuple[Stage, ...] = Field(default=(), description="open loop at rates that change")
    sessions: Sessions | None = Field(default=None, description="partly open loop")
    arrival: Arrival = Field(default="poisson", description="how arrivals are spaced")
    schedule: Literal["shared", "per_client"] = Field(
        default="shared", description="who takes an arrival of an open loop"
    )
    backlog_limit_s: float | None = Field(default=None, gt=0, description="longest wait of a start")
    response_time_limit_s: float | None = Field(default=None, gt=0, description="above it: late")
    think_time_s: float = 0.0
    think_time: ThinkTime = Field(default="constant", description="how pauses vary")
    retry: Retry | None = Field(default=None, description="none: a failed transaction stays failed")
    reconnect: Reconnect | None = Field(
        default=None, description="none: a client that loses its connection ends"
    )
    statement_timeout_s: float | None = Field(
        default=None, gt=0, description="the engine cancels what takes longer"
    )
    min_clients: int | None = Field(
        default=None, ge=1, description="enough to begin, whatever becomes of the others"
    )
    transaction_log: TransactionLog | None = Field(default=None, description="a sample of all")
    history: bool = Field(default=False, description="begin and end of every try are written")
    interval_s: float = 1.0
    seed: int = 0
    reload: bool = Field(default=False, description="load again even where loaded data fits")
    prewarm: bool = True
    steady_warmup: bool = Field(
        default=False, description="end the warm-up at steady state, `warmup_s` at the latest"
    )


class Variant(Noun):
    """One combination of levels: what one trial runs."""

    name: str
    levels: dict[str, str] = Field(default={}, description="factor → level, as the person wrote it")
    workload: WorkloadChoice
    system: SystemChoice
    load: LoadChoice
    before: str | None = Field(
        default=None, description="shell command before each trial, once its server runs"
    )
    copy_of: str | None = Field(
        default=None, description="the variant that this one repeats, so that noise can be told"
    )


class Factor(Noun):
    """What is varied on purpose, with its levels in the person's order."""

    name: str
    levels: tuple[str, ...] = Field(min_length=1)


class Response(Noun):
    """What the experiment judges: one value of a metric for each trial."""

    metric: str = Field(default="throughput_per_s", description="a name of `experiment.responses`")
    direction: Literal["higher", "lower"] = Field(default="higher", description="which is better")
    matters: float = Field(
        default=0.02, gt=0, lt=1, description="the relative difference that would matter"
    )


class Stopping(Noun):
    """When there are trials enough. Replicates are counted for each variant."""

    policy: Literal["fixed", "precision", "budget"] = "fixed"
    replicates: int = Field(default=1, ge=1, description="fixed: how many; else: at least")
    max_replicates: int | None = Field(default=None, ge=1, description="precision: at most")
    precision: float | None = Field(
        default=None, gt=0, lt=1, description="half width of the effect's interval to reach"
    )
    budget_s: float | None = Field(default=None, gt=0, description="budget: whole time")


ResetMethod = Literal["auto", "template", "clone", "copy", "load", "none"]


class Experiment(Noun):
    """`experiment.toml` as resolved: every default written out, so that it can be run again."""

    version: Literal[1] = 1
    id: str
    name: str
    question: str | None = None
    created: str = Field(description="UTC, ISO 8601")
    pgdyno_version: str
    variants: tuple[Variant, ...] = Field(min_length=1)
    baseline: str | None = None
    factors: tuple[Factor, ...] = ()
    responses: tuple[Response, ...] = ()
    stopping: Stopping = Stopping()
    aa: bool = Field(default=False, description="the baseline runs twice in each block, as two")
    reset: ResetMethod = Field(default="auto", description="how a trial gets its loaded state")
    order_seed: int = 0

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, document: Any) -> Any:
        """Folders of 0.1 said `replicates` where there was no other way to stop."""
        if isinstance(document, dict) and "replicates" in document:
            document = dict(document)
            document["stopping"] = {"replicates": document.pop("replicates")}
        return document


PhaseName = Literal[
    "provision", "load", "prewarm", "warmup", "measure", "check", "collect", "reset"
]
TrialOutcome = Literal["completed", "interrupted", "failed"]


class Phase(Noun):
    """One part of a trial. Seconds since the trial began; `end_s` None where it did not end."""

    name: PhaseName
    begin_s: float
    end_s: float | None = None
    note: str | None = None


class StateIdentity(Noun):
    """Whether loaded data may be reused: equal `digest`, equal data; the rest is its make-up."""

    digest: str
    server_version_num: int
    block_size: int
    wal_block_size: int
    initdb_options: tuple[str, ...] = ()
    workload: str
    data_version: int
    parameters: dict[str, ParameterValue]


class Placement(Noun):
    """Where a role runs: a host and the CPUs it may use."""

    host: str
    cpus: tuple[int, ...]


DurabilityClass = Literal["D0", "D1", "D2", "D3", "D3w", "D4", "D?", "none"]


class Durability(Noun):
    """What an acknowledged commit is worth. `none`: nothing was written, so no class applies."""

    durability_class: DurabilityClass
    because: tuple[str, ...] = Field(description="the evidence, one sentence each")
    unlogged_tables: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """As printed beside a throughput: `D2`, `D1 +unlogged`."""
        return self.durability_class + (" +unlogged" if self.unlogged_tables else "")


class LoadStep(Noun):
    """One timed step of loading data: create, rows, indexes or vacuum."""

    name: Literal["create", "rows", "indexes", "vacuum"]
    duration_s: float
    rows: int | None = None
    bytes: int | None = None


class LoadReport(Noun):
    """How the data came to be there."""

    reused: bool
    reason: str
    adopted: bool = Field(default=False, description="tables that pgdyno did not make")
    steps: tuple[LoadStep, ...] = ()
    data_bytes: int | None = None
    memory_bytes: int | None = None


class PrewarmReport(Noun):
    """What was done to bring data into memory, and what share of it is there now."""

    method: Literal["pg_prewarm", "read", "none"]
    duration_s: float
    bytes: int
    shared_buffers_share: float | None = None


class CheckResult(Noun):
    """One rule of one check. `undecided`: it could not be judged, and `detail` says why."""

    check: str
    rule: str
    after: Literal["load", "measurement"]
    verdict: Literal["held", "broken", "undecided"]
    detail: str


class Checks(Noun):
    """`checks.json`: what the workload's checks said, after load and after the measurement."""

    version: Literal[1] = 1
    results: tuple[CheckResult, ...]


class ResetReport(Noun):
    """How the trial came by its loaded state without loading again."""

    method: Literal["template", "clone", "copy", "load", "none"]
    duration_s: float
    bytes: int | None = None
    reason: str = Field(description="why this method")


class StateAge(Noun):
    """What the data had been through when the trial began; counted over the workload's tables."""

    dead_rows: int | None = None
    live_rows: int | None = None
    heap_bytes: int | None = None
    index_bytes: int | None = None
    since_vacuum_s: float | None = None
    since_analyze_s: float | None = None
    since_checkpoint_s: float | None = None
    wal_since_checkpoint_bytes: int | None = None
    checkpoint_distance_bytes: int | None = Field(
        default=None, description="WAL until the next checkpoint by max_wal_size"
    )
    measurements: int | None = Field(
        default=None, description="measurements on this copy of the data before this one"
    )


class GeneratorUse(Noun):
    """How much of what it can do the load generator did. None where it is not known."""

    of_ceiling: float | None = Field(default=None, description="throughput / its ceiling")
    busy: float | None = Field(default=None, description="CPU time / time of the cores it had")
    ceiling_per_core_per_s: float | None = Field(
        default=None, description="transactions in a second of its CPU time, on a null server"
    )
    calibrate: str | None = Field(
        default=None, description="the command that measures the ceiling, where it is not known"
    )


class Trial(Noun):
    """`trial.json`: one execution of one variant, rewritten whenever a phase begins or ends."""

    version: Literal[1] = 1
    number: int
    variant: str
    replicate: int = 1
    began: str = Field(description="UTC, ISO 8601")
    outcome: TrialOutcome | None = Field(default=None, description="None while it runs")
    reason: str | None = None
    phases: tuple[Phase, ...] = ()
    state: StateIdentity | None = None
    placement: dict[str, Placement] = Field(default={}, description="role → host and CPUs")
    durability: Durability | None = None
    block: int | None = Field(default=None, description="the randomised block, from 1")
    load: LoadReport | None = None
    reset: ResetReport | None = None
    state_age: StateAge | None = None
    prewarm: PrewarmReport | None = None
    generator: GeneratorUse | None = None
    notices: tuple[str, ...] = Field(default=(), description="what went wrong and stopped nothing")

    @property
    def server_place(self) -> Placement | None:
        """Where the server runs that takes the writes, be it alone or not."""
        return self.placement.get("server") or self.placement.get("primary")

    @property
    def system_roles(self) -> tuple[str, ...]:
        """The roles of the system under test: all but those of pgdyno itself."""
        return tuple(role for role in self.placement if role not in ("engine", "observers"))


class TableSize(Noun):
    """One table or index and its size."""

    schema_name: str
    name: str
    kind: Literal["table", "index", "toast", "materialized view", "partitioned table"]
    table: str | None = Field(default=None, description="the table an index belongs to")
    unlogged: bool = False
    bytes: int
    rows_estimate: int | None = None


class Sizes(Noun):
    """`sizes.json`: before and after the measurement."""

    version: Literal[1] = 1
    database_bytes_before: int
    database_bytes_after: int | None = None
    before: tuple[TableSize, ...]
    after: tuple[TableSize, ...] = ()


class SettingValue(Noun):
    """A server setting and where it comes from."""

    name: str
    value: str = Field(description="as SHOW prints it, with its unit")
    default: str | None = Field(default=None, description="compiled-in value")
    source: str


class Settings(Noun):
    """`settings.json`: the server, and the settings that differ from what it was compiled with."""

    version: Literal[1] = 1
    server_version: str
    server_version_num: int
    non_default: tuple[SettingValue, ...]
    all: dict[str, str]
    compiler_flags: str | None = Field(
        default=None, description="CFLAGS of the server's build; None where it does not tell"
    )
    build: dict[str, str] | None = Field(
        default=None, description="how pgdyno fetched or built the server; None: it did not"
    )


class HostFacts(Noun):
    """One host: what it is, as far as it can be told."""

    name: str
    cpu_model: str | None = None
    cpus: int
    memory_bytes: int
    swap_bytes: int = 0
    kernel: str
    operating_system: str | None = None
    virtualization: str | None = None
    frequency_governor: str | None = None
    transparent_huge_pages: str | None = None
    clock_source: str | None = None
    clock_read_ns: float | None = Field(
        default=None, description="time of one reading of the clock; where it was asked for"
    )


class StorageFacts(Noun):
    """The storage below a folder."""

    folder: str
    filesystem: str
    device: str | None = None
    mount_options: str | None = None
    scheduler: str | None = None
    write_cache: str | None = None
    free_bytes: int | None = None
    flushes_per_s: dict[str, float] = Field(
        default={}, description="wal_sync_method → flushes of 8 kB a second; where it was asked for"
    )


class Environment(Noun):
    """`environment.json`: hosts, storage and the tools' own versions."""

    version: Literal[1] = 1
    pgdyno_version: str
    hosts: tuple[HostFacts, ...]
    storage: tuple[StorageFacts, ...] = ()
    python_version: str
