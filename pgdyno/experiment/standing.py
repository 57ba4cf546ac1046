"""How far an experiment is: what has run, what each variant has so far, what comes next. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.experiment.policies import Next, Past, Stop, complete_blocks, next_step, trials_at_most
from pgdyno.experiment.responses import DEFAULT_METRIC
from pgdyno.model import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantStanding:
    """One variant so far. `repeated`: trials that failed or were broken off.

    `median` is over its completed trials, in the first response; None without any value.
    """

    name: str
    completed: int
    repeated: int
    median: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The whole experiment so far. `last`: completed trials at most; None: a budget knows none.

    `following` is what the policy would do now; failures before are forgiven, as in `resume`.
    `open`: the last trial, where it has not ended: it is under way, or was killed.
    """

    variants: tuple[VariantStanding, ...]
    completed: int
    last: int | None
    blocks: int
    used_s: float
    following: Next | Stop
    open: Past | None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to run."""
        return isinstance(self.following, Stop)


def deciding_metric(experiment: Experiment) -> str:
    """The first response, which decides about precision; throughput where nothing is judged."""
    return experiment.responses[0].metric if experiment.responses else DEFAULT_METRIC


def standing(experiment: Experiment, past: Sequence[Past]) -> Standing:
    """How far the stored trials have brought an experiment."""
    budget = experiment.stopping.policy == "budget"
    last = max(past, key=lambda each: each.number, default=None)
    open_trial = last if last is not None and last.outcome is None else None
    ended = [each for each in past if each is not open_trial]
    return Standing(
        variants=tuple(_variant(experiment, each.name, ended) for each in experiment.variants),
        completed=len({(each.block, each.variant) for each in past if each.completed}),
        last=None if budget else trials_at_most(experiment),
        blocks=len(complete_blocks(experiment, past)),
        used_s=sum(each.duration_s for each in past),
        following=next_step(experiment, past, earlier=len(past)),
        open=open_trial,
    )


def _variant(experiment: Experiment, name: str, past: Sequence[Past]) -> VariantStanding:
    own = [each for each in past if each.variant == name]
    done = [each for each in own if each.completed]
    metric = deciding_metric(experiment)
    values = [each.values[metric] for each in done if metric in each.values]
    return VariantStanding(
        name=name,
        completed=len(done),
        repeated=len(own) - len(done),
        median=statistics.median(values) if values else None,
        lowest=min(values, default=None),
        highest=max(values, default=None),
    )
