"""The phases of a trial, as data: their names, what they are for, how they begin and end."""

from __future__ import annotations

from pgdyno.model import Phase, PhaseName, Trial

ABOUT: dict[PhaseName, str] = {
    "provision": "starting the server",
    "load": "loading data",
    "prewarm": "reading data into memory",
    "warmup": "warming up",
    "measure": "measuring",
    "check": "checking the data",
    "collect": "collecting what was seen",
    "reset": "bringing the loaded state back",
}


def spoken(name: PhaseName) -> str:
    """A phase's name as people write it: `warm-up`."""
    return "warm-up" if name == "warmup" else name


def begin_phase(trial: Trial, name: PhaseName, at_s: float) -> Trial:
    """The trial with phase `name` begun `at_s` after its own beginning."""
    return trial.model_copy(update={"phases": (*trial.phases, Phase(name=name, begin_s=at_s))})


def end_phase(trial: Trial, at_s: float, note: str | None = None) -> Trial:
    """The trial with its last phase ended; nothing changes when that one has ended already."""
    if not trial.phases or trial.phases[-1].end_s is not None:
        return trial
    ended = trial.phases[-1].model_copy(update={"end_s": at_s, "note": note})
    return trial.model_copy(update={"phases": (*trial.phases[:-1], ended)})
