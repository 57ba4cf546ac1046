"""What an experiment will take and whether it can decide, before anything is started. Pure.

How long a trial runs is known from its file; what lies around it is measured where the same trial
was stored before, and guessed otherwise. A design that cannot give a low enough p whatever the
server does is refused, with the number of blocks that could.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgdyno.experiment.grouping import Grouping, Redo
from pgdyno.experiment.policies import BLOCKS_MAX, blocks_at_most, trial_order
from pgdyno.experiment.precision import ALPHA, comparisons
from pgdyno.model import Experiment, PhaseName, Trial, Variant
from pgdyno.stats.power import blocks_that_can_decide, smallest_p
from pgdyno.stats.sequential import planned_looks
from pgdyno.units import format_counted, format_duration_s

# Guesses for what was never measured here, from tpcb at scale 1 and 30 on 2 busy CPUs: to start and
# stop a server and look after its data, to load (on a server of its own), to copy what is loaded.
SERVER_S: Final = 5.5
LOAD_BYTES_PER_S: Final = 75e6
COPY_BYTES_PER_S: Final = 500e6
# A steady warm-up ends somewhere between; half of its most is taken.
STEADY_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTime:
    """Seconds of one trial of a variant: the first, which loads, and every further one.

    `known_s` is the part that the file fixes (warm-up and measurement), `trials` how many stored
    trials the rest comes from (0: it is guessed).
    """

    first_s: float
    again_s: float
    known_s: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A trial to come. `redo`: what must be done again after the trial before it; None: all.

    `loads`: its data are loaded in it; later trials that share them get them without loading.
    """

    number: int
    block: int
    variant: str
    redo: Redo | None
    loads: bool
    begins_s: float
    takes_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPlan:
    """The trials in order, with times. `blocks` is how many there will be at most.

    `redo`: variant → what differs from the baseline, as what must be done again to get to it.
    `needed_blocks`: the fewest that can decide; None where nothing is compared. `least_p`: the
    smallest p that `blocks` can give.
    """

    trials: tuple[PlannedTrial, ...]
    times: Mapping[str, TrialTime]
    redo: Mapping[str, Redo]
    groups: tuple[tuple[str, ...], ...]
    blocks: int
    needed_blocks: int | None
    least_p: float | None

    @property
    def total_s(self) -> float:
        """All trials one after the other."""
        return sum(trial.takes_s for trial in self.trials)


def trial_time(variant: Variant, expected_bytes: int, stored: Sequence[Trial]) -> TrialTime:
    """What a trial takes. `stored`: completed trials of the same variant, from whenever."""
    load = variant.load
    warmup_s = load.warmup_s * (STEADY_SHARE if load.steady_warmup else 1.0)
    known_s = warmup_s + (load.duration_s or 0.0)
    load_s = expected_bytes / LOAD_BYTES_PER_S + (SERVER_S if expected_bytes else 0.0)
    copy_s = expected_bytes / COPY_BYTES_PER_S
    if not stored:
        again_s = known_s + SERVER_S + copy_s
        return TrialTime(first_s=again_s + load_s, again_s=again_s, known_s=known_s, trials=0)
    if load.duration_s is None or load.steady_warmup:
        known_s = _median(
            _phase_s(trial, "warmup") + _phase_s(trial, "measure") for trial in stored
        )
    loaded = [trial for trial in stored if trial.load is not None and not trial.load.reused]
    shared = [trial for trial in stored if trial not in loaded]
    if shared:
        again_s = _median(map(whole_s, shared))
    else:
        again_s = copy_s + _median(whole_s(trial) - _phase_s(trial, "load") for trial in loaded)
    first_s = _median(map(whole_s, loaded)) if loaded else again_s + load_s
    return TrialTime(
        first_s=max(first_s, again_s), again_s=again_s, known_s=known_s, trials=len(stored)
    )


def plan_experiment(
    experiment: Experiment, grouping: Grouping, times: Mapping[str, TrialTime]
) -> ExperimentPlan:
    """The trials in the order in which they will run."""
    groups = grouping.groups(experiment.variants)
    group_of = {name: number for number, group in enumerate(groups) for name in group.names}
    blocks = planned_blocks(experiment, grouping, times)
    variants = {variant.name: variant for variant in experiment.variants}
    trials: list[PlannedTrial] = []
    loaded: set[int] = set()
    at_s, before = 0.0, None
    for block, name in trial_order(experiment):
        if block > blocks:
            break
        first = group_of[name] not in loaded
        takes_s = times[name].first_s if first else times[name].again_s
        loaded.add(group_of[name])
        redo = None if before is None else grouping.redo(before, variants[name])
        trials.append(
            PlannedTrial(
                number=len(trials) + 1, block=block, variant=name, redo=redo, loads=first,
                begins_s=at_s, takes_s=takes_s,
            )
        )  # fmt: skip
        at_s, before = at_s + takes_s, variants[name]
    needed = needed_blocks(experiment)
    return ExperimentPlan(
        trials=tuple(trials),
        times=times,
        redo={
            name: grouping.redo(variants[experiment.baseline or name], variant)
            for name, variant in variants.items()
        },
        groups=tuple(group.names for group in groups),
        blocks=blocks,
        needed_blocks=needed,
        least_p=None if needed is None else smallest_p(blocks),
    )


