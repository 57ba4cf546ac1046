"""The boundary between lab and engine: the plan that goes in, summary and intervals that come out.

These shapes are written twice, here and in `engine/src/plan.rs` and `engine/src/results.rs`;
`docs/schemas/` holds the JSON Schemas generated from this file, and a test holds both halves to
them. A changed shape raises `CONTRACT_VERSION`; files of older versions stay readable.

Times are `_ns` on the engine's monotonic clock; `ClockAnchor` ties that clock to the wall clock.
Secrets never stand here: a password reaches the engine as PGPASSWORD in its environment.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

CONTRACT_VERSION = 1

# What the engine reads and writes in a trial's folder anyway.
ENGINE_FILES = frozenset(
    {
        "plan.json",
        "summary.json",
        "intervals.jsonl",
        "history.jsonl",
        "transactions.hlog",
        "statements.hlog",
    }
)


class Noun(BaseModel):
    """Base of everything that is written to disk: frozen, and closed to unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


Protocol = Literal["simple", "extended", "prepared"]
EngineOutcome = Literal["completed", "interrupted", "aborted"]
EnginePhase = Literal["warmup", "measurement"]
TransactionOutcome = Literal[
    "committed", "serialization", "deadlock", "other", "connection", "unknown", "in_flight_at_end"
]


class Failure(Noun):
    """A result column that says whether a statement worked, for functions that swallow errors.

    A row whose column `column` holds anything but `success` makes its transaction failed (other).
    """

    column: str
    success: str


class TransactionType(Noun):
    """One named kind of transaction: a script in pgbench's language and its weight in the mix."""

    name: str
    weight: int = Field(ge=0)
    source: str = Field(description="file name for messages")
    script: str
    failure: Failure | None = None


ThinkTime = Literal["constant", "exponential"]
Arrival = Literal["poisson", "constant"]
_MOST_BACKLOG = 10_000_000


class ClosedLoop(Noun):
    """A client starts its next transaction when its last one has finished and it has thought."""

    kind: Literal["closed"] = "closed"
    think_time_s: float = Field(default=0.0, ge=0, description="the mean pause")
    think_time: ThinkTime = Field(default="constant", description="how pauses vary")


class Stage(Noun):
    """A part of an open load with a rate of its own: constant, or in a straight line to another."""

    duration_s: float = Field(gt=0)
    rate_per_s: float = Field(ge=0, description="at its begin")
    end_rate_per_s: float | None = Field(default=None, ge=0, description="none: as at its begin")


class Backlog(Noun):
    """Bounds on the starts that are due while no client is free; what is beyond is `skipped`.

    Several threads each keep to their share of `backlog_limit` (rounded up).
    """

    backlog_limit: int | None = Field(default=None, ge=1, le=_MOST_BACKLOG)
    backlog_limit_s: float | None = Field(default=None, gt=0, description="longest wait of one")


class OpenLoop(Backlog):
    """Transactions arrive whether or not earlier ones have finished: at one rate or in stages.

    Stages begin with the measurement; the warm-up goes at the rate the first one begins with, and
    the rate the last one ends with stays. `shared`: any client that is free takes the next start;
    `per_client`: each client has a schedule of its own at its part of the rate.
    """

    kind: Literal["open"] = "open"
    rate_per_s: float | None = Field(default=None, gt=0)
    stages: tuple[Stage, ...] = ()
    arrival: Arrival = "poisson"
    schedule: Literal["shared", "per_client"] = "shared"

    @model_validator(mode="after")
    def _one_course(self) -> Self:
        if (self.rate_per_s is None) != bool(self.stages):
            raise ValueError("give either rate_per_s or stages")
        rates = [rate for stage in self.stages for rate in (stage.rate_per_s, stage.end_rate_per_s)]
        if self.stages and not any(rates):
            raise ValueError("the rates of all stages are 0")
        return self


class PartlyOpenLoop(Backlog):
    """Sessions arrive at a rate; each is a client that does some transactions one after the other.

    The first one's intended start is the arrival of its session, the others' when the client has
    thought. Sessions share the clients' connections: none is opened or closed for one.
    """

    kind: Literal["partly_open"] = "partly_open"
    sessions_per_s: float = Field(gt=0)
    arrival: Arrival = "poisson"
    transactions_per_session: int = Field(ge=1, lt=2**32)
    think_time_s: float = Field(default=0.0, ge=0, description="the mean pause within a session")
    think_time: ThinkTime = "constant"


Load = Annotated[ClosedLoop | OpenLoop | PartlyOpenLoop, Field(discriminator="kind")]


