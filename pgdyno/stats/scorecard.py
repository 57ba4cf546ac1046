"""How the method does on experiments whose truth is known: verdicts and coverage, counted.

`tools/method_table.py` prints the table of docs/method.md from it, and tests hold the claims to it.

>>> counted = score(Case(blocks=10), experiments=50, seed=1)
>>> sum(counted.verdicts.values()), counted.covered >= 45
(50, True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pgdyno.stats import sequential
from pgdyno.stats.effect import Effect, estimate_effect, estimate_unpaired
from pgdyno.stats.multiplicity import holm
from pgdyno.stats.simulator import NOISES, Noise, Order, Trials, simulate
from pgdyno.stats.verdict import Verdict, VerdictKind, judge

_BASELINE: Final = "baseline"
_VARIANT: Final = "variant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kind of experiment: `ratio` is the true effect, more is better, `blocks` at most."""

    blocks: int
    noise: Noise = NOISES["calm"]
    ratio: float = 1.0
    matters: float = 0.02
    comparisons: int = 1
    order: Order = "blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What came of many experiments of one case.

    `verdicts` counts experiments by verdict (of the first comparison), `differing` those in which
    any comparison was called better or worse, `covered` those whose interval held the truth;
    `blocks` is their mean number of blocks.
    """

    experiments: int
    verdicts: Counter[VerdictKind]
    differing: int
    covered: int
    blocks: float

    def share(self, *kinds: VerdictKind) -> float:
        """The share of experiments with one of these verdicts."""
        return sum(self.verdicts[kind] for kind in kinds) / self.experiments

    @property
    def coverage(self) -> float:
        """The share of intervals that held the truth."""
        return self.covered / self.experiments

    @property
    def false_rate(self) -> float:
        """The share of experiments with any difference called; false where there is none."""
        return self.differing / self.experiments


Method = Callable[[Case, Trials], list[Verdict]]


def in_blocks(case: Case, trials: Trials) -> list[Verdict]:
    """As `pgdyno experiment` and `pgdyno ab` judge: within blocks, Holm over all comparisons."""
    baseline = trials[_BASELINE]
    return _with_holm(
        case, [estimate_effect(baseline, trials[name]) for name in _names(case)]
    )  # fmt: skip


def unpaired(case: Case, trials: Trials) -> list[Verdict]:
    """As `pgdyno compare` judges runs that share no blocks."""
    baseline = list(trials[_BASELINE].values())
    return _with_holm(
        case, [estimate_unpaired(baseline, list(trials[name].values())) for name in _names(case)]
    )


def stopping_early(case: Case, trials: Trials) -> list[Verdict]:
    """As a sequential policy judges: after every block, until each comparison is decided."""
    looks = sequential.planned_looks(case.blocks, comparisons=case.comparisons)
    verdicts: list[Verdict] = []
    for blocks in range(looks.first, looks.most + 1):
        verdicts = []
        for name in _names(case):
            effect = sequential.look(
                _first(trials[_BASELINE], blocks), _first(trials[name], blocks), looks
            )
            if effect is not None:
                verdicts.append(judge(effect, direction="higher", matters=case.matters))
        if all(verdict.kind != "undecided" for verdict in verdicts):
            break
    return verdicts


def reaching_precision(case: Case, trials: Trials) -> list[Verdict]:
    """As a precision policy judges: after every block, until ± `matters` / 2 is reached."""
    looks = sequential.planned_looks(case.blocks)
    verdicts: list[Verdict] = []
    for blocks in range(looks.first, looks.most + 1):
        effect = sequential.look(
            _first(trials[_BASELINE], blocks), _first(trials[_names(case)[0]], blocks), looks
        )
        if effect is not None:
            verdicts = [judge(effect, direction="higher", matters=case.matters)]
            if effect.half_width <= case.matters / 2:
                break
    return verdicts


def peeking(case: Case, trials: Trials) -> list[Verdict]:
    """What people do: look after every block at the full level, stop at the first difference."""
    verdicts: list[Verdict] = []
    for blocks in range(2, case.blocks + 1):
        so_far = {name: _first(values, blocks) for name, values in trials.items()}
        verdicts = in_blocks(case, so_far)
        if any(verdict.kind in ("better", "worse") for verdict in verdicts):
            break
    return verdicts


def score(case: Case, *, experiments: int, seed: int, method: Method = in_blocks) -> Score:
    """Run many experiments of one case and count what the method makes of them."""
    verdicts: Counter[VerdictKind] = Counter()
    differing = covered = blocks = 0
    effects = {_BASELINE: 1.0} | {name: case.ratio for name in _names(case)}
    for number in range(experiments):
        trials = simulate(
            case.noise, effects, blocks=case.blocks, seed=seed * 1_000_003 + number,
            order=case.order,
        )  # fmt: skip
        found = method(case, trials)
        verdicts[found[0].kind] += 1
        differing += any(verdict.kind in ("better", "worse") for verdict in found)
        covered += found[0].effect.low <= case.ratio <= found[0].effect.high
        blocks += found[0].effect.blocks
    return Score(
        experiments=experiments, verdicts=verdicts, differing=differing, covered=covered,
        blocks=blocks / experiments,
    )  # fmt: skip


def _names(case: Case) -> list[str]:
    return [f"{_VARIANT} {number}" for number in range(1, case.comparisons + 1)]


def _first(values: dict[int, float], blocks: int) -> dict[int, float]:
    return {block: value for block, value in values.items() if block <= blocks}


def _with_holm(case: Case, effects: list[Effect]) -> list[Verdict]:
    adjusted = holm([effect.p_value for effect in effects])
    return [
        judge(
            effect, direction="higher", matters=case.matters, adjusted_p=p_value,
            comparisons=case.comparisons,
        )
        for effect, p_value in zip(effects, adjusted, strict=True)
    ]  # fmt: skip
