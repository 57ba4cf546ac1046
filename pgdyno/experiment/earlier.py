"""Trials of the same variants that were stored before: how long such a trial really takes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from pgdyno.errors import PgdynoError
from pgdyno.experiment.store import Run, list_runs
from pgdyno.model import Trial, Variant

_RUNS_MAX: Final = 100
_TRIALS_MAX: Final = 20


def earlier_trials(output: Path, variants: Sequence[Variant]) -> dict[str, list[Trial]]:
    """Variant → completed trials that ran the same, the newest first, from the newest runs.

    A run that cannot be read is passed over: it is somebody else's trouble.
    """
    wanted = {_what_runs(variant): variant.name for variant in variants if variant.copy_of is None}
    found: dict[str, list[Trial]] = {variant.name: [] for variant in variants}
    for run in itertools.islice(reversed(list_runs(output)), _RUNS_MAX):
        open_ones = {what: name for what, name in wanted.items() if len(found[name]) < _TRIALS_MAX}
        if not open_ones:
            break
        for what, trial in _trials_of(run, open_ones):
            if len(found[open_ones[what]]) < _TRIALS_MAX:
                found[open_ones[what]].append(trial)
    for variant in variants:
        if variant.copy_of is not None:
            found[variant.name] = found[variant.copy_of]
    return found


def _trials_of(run: Run, wanted: Collection[str]) -> Iterator[tuple[str, Trial]]:
    """What ran, with its trial; of a run that has nothing that is wanted no trial is read."""
    try:
        every = {each.name: _what_runs(each) for each in run.experiment.variants}
        variants = {name: what for name, what in every.items() if what in wanted}
        trials = [stored.trial for stored in run.trials] if variants else []
    except (PgdynoError, OSError):
        return
    for trial in reversed(trials):
        if trial.outcome == "completed" and trial.variant in variants:
            yield variants[trial.variant], trial


def _what_runs(variant: Variant) -> str:
    """All that says how long a trial takes; the seed says nothing."""
    load = variant.load.model_copy(update={"seed": 0, "reload": False})
    plain = variant.model_copy(update={"name": "", "levels": {}, "copy_of": None, "load": load})
    return plain.model_dump_json()
