"""Everything one trial left behind, read once, with what is missing and why.

A report must open for a trial that was killed, failed, or lost a file. So nothing here raises for
one document: what cannot be read becomes a `Missing`, which the report shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from pgdyno.contract import Interval, Plan, Summary
from pgdyno.errors import PgdynoError
from pgdyno.experiment.store import Run, StoredTrial
from pgdyno.model import (
    CheckResult,
    Environment,
    Experiment,
    LoadChoice,
    Settings,
    Sizes,
    Trial,
    Variant,
)
from pgdyno.stats.percentiles import Distribution, distributions_by_tag

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A part that the report cannot show. `what` in the reader's words, `why` one sentence."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDocuments:
    """One trial's documents; None or empty where they are not there: `missing` then says why."""

    stored: StoredTrial
    trial: Trial
    variant: Variant | None
    plan: Plan | None
    summary: Summary | None
    settings: Settings | None
    sizes: Sizes | None
    environment: Environment | None
    checks: tuple[CheckResult, ...]
    intervals: tuple[Interval, ...]
    observations: dict[str, pa.Table]
    distributions: dict[str, Distribution]
    missing: tuple[Missing, ...]

    @property
    def load(self) -> LoadChoice | None:
        """How hard and how long it was asked to run."""
        return self.variant.load if self.variant else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocuments:
    """A run folder's documents."""

    run: Run
    experiment: Experiment
    tags: tuple[str, ...]
    trials: tuple[TrialDocuments, ...]


def read_run(run: Run) -> RunDocuments:
    """Read a run folder.

    Raises `PgdynoError` only where `experiment.toml` or a `trial.json` cannot be read.
    """
    head = read_head(run)
    return replace(head, trials=tuple(read_trial(each, head.experiment) for each in run.trials))


def read_head(run: Run) -> RunDocuments:
    """What a run folder says of itself, without any trial. Raises as `read_run`."""
    return RunDocuments(run=run, experiment=run.experiment, tags=run.tags, trials=())


def read_trial(stored: StoredTrial, experiment: Experiment) -> TrialDocuments:
    """Read one trial's folder. Raises `PgdynoError` only where `trial.json` cannot be read."""
    from pyarrow import ArrowException

    trial = stored.trial
    damaged: list[Missing] = []

    def attempt(what: str, read: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return read()
        except (PgdynoError, ValidationError, OSError, ValueError, ArrowException) as error:
            damaged.append(Missing(what=what, why=f"its file is damaged: {_first_line(error)}"))
            return otherwise

    tables = {
        name: attempt(f"observations of {name}", partial(stored.observations, name), None)
        for name in stored.observation_names()
    }
    documents = TrialDocuments(
        stored=stored,
        trial=trial,
        variant=next((one for one in experiment.variants if one.name == trial.variant), None),
        plan=attempt("what the engine was told", lambda: stored.plan, None),
        summary=attempt("the engine's summary", lambda: stored.summary, None),
        settings=attempt("the server's settings", lambda: stored.settings, None),
        sizes=attempt("sizes of tables and indexes", lambda: stored.sizes, None),
        environment=attempt("host and storage", lambda: stored.environment, None),
        checks=attempt("the checks", lambda: stored.checks, ()),
        intervals=attempt("values over time", lambda: tuple(stored.intervals()), ()),
        distributions=attempt(
            "the distribution of response times", partial(_histograms, stored), {}
        ),
        observations={name: table for name, table in tables.items() if table is not None},
        missing=(),
    )
    absent = _absent(documents, frozenset(one.what for one in damaged))
    return replace(documents, missing=(*damaged, *absent))


def _histograms(stored: StoredTrial) -> dict[str, Distribution]:
    """Distributions of the transactions' histogram log by tag; empty where there is no log."""
    path = stored.histogram_log("transactions")
    return distributions_by_tag(path.read_text()) if path else {}


def _absent(documents: TrialDocuments, known: frozenset[str]) -> tuple[Missing, ...]:
    """What is not there although nothing was damaged, and why as far as the trial tells it."""
    trial = documents.trial
    present = {
        "the engine's summary": documents.summary is not None,
        "values over time": bool(documents.intervals),
        "the distribution of response times": bool(documents.distributions) or _none(documents),
        "CPU, disk, network and WAL over time": bool(documents.observations),
        "the checks": (documents.stored.folder / "checks.json").exists(),
        "the server's settings": documents.settings is not None,
        "sizes of tables and indexes": documents.sizes is not None,
        "host and storage": documents.environment is not None,
        "the durability class": trial.durability is not None,
        "how the data was loaded": trial.load is not None,
        "what was done to warm the caches": trial.prewarm is not None or _unwarmed(documents),
    }
    why = _why_absent(trial)
    return tuple(
        Missing(what=what, why=why)
        for what, there in present.items()
        if not there and what not in known
    )


def _none(documents: TrialDocuments) -> bool:
    """Whether no transaction was committed: then there is no time to distribute."""
    return documents.summary is not None and not documents.summary.measurement.committed


def _unwarmed(documents: TrialDocuments) -> bool:
    """Whether nobody wanted the caches warmed."""
    return documents.load is not None and not documents.load.prewarm


def _why_absent(trial: Trial) -> str:
    if trial.outcome == "completed":
        return "this trial did not record it"
    reached = f"during {PHASE_WORDS[trial.phases[-1].name]}" if trial.phases else "at its beginning"
    if trial.outcome is None:
        return f"the trial never came to its end: it was last seen {reached}"
    return f"the trial {OUTCOME_WORDS[trial.outcome]} {reached}, before this was written"


PHASE_WORDS = {
    "provision": "provisioning the server",
    "load": "loading the data",
    "prewarm": "warming the caches",
    "warmup": "the warm-up",
    "measure": "the measurement",
    "check": "checking the data",
    "collect": "collecting files",
    "reset": "resetting",
}
"""A phase's name in the middle of a sentence."""

OUTCOME_WORDS = {
    "completed": "was completed",
    "interrupted": "was interrupted",
    "failed": "failed",
}
"""A trial's outcome behind 'the trial'."""


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
