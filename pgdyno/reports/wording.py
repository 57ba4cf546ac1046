"""The sentences of a report: what ran, what it found, what that is worth. Text only, no layout.

The terminal and the page say the same things in the same words, because both take them from here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from pgdyno.contract import ErrorSeen, Plan, Summary
from pgdyno.experiment.store import DEFAULT_OUTPUT, Run
from pgdyno.model import (
    Durability,
    GeneratorUse,
    LoadChoice,
    LoadReport,
    ParameterValue,
    SystemChoice,
    WorkloadChoice,
)
from pgdyno.reports.documents import OUTCOME_WORDS, PHASE_WORDS, Missing, TrialDocuments
from pgdyno.reports.measured import Measured, Spread
from pgdyno.reports.terms import DURABILITY_COSTS, DURABILITY_NAMES
from pgdyno.units import (
    format_bytes,
    format_count,
    format_counted,
    format_duration_ns,
    format_duration_s,
    format_per_s,
    format_share,
)

PREWARM_WORDS = {"pg_prewarm": "pg_prewarm", "read": "reading them", "none": "nothing"}
"""How data were brought into memory, behind 'by'."""


NEAR_CEILING = 0.7
"""Above this share of its ceiling the load generator is a part of what was measured."""


def headline(documents: TrialDocuments, measured: Measured | None) -> str:
    """What the trial found, in one sentence."""
    if measured is None:
        return no_result(documents)
    if not measured.counters.committed:
        return f"No transaction was committed in {format_duration_s(measured.measured_s)}."
    found = f"{format_count(measured.throughput_per_s)} transactions per second"
    if measured.throughput_per_s < 100:
        found = f"{measured.throughput_per_s:.2f} transactions per second"
    if measured.response is None:
        return f"{found}, over the {format_duration_s(measured.measured_s)} that were recorded."
    half = format_duration_ns(measured.response.p50_ns)
    most = format_duration_ns(measured.response.p99_ns)
    return f"{found}; half of them within {half}, 99 of 100 within {most}."


def no_result(documents: TrialDocuments) -> str:
    """Why there is no figure to print."""
    trial = documents.trial
    reached = PHASE_WORDS[trial.phases[-1].name] if trial.phases else "its beginning"
    if trial.outcome is None:
        return f"No result: the trial never came to its end, it was last seen during {reached}."
    if trial.outcome == "completed":
        return "No result: nothing was measured."
    return f"No result: the trial {OUTCOME_WORDS[trial.outcome]} during {reached}."


def trouble(documents: TrialDocuments, measured: Measured | None) -> tuple[str, ...]:
    """What stands against the headline: work cut short, broken checks, many failures."""
    trial, summary = documents.trial, documents.summary
    sentences: list[str] = []
    if trial.outcome is None:
        sentences.append("This trial never came to its end; what follows is what it had recorded.")
    elif trial.outcome != "completed":
        why = f": {trial.reason}" if trial.reason else "."
        sentences.append(f"This trial {OUTCOME_WORDS[trial.outcome]}{why}")
    if summary is not None and summary.outcome != "completed" and not _told(documents):
        why = f": {summary.message}" if summary.message else "."
        sentences.append(f"The engine's work was {summary.outcome}{why}")
    if summary is not None and _clients_missing(summary):
        sentences.append(
            f"Only {summary.clients_connected} of {summary.clients_asked} clients had a session at "
            "the start; the others are not in these figures."
        )
    broken = [one for one in documents.checks if one.verdict == "broken"]
    if broken:
        names = ", ".join(f"{one.check} ({one.rule})" for one in broken)
        checks = "1 check is" if len(broken) == 1 else f"{len(broken)} checks are"
        sentences.append(f"The data is wrong: {checks} broken: {names}.")
    if measured is not None and measured.partial and summary is None:
        known = " and its histogram log" if measured.response else "; percentiles are not known"
        sentences.append(
            f"There is no summary of the engine: figures are added up from its intervals{known}."
        )
    if measured is not None and measured.failed_share >= 0.01:
        sentences.append(
            f"{format_share(measured.failed_share)} of the transactions failed; "
            "throughput counts only those that committed."
        )
    return tuple(sentences)


def _clients_missing(summary: Summary) -> bool:
    """Whether the load was started with fewer clients than were asked for."""
    started = summary.timeline.connect_end_ns is not None
    return started and summary.clients_connected < summary.clients_asked


def _told(documents: TrialDocuments) -> bool:
    """Whether the trial's own reason says already how the engine's work ended."""
    trial, summary = documents.trial, documents.summary
    if summary is None or trial.outcome == summary.outcome == "interrupted":
        return True
    return bool(summary.message) and (summary.message or "") in (trial.reason or "")


def anecdote(trials: int, spread: Spread | None) -> str:
    """What one trial is worth, and what the movement inside it is not."""
    if trials != 1:
        return f"{trials} trials stand behind this experiment; each is shown by itself."
    inside = ""
    if spread is not None and spread.mean_per_s:
        inside = (
            f" Inside it, throughput moved between {format_per_s(spread.lowest_per_s)} and "
            f"{format_per_s(spread.highest_per_s)} (standard deviation "
            f"{format_share(spread.share)} over {spread.intervals} intervals); "
            "that is unsteadiness, not a confidence interval."
        )
    return "One trial is an anecdote: how far a second one would differ is not known." + inside


def error_place(error: ErrorSeen) -> str:
    """Where an error was seen: `login, command 2`, and when that was not the measurement."""
    place = error.transaction_type or ""
    place += f", command {error.statement}" if error.statement else ""
    if error.phase == "measurement":
        return place
    when = "in the warm-up" if error.phase == "warmup" else "outside of the load"
    return f"{place}, {when}" if place else when


def missing_by_reason(missing: tuple[Missing, ...]) -> dict[str, list[str]]:
    """What the report lacks, by the reason why."""
    found: dict[str, list[str]] = {}
    for one in missing:
        found.setdefault(one.why, []).append(one.what)
    return found


def repeat_command(run: Run) -> str:
    """The command that runs the same again: by id where runs are looked for, else by folder."""
    if run.folder.parent.absolute() == DEFAULT_OUTPUT.absolute():
        return f"pgdyno rerun {run.experiment.id}"
    return f"pgdyno rerun {shlex.quote(str(run.folder))}"


def workload_words(workload: WorkloadChoice) -> str:
    """`userlogin (users=2_000_000, shards=2)`."""
    if not workload.parameters:
        return workload.name
    words = ", ".join(f"{name}={value_words(value)}" for name, value in workload.parameters.items())
    return f"{workload.name} ({words})"


def value_words(value: ParameterValue) -> str:
    """A parameter as the command line takes it, groups of digits apart: `2_000_000`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:_}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def server_words(documents: TrialDocuments) -> str:
    """`PostgreSQL 15.18, private server`, as far as it is known."""
    version = documents.settings.server_version if documents.settings else None
    version = version or (documents.summary.server_version if documents.summary else None)
    system = documents.variant.system if documents.variant else SystemChoice()
    whose = "your server" if system.dsn else "private server"
    place = documents.trial.server_place
    if host_label(documents) != "host" and place is not None:
        whose += f" on {place.host}"
    build = (documents.settings.build if documents.settings else None) or {}
    built = f" ({build['made']})" if "made" in build else ""
    said = (
        f"PostgreSQL {version or 'of unknown version'}{built}",
        whose,
        *_made_and_limited(system),
    )
    return ", ".join(said)