class Retry(Noun):
    """Whether a transaction that failed by serialization or deadlock is tried again.

    A try draws the same random numbers as the first one, and keeps what earlier ones assigned to
    variables, as pgbench does. Its time counts. No try begins after the end of the measurement.
    """

    max_tries: int = Field(ge=0, lt=2**32, description="the first one included; 0: no limit")
    max_time_s: float | None = Field(
        default=None, gt=0, description="no try begins later than this after the intended start"
    )


class Reconnect(Noun):
    """How a client connects again: at once, then after pauses that double."""

    first_pause_s: float = Field(default=0.05, gt=0)
    longest_pause_s: float = Field(default=1.0, gt=0)
    attempt_s: float = Field(default=10.0, gt=0, description="how long one attempt may take")
    give_up_s: float = Field(
        default=60.0, gt=0, description="a client without a session for this long ends"
    )


class TransactionLog(Noun):
    """A sample of transactions, one `LoggedTransaction` a line."""

    rate: float = Field(gt=0, le=1, description="share of transactions")
    file: str = Field(default="transactions.log.jsonl", pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$")

    @model_validator(mode="after")
    def _not_ours(self) -> Self:
        if self.file in ENGINE_FILES:
            raise ValueError(f"transaction_log.file must not be the engine's own {self.file}")
        return self


class Plan(Noun):
    """What the engine is told: `plan.json`. Exactly one of the two lengths is given."""

    version: Literal[1] = 1
    name: str
    conninfo: str = Field(description="libpq conninfo or URI, without a password")
    protocol: Protocol = "prepared"
    clients: int = Field(ge=1)
    threads: int = Field(default=0, ge=0, description="0: by the engine's own rule")
    cpus: tuple[int, ...] = Field(
        default=(), description="CPUs to pin worker threads to; empty: none"
    )
    reactor: Literal["auto", "io_uring", "epoll"] = "auto"
    receive: Literal["multishot", "oneshot"] = Field(
        default="multishot", description="how io_uring receives"
    )
    seed: int = Field(ge=0, lt=2**64)
    load: Load = ClosedLoop()
    response_time_limit_s: float | None = Field(
        default=None, gt=0, description="committed transactions above it are counted as late"
    )
    warmup_s: float = Field(default=0.0, ge=0, description="at most, where it is told to end")
    warmup_ends: Literal["time", "told"] = Field(
        default="time", description="told: SIGUSR1 ends it with the interval it comes in"
    )
    duration_s: float | None = Field(default=None, gt=0)
    transactions_per_client: int | None = Field(default=None, ge=1)
    interval_s: float = Field(default=1.0, gt=0)
    connect_deadline_s: float = Field(default=30.0, gt=0)
    min_clients: int | None = Field(
        default=None,
        ge=1,
        description="clients that must have a session at the start; None: one, and none refused",
    )
    drain_deadline_s: float = Field(default=30.0, gt=0)
    statement_timeout_s: float | None = Field(
        default=None, gt=0, description="a request that takes longer is cancelled"
    )
    retry: Retry | None = None
    on_connection_loss: Literal["abort", "reconnect"] = "abort"
    reconnect: Reconnect = Reconnect()
    transaction_log: TransactionLog | None = None
    history: bool = Field(default=False, description="write `history.jsonl`")
    variables: dict[str, str] = Field(default_factory=dict, description="as pgbench's -D")
    transaction_types: tuple[TransactionType, ...] = Field(min_length=1)
    session_settings: tuple[str, ...] = Field(
        default=("synchronous_commit",),
        description="settings read with SHOW in a session of the load",
    )
    output_dir: str

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.duration_s is None) == (self.transactions_per_client is None):
            raise ValueError("give either duration_s or transactions_per_client")
        return self

    @model_validator(mode="after")
    def _warmup_can_be_told_to_end(self) -> Self:
        if self.warmup_ends == "told" and self.warmup_s == 0:
            raise ValueError('warmup_ends "told" needs warmup_s, after which it ends anyway')
        if self.warmup_ends == "told" and isinstance(self.load, OpenLoop) and self.load.stages:
            raise ValueError('warmup_ends must be "time" where the load has stages')
        return self

    @model_validator(mode="after")
    def _enough_clients(self) -> Self:
        if self.min_clients is not None and self.min_clients > self.clients:
            raise ValueError("min_clients must be at most clients")
        return self


class Failed(Noun):
    """Transactions that failed, by class of SQLSTATE. `failed` is the sum of the four."""

    serialization: int = 0
    deadlock: int = 0
    other: int = 0
    connection: int = 0

    @property
    def total(self) -> int:
        """All failed transactions."""
        return self.serialization + self.deadlock + self.other + self.connection


class Counters(Noun):
    """A partition: scheduled = committed + failed + unknown + skipped + in_flight_at_end."""

    scheduled: int = 0
    committed: int = 0
    failed: Failed = Failed()
    unknown: int = 0
    skipped: int = 0
    in_flight_at_end: int = 0
    retried: int = 0
    retries: int = 0
    late: int = Field(default=0, description="of the committed: above response_time_limit_s")


