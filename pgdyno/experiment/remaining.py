"""Where a running experiment stands: which trial of how many, how long all the rest takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.experiment.planning import trial_time
from pgdyno.experiment.policies import Next, Past, blocks_at_most
from pgdyno.experiment.progress import Place
from pgdyno.model import Experiment, Trial


def place_of(
    experiment: Experiment,
    step: Next,
    past: Sequence[Past],
    stored: Sequence[Trial],
    expected_bytes: Mapping[str, int],
) -> Place:
    """Where the next trial stands. `expected_bytes`: variant → size of its data.

    Of trials to come, those of the policy's last block are counted; a budget knows no last block,
    and leaves what is not used of it. The loading of states that are not there yet is not in it but
    for an experiment's first trial.
    """
    budget_s = experiment.stopping.budget_s
    if experiment.stopping.policy == "budget" and budget_s is not None:
        used_s = sum(each.duration_s for each in past)
        return Place(
            number=step.number,
            last=None,
            block=step.block,
            variant=step.variant.name,
            left_s=max(0.0, budget_s - used_s),
        )
    completed = {(each.block, each.variant) for each in past if each.completed}
    to_come = [
        variant
        for block in range(1, blocks_at_most(experiment) + 1)
        for variant in experiment.variants
        if (block, variant.name) not in completed
    ]
    done = [trial for trial in stored if trial.outcome == "completed"]
    times = {
        variant.name: trial_time(
            variant,
            expected_bytes[variant.name],
            [trial for trial in done if trial.variant == variant.name] or done,
        )
        for variant in experiment.variants
    }
    left_s = sum(times[variant.name].again_s for variant in to_come)
    if not done:
        first = times[step.variant.name]
        left_s += first.first_s - first.again_s
    return Place(
        number=step.number,
        last=step.number + len(to_come) - 1,
        block=step.block,
        variant=step.variant.name,
        left_s=left_s,
    )