def _made_and_limited(system: SystemChoice) -> Iterator[str]:
    """How a private server was made, where not as usual, and what it may use at most."""
    given = system.initdb.model_dump(exclude_none=True)
    if given:
        yield "made with " + " ".join(_initdb_words(name, each) for name, each in given.items())
    if system.limits.cpu_share is not None:
        yield f"at most {system.limits.cpu_share:g} CPUs"
    if system.limits.memory_bytes is not None:
        yield f"at most {format_bytes(system.limits.memory_bytes)} of memory"


def _initdb_words(name: str, value: object) -> str:
    """As `--initdb` takes it: `wal_segment_size=32MB`."""
    if isinstance(value, bool):
        return f"{name}={'on' if value else 'off'}"
    if isinstance(value, int):
        return f"{name.replace('_bytes', '_size')}={value // 1024**2}MB"
    return f"{name}={value}"


def load_words(load: LoadChoice, plan: Plan | None) -> str:
    """`16 clients, closed loop, prepared protocol, 60.0 s after 10.0 s of warm-up`."""
    if load.rate_per_s is not None:
        how = f"open loop at {format_per_s(load.rate_per_s)}"
    elif load.stages:
        how = f"open loop in {format_counted(len(load.stages), 'stage')}"
    elif load.sessions is not None:
        rate = format_per_s(load.sessions.rate_per_s)
        how = f"sessions of {load.sessions.transactions} at {rate}"
    elif load.think_time_s:
        how = f"closed loop, think time {format_duration_s(load.think_time_s)}"
    else:
        how = "closed loop"
    if load.duration_s is not None:
        long = format_duration_s(load.duration_s)
    else:
        long = f"{format_counted(load.transactions_per_client or 0, 'transaction')} a client"
    warmup = f" after {format_duration_s(load.warmup_s)} of warm-up" if load.warmup_s else ""
    clients = format_counted(load.clients, "client")
    seed = f", seed {plan.seed}" if plan else ""
    return f"{clients}, {how}, {load.protocol} protocol, {long}{warmup}{seed}"