def planned_blocks(
    experiment: Experiment, grouping: Grouping, times: Mapping[str, TrialTime]
) -> int:
    """Blocks at most; for a budget those that fit into it, at least one."""
    if experiment.stopping.policy != "budget" or experiment.stopping.budget_s is None:
        return blocks_at_most(experiment)
    further_s = sum(times[variant.name].again_s for variant in experiment.variants)
    left_s = experiment.stopping.budget_s - first_block_s(experiment, grouping, times)
    fitting = 1 + int(max(0.0, left_s) / further_s) if further_s > 0 else BLOCKS_MAX
    return min(fitting, BLOCKS_MAX)


def first_block_s(
    experiment: Experiment, grouping: Grouping, times: Mapping[str, TrialTime]
) -> float:
    """Seconds of the first block: one trial of each group loads its data."""
    total_s = 0.0
    for group in grouping.groups(experiment.variants):
        total_s += times[group.names[0]].first_s
        total_s += sum(times[name].again_s for name in group.names[1:])
    return total_s


def needed_blocks(experiment: Experiment) -> int | None:
    """The fewest blocks that can decide anything; None where nothing is compared."""
    asked = comparisons(experiment)
    if not asked:
        return None
    if experiment.stopping.policy == "precision":
        return planned_looks(BLOCKS_MAX, alpha=ALPHA, comparisons=asked).first
    return blocks_that_can_decide(alpha=ALPHA, comparisons=asked)


def refusals(
    experiment: Experiment, grouping: Grouping, times: Mapping[str, TrialTime]
) -> Iterator[tuple[str, str]]:
    """Why this design cannot answer its question: (key of the file, what is wrong with it)."""
    needed = needed_blocks(experiment)
    if experiment.stopping.policy == "budget":
        yield from _small_budget(experiment, grouping, times)
        return
    blocks = planned_blocks(experiment, grouping, times)
    if needed is not None and blocks < needed:
        key = "replicates" if experiment.stopping.policy == "fixed" else "max_replicates"
        yield (
            key,
            (
                f"{key} = {blocks} cannot decide: {_why(experiment, blocks)}; {key} = {needed} can "
                "(or responses = [], to measure without comparing)"
            ),
        )


def _small_budget(
    experiment: Experiment, grouping: Grouping, times: Mapping[str, TrialTime]
) -> Iterator[tuple[str, str]]:
    stopping, needed = experiment.stopping, needed_blocks(experiment) or 0
    budget_s, least = stopping.budget_s or 0.0, stopping.replicates
    first_s = first_block_s(experiment, grouping, times)
    further_s = sum(times[variant.name].again_s for variant in experiment.variants)
    enough = f"{format_duration_s(first_s + further_s * (max(needed, least) - 1))} would be enough"
    room = f"a budget of {format_duration_s(budget_s)}"
    blocks = planned_blocks(experiment, grouping, times)
    if budget_s < first_s + further_s * (least - 1):
        yield "budget", f"{room} is too small for two trials of each variant; about {enough}"
    elif blocks < needed:
        has = f"{room} has room for {format_counted(blocks, 'block')}, which cannot decide"
        yield "budget", f"{has}: {_why(experiment, blocks)}; {needed} can, for which about {enough}"


def whole_s(trial: Trial) -> float:
    """Seconds from a stored trial's beginning to the end of its last phase."""
    return max((phase.end_s or phase.begin_s for phase in trial.phases), default=0.0)


def _why(experiment: Experiment, blocks: int) -> str:
    asked = comparisons(experiment)
    least = smallest_p(blocks)
    several = f" / {asked} comparisons" if asked > 1 else ""
    return (
        f"the smallest p of {format_counted(blocks, 'block')} is {least:.2g}, "
        f"and {ALPHA:g}{several} is wanted"
    )


def _phase_s(trial: Trial, name: PhaseName) -> float:
    return sum(
        phase.end_s - phase.begin_s
        for phase in trial.phases
        if phase.name == name and phase.end_s is not None
    )


def _median(values: Iterator[float] | Sequence[float] | map[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else 0.0
