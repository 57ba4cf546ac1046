"""What comes next: pure functions from the trials so far to the next one, or to a stop.

A policy never looks at a clock or a disk; the runner asks it again after every trial, so that an
experiment which was killed continues where its stored trials end.

Trials come in randomised blocks: each block holds every variant once, in an order drawn from
`order_seed`, so that a drift of the machine hits every variant alike (R. A. Fisher, The Design of
Experiments, 1935). A trial that did not complete is repeated in its place, under the next number;
what it left stays. A variant that fails before it ever completed stops the experiment at once, and
so does one that fails twice in a row in the same place: trying again would only cost time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.experiment.precision import half_widths, is_reached
from pgdyno.model import Experiment, Trial, TrialOutcome, Variant

_FAILURES_MAX = 2
# Where nothing else bounds an experiment: more blocks than anybody waits for.
BLOCKS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One trial that has run: what policies need to know of it. `outcome` None: it was killed.

    `values` are its response metrics by name; `duration_s` is the whole trial's.
    """

    number: int
    variant: str
    block: int
    outcome: TrialOutcome | None
    duration_s: float
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def completed(self) -> bool:
        """Whether it counts."""
        return self.outcome == "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The next trial to run. `number` counts from 1 over the whole experiment.

    `variant` has the random seed of its block: the same for all variants of a block, so that they
    meet the same keys, and another one in the next block, so that no answer rests on one seed.
    """

    number: int
    variant: Variant
    block: int

    @property
    def replicate(self) -> int:
        """Which trial of its variant this is: every block holds each variant once."""
        return self.block


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Nothing is left to run. `failed`: the experiment is not finished, but cannot go on."""

    reason: str
    failed: bool = False


def past_of(trial: Trial, values: Mapping[str, float] | None = None) -> Past:
    """What policies need to know of a stored trial."""
    ends = [phase.begin_s if phase.end_s is None else phase.end_s for phase in trial.phases]
    return Past(
        number=trial.number,
        variant=trial.variant,
        block=trial.block or trial.replicate,
        outcome=trial.outcome,
        duration_s=max(ends, default=0.0),
        values=values or {},
    )


def next_step(experiment: Experiment, past: Sequence[Past], *, earlier: int = 0) -> Next | Stop:
    """What comes after `past`, by the experiment's own policy.

    `earlier`: how many of `past` ran before this sitting (a resumed experiment); their failures are
    forgiven.
    """
    order = trial_order(experiment)
    completed = {(each.block, each.variant) for each in past if each.completed}
    begun = {each.block for each in past}
    for block, name in order:
        if block not in begun and (stop := _enough(experiment, past, block)):
            return stop
        if (block, name) in completed:
            continue
        if stop := _hopeless(past, past[earlier:], block, name):
            return stop
        variant = next(each for each in experiment.variants if each.name == name)
        number = max((each.number for each in past), default=0) + 1
        return Next(number=number, variant=_seeded(variant, block), block=block)
    if experiment.stopping.policy == "precision":
        most = f"{blocks_at_most(experiment)} blocks are done, the most allowed"
        return _precise(experiment, past) or Stop(reason=f"{most}, without the precision")
    return Stop(reason=f"all {len(completed)} trials are done")


def trial_order(experiment: Experiment) -> Iterator[tuple[int, str]]:
    """(block, variant) of every trial in the order they run, for as many blocks as there may be."""
    source = random.Random(experiment.order_seed)
    for block in range(1, blocks_at_most(experiment) + 1):
        names = [variant.name for variant in experiment.variants]
        source.shuffle(names)
        yield from ((block, name) for name in names)


def blocks_at_most(experiment: Experiment) -> int:
    """How many blocks the policy can ask for; a budget knows no number."""
    stopping = experiment.stopping
    match stopping.policy:
        case "fixed":
            return stopping.replicates
        case "precision":
            return stopping.max_replicates or BLOCKS_MAX
        case "budget":
            return BLOCKS_MAX


def trials_at_most(experiment: Experiment) -> int:
    """How many trials the policy can ask for, apart from those that are repeated."""
    return len(experiment.variants) * blocks_at_most(experiment)


def complete_blocks(experiment: Experiment, past: Sequence[Past]) -> tuple[int, ...]:
    """The blocks in which every variant has completed."""
    done = {(each.block, each.variant) for each in past if each.completed}
    names = [variant.name for variant in experiment.variants]
    blocks = sorted({block for block, _ in done})
    return tuple(block for block in blocks if all((block, name) in done for name in names))


def _enough(experiment: Experiment, past: Sequence[Past], block: int) -> Stop | None:
    """Whether the policy wants no further block; asked only where one would begin."""
    stopping = experiment.stopping
    if block <= stopping.replicates:
        return None
    if stopping.policy == "precision":
        return _precise(experiment, past)
    if stopping.policy == "budget" and stopping.budget_s is not None:
        used_s, next_s = sum(each.duration_s for each in past), block_s(experiment, past)
        if used_s + next_s > stopping.budget_s:
            blocks = len(complete_blocks(experiment, past))
            return Stop(
                reason=f"the budget is used: {blocks} blocks took {used_s:.0f} s, "
                f"another would take about {next_s:.0f} s more"
            )
    return None


def _precise(experiment: Experiment, past: Sequence[Past]) -> Stop | None:
    """A stop where every effect is known as well as was asked for."""
    widths = list(half_widths(experiment, _first_response(experiment, past)).values())
    precision = experiment.stopping.precision
    if precision is None or not is_reached(widths, precision):
        return None
    worst = max(width or 0.0 for width in widths)
    blocks = len(complete_blocks(experiment, past))
    return Stop(reason=f"every effect is known to ± {worst:.2%} after {blocks} blocks")


def block_s(experiment: Experiment, past: Sequence[Past]) -> float:
    """Seconds that one more block takes: what each variant's last completed trial took.

    The last one and not the mean, for a first trial also loads data.
    """
    total_s = 0.0
    for variant in experiment.variants:
        own = [each for each in past if each.variant == variant.name and each.completed]
        total_s += own[-1].duration_s if own else 0.0
    return total_s


def _hopeless(past: Sequence[Past], now: Sequence[Past], block: int, name: str) -> Stop | None:
    """Whether trying this place again would only cost time."""
    here = [each for each in now if each.block == block and each.variant == name]
    failures = sum(1 for each in here if each.outcome == "failed")
    ever = any(each.completed for each in past if each.variant == name)
    if failures >= _FAILURES_MAX:
        return Stop(reason=f"variant '{name}' failed twice in block {block}", failed=True)
    if failures and not ever:
        return Stop(reason=f"variant '{name}' failed before it ever completed", failed=True)
    return None


def _first_response(experiment: Experiment, past: Sequence[Past]) -> dict[str, dict[int, float]]:
    """Variant → block → value of the response that decides about precision."""
    name = experiment.responses[0].metric
    values: dict[str, dict[int, float]] = {}
    for each in past:
        if each.completed and name in each.values:
            values.setdefault(each.variant, {})[each.block] = each.values[name]
    return values


def _seeded(variant: Variant, block: int) -> Variant:
    seed = (variant.load.seed + block - 1) % 2**64
    return variant.model_copy(update={"load": variant.load.model_copy(update={"seed": seed})})