def generator_words(use: GeneratorUse) -> str:
    """`used 23.0 % of what it can do; 31.0 % busy`, or how to find out.

    >>> generator_words(GeneratorUse(of_ceiling=0.23, busy=0.31, ceiling_per_core_per_s=1e5))
    'used 23.0 % of what it can do; 31.0 % busy'
    """
    busy = "" if use.busy is None else f"; {format_share(use.busy)} busy"
    if use.of_ceiling is not None:
        near = use.of_ceiling > NEAR_CEILING
        warning = ": near its limit, so it may be what was measured" if near else ""
        return f"used {format_share(use.of_ceiling)} of what it can do{warning}{busy}"
    how = f": {use.calibrate}" if use.calibrate else ""
    return f"what it can do was never measured here{how}{busy}"


def host_words(documents: TrialDocuments) -> str:
    """`2 × AMD EPYC …, 8.0 GB, Debian 12, kernel 6.1 (kvm)`, or that it is not known."""
    if documents.environment is None or not documents.environment.hosts:
        return "not recorded"
    host = documents.environment.hosts[0]
    parts = [
        f"{host.cpus} × {host.cpu_model or 'CPU'}",
        format_bytes(host.memory_bytes),
        host.operating_system,
        f"kernel {host.kernel}",
        host.virtualization,
    ]
    return ", ".join(part for part in parts if part)


def data_words(load: LoadReport) -> str:
    """How the data came to be there, and how large they are beside the host's memory."""
    if load.reused:
        words = f"reused: {load.reason}"
    elif load.steps:
        words = f"loaded: {load.reason}"
    else:
        words = load.reason
    if load.data_bytes is None:
        return words
    words += f", {format_bytes(load.data_bytes)}"
    if load.memory_bytes:
        share = format_share(load.data_bytes / load.memory_bytes)
        words += f" ({share} of the host's {format_bytes(load.memory_bytes)} of memory)"
    return words


def cpus_words(cpus: Sequence[int]) -> str:
    """`CPU 3`, `CPUs 0 to 3`, `CPUs 0, 2 and 5`; no number: any."""
    if not cpus:
        return "any CPU"
    if len(cpus) == 1:
        return f"CPU {cpus[0]}"
    if len(cpus) > 2 and list(cpus) == list(range(cpus[0], cpus[-1] + 1)):
        return f"CPUs {cpus[0]} to {cpus[-1]}"
    return f"CPUs {', '.join(str(cpu) for cpu in cpus[:-1])} and {cpus[-1]}"


def host_label(documents: TrialDocuments) -> str:
    """`host`, or `load host` where the server ran elsewhere."""
    trial = documents.trial
    server, engine = trial.server_place, trial.placement.get("engine")
    apart = server is not None and engine is not None and server.host != engine.host
    return "load host" if apart else "host"


def durability_words(durability: Durability) -> str:
    """`D2 local`, `D1 delayed +unlogged`."""
    name = DURABILITY_NAMES[durability.durability_class]
    if durability.durability_class == "none":
        return name
    extra = " +unlogged" if durability.unlogged_tables else ""
    return f"{durability.durability_class} {name}{extra}"


def durability_cost(durability: Durability) -> str:
    """What a crash can cost, unlogged tables included."""
    cost = DURABILITY_COSTS[durability.durability_class]
    if durability.unlogged_tables:
        names = ", ".join(durability.unlogged_tables)
        cost += f" Unlogged tables are empty after a crash: {names}."
    return cost