class Series(Noun):
    """Times of one kind: exact count, sum and sum of squares; percentiles from the histogram."""

    count: int
    sum_ns: int
    sum_squares_ns2: int
    min_ns: int
    max_ns: int
    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    p99_9_ns: int
    p99_99_ns: int

    @property
    def mean_ns(self) -> float:
        """Arithmetic mean; 0 for an empty series."""
        return self.sum_ns / self.count if self.count else 0.0

    @property
    def stddev_ns(self) -> float:
        """Population standard deviation (as pgbench prints); 0 for an empty series."""
        if not self.count:
            return 0.0
        # In whole numbers first: the two terms are large and nearly equal.
        variance = (self.count * self.sum_squares_ns2 - self.sum_ns**2) / self.count**2
        return math.sqrt(max(variance, 0.0))


class Times(Noun):
    """Times of committed transactions. Without a schedule: no lag, and response = service."""

    service: Series
    lag: Series | None = None
    response: Series | None = None


class EngineFacts(Noun):
    """Which engine did this, and how."""

    version: str
    reactor: Literal["io_uring", "epoll"]
    threads: int
    pid: int


class ClockAnchor(Noun):
    """One instant read on both clocks."""

    monotonic_ns: int
    wall_unix_ns: int


class Timeline(Noun):
    """When the engine reached what, on its monotonic clock; None where it never did."""

    connect_begin_ns: int
    connect_end_ns: int | None = None
    warmup_begin_ns: int | None = None
    measurement_begin_ns: int | None = None
    measurement_end_ns: int | None = Field(
        default=None, description="no transaction was started after this (intended starts count)"
    )
    drain_end_ns: int | None = Field(
        default=None, description="the last one in flight had finished"
    )


class TransactionTypeResult(Noun):
    """What became of one transaction type during the measurement."""

    name: str
    weight: int
    counters: Counters
    server_commits: int
    times: Times


class StatementResult(Noun):
    """One command of one script. `number` counts commands from 1; meta commands are timed too."""

    transaction_type: str
    number: int
    kind: Literal["sql", "meta"]
    text: str
    time: Series
    rows: int
    errors: int
    copy_bytes: int = Field(default=0, description="bytes of COPY data the server sent")


class ErrorSeen(Noun):
    """One kind of error: same SQLSTATE, same place. `message` is the first one's primary text."""

    sqlstate: str | None
    message: str
    transaction_type: str | None
    statement: int | None
    phase: EnginePhase | None
    count: int
    first_ns: int
    last_ns: int


class Outage(Noun):
    """Connections were lost: from the first one until all lost ones had a session again.

    The two successes bound the longest time in which no client committed anything, from the last
    commit before the loss to the first one after all was restored.
    """

    lost_ns: int
    connections_lost: int
    attempts: int = Field(description="attempts to connect again")
    restored_ns: int | None = None
    last_success_ns: int | None = None
    first_success_ns: int | None = None

    @property
    def without_commit_s(self) -> float | None:
        """The longest time without a commit; None where it had no begin or no end."""
        if self.last_success_ns is None or self.first_success_ns is None:
            return None
        return (self.first_success_ns - self.last_success_ns) / 1e9


class ClientResult(Noun):
    """One client's share of the measurement: the basis of fairness."""

    committed: int
    sum_service_ns: int


class OwnCost(Noun):
    """What the measurement cost the engine itself, and how well it kept its own time.

    All its threads, from begin to end of the measurement. `schedule_error` is how late timers that
    nothing but the engine and its CPU could delay (starts for a waiting client, think times,
    sleeps) were acted upon; waiting for a free client is not in it, as it is in the lag.
    """

    cpu_user_ns: int
    cpu_sys_ns: int
    max_rss_bytes: int
    loops: int = Field(description="turns of the reactors")
    events: int = Field(description="completions handled; events / loops is the batch size")
    run_delay_ns: int | None = Field(
        default=None, description="worker threads were ready to run and waited for a CPU"
    )
    batch_sizes: tuple[int, ...] = Field(
        default=(), description="turns that found 0, 1, 2-3, 4-7, 8-15, … completions"
    )
    schedule_error: Series | None = None


