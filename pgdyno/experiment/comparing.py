"""Comparing: from the trials of a baseline and of variants to verdicts, with what stands against.

First `comparability`, then effects (`stats.effect`): within blocks where the trials come from one
experiment, between two groups where they do not. Holm's adjustment goes over all questions asked,
every variant times every response. A pair that must not be compared has no findings unless the
person said `--even-so`; then each finding is marked.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.experiment.comparability import Comparability, Purpose, judge_comparability
from pgdyno.experiment.oddities import Flagged, flagged_trials, remarks_on
from pgdyno.experiment.readings import Reading, Side
from pgdyno.experiment.responses import METRICS, Metric, metric
from pgdyno.model import Response, Stopping
from pgdyno.stats import power, sequential, tails
from pgdyno.stats.effect import Effect, estimate_effect, estimate_unpaired
from pgdyno.stats.multiplicity import holm
from pgdyno.stats.noise import NoiseFloor, noise_floor
from pgdyno.stats.verdict import Verdict, judge

LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be compared: the question, the responses, what was varied, how it was stopped.

    `paired`: blocks of one experiment. `again`: the name of the baseline's second copy (A/A).
    """

    responses: tuple[Response, ...]
    purpose: Purpose
    paired: bool
    question: str | None = None
    again: str | None = None
    stopping: Stopping = field(default_factory=Stopping)
    even_so: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One question's answer: a response of one variant against the baseline.

    Without a verdict `why_not` says why there is none. `detectable` is the smallest difference that
    so many trials find in 8 of 10 experiments; None where the spread is not known. `minutes_more`
    goes with the verdict's `more_trials`: of both variants together.
    """

    metric: Metric
    response: Response
    variant: str
    verdict: Verdict | None
    why_not: str | None = None
    like_for_like: bool = True
    detectable: float | None = None
    minutes_more: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A variant beside the baseline: may they be compared, and what is found."""

    variant: Side
    comparability: Comparability
    findings: tuple[Finding, ...]
    shown: bool

    @property
    def refused(self) -> bool:
        """Whether the person has to say `--even-so` first."""
        return not self.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise floor found in this very experiment, for one response."""

    metric: Metric
    floor: NoiseFloor


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything a report says. `again` is the baseline's second copy of an A/A."""

    asked: Asked
    baseline: Side
    again: Side | None
    pairs: tuple[Pair, ...]
    noise: tuple[Noise, ...]
    flagged: tuple[Flagged, ...]
    remarks: tuple[str, ...]

    @property
    def sides(self) -> tuple[Side, ...]:
        """All sides, the baseline first."""
        others = [pair.variant for pair in self.pairs]
        again = () if self.again is None or self.again in others else (self.again,)
        return (self.baseline, *again, *others)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of all pairs."""
        return tuple(finding for pair in self.pairs for finding in pair.findings)

    @property
    def refused(self) -> bool:
        """Whether any pair was refused."""
        return any(pair.refused for pair in self.pairs)

    @property
    def worse(self) -> bool:
        """Whether any response of any variant is worse."""
        verdicts = (finding.verdict for finding in self.findings)
        return any(verdict is not None and verdict.kind == "worse" for verdict in verdicts)


def compare(baseline: Side, variants: Sequence[Side], asked: Asked) -> Comparison:
    """Compare each variant with the baseline."""
    baseline = _guarded(baseline)
    guarded = [_guarded(side) for side in variants]
    again = next((side for side in guarded if side.name == asked.again), None)
    # The copy is compared like a variant where there is nothing else.
    others = [side for side in guarded if side.name != asked.again] or guarded
    judged = [(side, judge_comparability(baseline, side, asked.purpose)) for side in others]
    shown = {side.name: asked.even_so or not found.refused for side, found in judged}
    findings = _findings(baseline, [side for side in others if shown[side.name]], asked)
    pairs = tuple(
        Pair(
            variant=side,
            comparability=found,
            shown=shown[side.name],
            findings=tuple(
                replace(finding, like_for_like=found.like_for_like)
                for finding in findings
                if finding.variant == side.name
            ),
        )
        for side, found in judged
    )
    sides = (baseline, *guarded)
    return Comparison(
        asked=asked,
        baseline=baseline,
        again=again,
        pairs=pairs,
        noise=tuple(_noise(baseline, again, asked)) if again is not None else (),
        flagged=tuple(flagged_trials(sides, asked.responses)),
        remarks=tuple(remarks_on(sides, interleaved=asked.paired)),
    )


def shown_metrics(sides: Iterable[Side]) -> tuple[Metric, ...]:
    """Every metric that has a value on some side, in the order of `METRICS`."""
    found = {name for side in sides for each in side.readings for name in each.values}
    return tuple(each for name, each in METRICS.items() if name in found)


def _guarded(side: Side) -> Side:
    """The side without percentiles that too few transactions carry."""
    return Side(name=side.name, readings=tuple(_guarded_reading(each) for each in side.readings))


def _guarded_reading(reading: Reading) -> Reading:
    if reading.committed is None:
        return reading
    values, absent = dict(reading.values), dict(reading.absent)
    for name in reading.values:
        quantile = METRICS[name].quantile
        refusal = None if quantile is None else tails.refusal(quantile, reading.committed)
        if refusal is not None:
            del values[name]
            absent[name] = refusal
    return replace(reading, values=values, absent=absent)


def _findings(baseline: Side, variants: Sequence[Side], asked: Asked) -> list[Finding]:
    """Effects first, since Holm needs all p values at once; then verdicts."""
    questions = [(side, response) for side in variants for response in asked.responses]
    effects = [
        _effect(baseline, side, response.metric, asked, len(questions))
        for side, response in questions
    ]
    known = [effect for effect in effects if isinstance(effect, Effect)]
    looks = asked.paired and asked.stopping.policy == "precision"
    # Looks at an experiment under way have shared α already (`stats.sequential`).
    adjusted = iter([each.p_value for each in known] if looks else holm([e.p_value for e in known]))
    comparisons = 1 if looks else len(questions)
    found = []
    for (side, response), effect in zip(questions, effects, strict=True):
        if isinstance(effect, Effect):
            found.append(_finding(baseline, side, response, (effect, next(adjusted), comparisons)))
        else:
            found.append(
                Finding(
                    metric=metric(response.metric), response=response, variant=side.name,
                    verdict=None, why_not=effect,
                )
            )  # fmt: skip
    return found


def _finding(
    baseline: Side, side: Side, response: Response, found: tuple[Effect, float, int]
) -> Finding:
    effect, adjusted_p, comparisons = found
    verdict = judge(
        effect, direction=response.direction, matters=response.matters,
        adjusted_p=adjusted_p, comparisons=comparisons,
    )  # fmt: skip
    lengths = [_typical_s(each) for each in (baseline, side)]
    minutes = None
    if verdict.more_trials and None not in lengths:
        minutes = verdict.more_trials * sum(each or 0.0 for each in lengths) / 60
    detectable = None
    if effect.sd_log > 0:
        detectable = power.detectable(
            effect.sd_log, effect.blocks, alpha=effect.alpha, comparisons=comparisons
        )
    return Finding(
        metric=metric(response.metric), response=response, variant=side.name, verdict=verdict,
        detectable=detectable, minutes_more=minutes,
    )  # fmt: skip


def _effect(baseline: Side, side: Side, name: str, asked: Asked, comparisons: int) -> Effect | str:
    """The effect, or in a sentence why there is none."""
    for each in (baseline, side):
        if not each.readings:
            return f"{each.name} has no trial"
        if not each.values(name):
            reasons = [one.absent[name] for one in each.readings if name in one.absent]
            return f"{each.name} has no {metric(name).words}" + (
                f": {reasons[0]}" if reasons else ""
            )
    try:
        if not asked.paired:
            return estimate_unpaired(baseline.values(name), side.values(name), level=LEVEL)
        looks = _looks(asked, comparisons)
        before, after = baseline.by_block(name), side.by_block(name)
        found = None if looks is None else sequential.look(before, after, looks)
        return found or estimate_effect(before, after, level=LEVEL)
    except ValueError as error:
        return str(error)


def _looks(asked: Asked, comparisons: int) -> sequential.Looks | None:
    """The looks of an experiment that was looked at while it ran: they make intervals wider."""
    most = asked.stopping.max_replicates
    if asked.stopping.policy != "precision" or most is None:
        return None
    return sequential.planned_looks(most, alpha=1 - LEVEL, comparisons=comparisons)


def _typical_s(side: Side) -> float | None:
    lengths = [each.took_s for each in side.readings if each.took_s]
    return statistics.median(lengths) if lengths else None


def _noise(baseline: Side, again: Side, asked: Asked) -> Iterator[Noise]:
    for response in asked.responses:
        try:
            floor = noise_floor(baseline.by_block(response.metric), again.by_block(response.metric))
        except ValueError:
            continue
        yield Noise(metric=metric(response.metric), floor=floor)
