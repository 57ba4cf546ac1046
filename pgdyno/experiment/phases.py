"""The phases of a trial, as data: what they are called, what they are for, which of them apply."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model import LoadChoice, Phase, PhaseName, Trial

ABOUT: dict[PhaseName, str] = {
    "provision": "starting the server",
    "load": "loading data",
    "prewarm": "reading data into memory",
    "warmup": "warming up",
    "measure": "measuring",
    "check": "checking the data",
    "collect": "collecting what was seen",
    "reset": "cleaning up",
}


def phases_of(load: LoadChoice) -> tuple[PhaseName, ...]:
    """The phases a trial with this load goes through, in order."""
    skipped: set[PhaseName] = set()
    if not load.prewarm:
        skipped.add("prewarm")
    if load.warmup_s == 0:
        skipped.add("warmup")
    return tuple(name for name in ABOUT if name not in skipped)


def begin_phase(trial: Trial, name: PhaseName, at_s: float) -> Trial:
    """The trial with phase `name` begun `at_s` after its own beginning."""
    return trial.model_copy(update={"phases": (*trial.phases, Phase(name=name, begin_s=at_s))})


def end_phase(trial: Trial, at_s: float, note: str | None = None) -> Trial:
    """The trial with its last phase ended; nothing changes when that one has ended already."""
    if not trial.phases or trial.phases[-1].end_s is not None:
        return trial
    ended = trial.phases[-1].model_copy(update={"end_s": at_s, "note": note})
    return trial.model_copy(update={"phases": (*trial.phases[:-1], ended)})


def duration_s(phases: Sequence[Phase], name: PhaseName) -> float | None:
    """Seconds a phase took; None where it did not run or did not end."""
    for phase in phases:
        if phase.name == name and phase.end_s is not None:
            return phase.end_s - phase.begin_s
    return None