class Summary(Noun):
    """What the engine found: `summary.json`, written when it ends, however it ends."""

    version: Literal[1] = 1
    engine: EngineFacts
    outcome: EngineOutcome
    message: str | None = Field(default=None, description="why it was not completed")
    clock: ClockAnchor
    timeline: Timeline
    clients_asked: int
    clients_connected: int
    connect_time: Series | None = None
    server_version: str | None = None
    session_settings: dict[str, str]
    warmup: Counters
    warmup_by_type: dict[str, Counters]
    warmup_server_commits: int
    measurement: Counters
    server_commits: int
    times: Times
    transaction_types: tuple[TransactionTypeResult, ...]
    statements: tuple[StatementResult, ...]
    clients: tuple[ClientResult, ...]
    errors: tuple[ErrorSeen, ...]
    outages: tuple[Outage, ...] = ()
    notices: int = Field(default=0, description="notices and warnings to clients at work")
    statement_timeouts: int = Field(default=0, description="requests cancelled for their time")
    transaction_log_dropped: int = Field(
        default=0, description="lines the sampled log lacks because the writer could not keep up"
    )
    own_cost: OwnCost | None = None

    @property
    def measured_s(self) -> float | None:
        """Length of the measurement: first to last permitted start."""
        begin, end = self.timeline.measurement_begin_ns, self.timeline.measurement_end_ns
        return None if begin is None or end is None else (end - begin) / 1e9

    @property
    def throughput_per_s(self) -> float | None:
        """Committed transactions that started in the measurement, per second of it.

        Counting by start is unbiased: those under way when it began belong to the warm-up, those
        under way when it ended are completed and counted.
        """
        measured_s = self.measured_s
        return self.measurement.committed / measured_s if measured_s else None

    @property
    def goodput_per_s(self) -> float | None:
        """As `throughput_per_s`, without those above the plan's response time limit."""
        measured_s = self.measured_s
        punctual = self.measurement.committed - self.measurement.late
        return punctual / measured_s if measured_s else None

    @property
    def throughput_with_connect_per_s(self) -> float | None:
        """As `throughput_per_s`, with the time it took to connect all clients in the divisor."""
        measured_s, connected = self.measured_s, self.timeline.connect_end_ns
        if not measured_s or connected is None:
            return None
        connect_s = (connected - self.timeline.connect_begin_ns) / 1e9
        return self.measurement.committed / (measured_s + connect_s)


class IntervalType(Noun):
    """One transaction type within one interval."""

    counters: Counters
    service: Series
    lag: Series | None = None
    response: Series | None = None


class Interval(Noun):
    """One line of `intervals.jsonl`: what completed between `begin_ns` and `end_ns`.

    A transaction belongs to the phase it was started in, so the first seconds of the measurement
    may be covered by one more line of phase `warmup` for those under way when the warm-up ended.
    The lines of a phase add up to its totals in the summary.
    """

    version: Literal[1] = 1
    phase: EnginePhase
    begin_ns: int
    end_ns: int
    counters: Counters
    server_commits: int
    in_flight: int
    clients_connected: int | None = Field(
        default=None, description="clients with a session at its end"
    )
    times: Times
    types: dict[str, IntervalType]
    cpu_user_ns: int
    cpu_sys_ns: int


class LoggedTransaction(Noun):
    """One line of the sampled log: a transaction that ended, however it did."""

    client: int
    transaction_type: str
    phase: EnginePhase
    outcome: TransactionOutcome
    tries: int
    intended_start_ns: int
    actual_start_ns: int
    end_ns: int


class HistoryEvent(Noun):
    """One line of `history.jsonl`: a try of a transaction began or ended.

    `sequence` numbers the tries of a client from 1, the warm-up included. `acknowledged`: the
    server answered everything; `failed`: it did not commit, or not as a whole; `unknown`: a message
    that could commit was sent and no answer came. Lines of one client are in order; a try without
    a second line was under way when the engine was killed: its outcome is unknown, too.
    """

    client: int
    sequence: int
    event: Literal["begin", "acknowledged", "failed", "unknown"]
    transaction_type: str
    at_ns: int


class LoadSection(Noun):
    r"""One part of a workload's `load.sql`, run over the ranges of 1…`rows`.

    `script` is either SQL that uses `:lo` and `:hi`, or a `COPY … FROM STDIN;` followed by a
    template of one row, which the engine fills in for every `:row` of a range:

        COPY pgbench_accounts (aid, bid, abalance) FROM STDIN;
        \set bid (:row - 1) / 100000 + 1
        :row<TAB>:bid<TAB>0
        \.
    """

    name: str
    rows: int = Field(ge=0)
    source: str
    script: str


class LoadPlan(Noun):
    """What `pgdyno-engine load` is told. It prints a `LoadProgress` line four times a second."""

    version: Literal[1] = 1
    conninfo: str
    connections: int = Field(ge=1)
    variables: dict[str, str] = {}
    sections: tuple[LoadSection, ...]


class LoadProgress(Noun):
    """One line of `pgdyno-engine load`'s output; a section's last has rows_done = rows_total."""

    section: str
    rows_done: int
    rows_total: int
    elapsed_ns: int
