"""What is odd about the trials of a comparison, and what cannot be known from them. Sentences.

A flagged trial stays in: the method uses ranks, and nothing is dropped because it looks wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgdyno.experiment.readings import Reading, Side
from pgdyno.experiment.responses import METRICS, Metric, metric
from pgdyno.model import Response
from pgdyno.stats import tails
from pgdyno.stats.outliers import find_outliers
from pgdyno.units import format_counted

_COMMON: Final = {
    "stolen": "the hypervisor took CPU time",
    "other programs": "other programs used the CPUs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagged:
    """A trial whose value lies far from the others of its variant, and what is known about it."""

    reading: Reading
    metric: Metric
    value: float
    ratio_to_median: float
    reason: str


def flagged_trials(sides: Sequence[Side], responses: Sequence[Response]) -> Iterator[Flagged]:
    """Trials far from the others of their variant, each with a reason where one is known."""
    for side in sides:
        for response in responses:
            readings = [each for each in side.readings if response.metric in each.values]
            values = [each.values[response.metric] for each in readings]
            for found in find_outliers(values):
                yield Flagged(
                    reading=readings[found.index],
                    metric=metric(response.metric),
                    value=found.value,
                    ratio_to_median=found.ratio_to_median,
                    reason=_reason(readings[found.index], readings),
                )


def _reason(odd: Reading, readings: Sequence[Reading]) -> str:
    """What happened during it; what happened during most others explains nothing."""
    seen: Mapping[str, int] = {
        each: sum(_kind(each) in map(_kind, one.disturbances) for one in readings)
        for each in odd.disturbances
    }
    rare = [each for each, count in seen.items() if count <= len(readings) / 2]
    if rare:
        return "; ".join(f"{each} (in {seen[each]} of {len(readings)} trials)" for each in rare)
    if seen:
        return f"not known: {', '.join(seen)} happened in most of the others, too"
    return "not known"


def _kind(disturbance: str) -> str:
    """A disturbance without its amount: `11.2 % of the CPU time stolen` → `stolen`."""
    words = ("checkpoint", "autovacuum", "stolen", "other programs")
    return next((word for word in words if word in disturbance), disturbance)


def remarks_on(sides: Sequence[Side], *, interleaved: bool) -> Iterator[str]:
    """What cannot be known from what there is."""
    if single := [side.name for side in sides if len(side.readings) == 1]:
        have = "has one trial" if len(single) == 1 else "have one trial each"
        yield (
            f"{' and '.join(single)} {have}, and one trial is an anecdote: nothing is known about "
            "how far a second one would differ"
        )
    yield from _common_disturbances(sides)
    yield from _refused_percentiles(sides)
    unknown = dict.fromkeys(
        words for side in sides for each in side.readings for words in each.unknown
    )
    if unknown:
        yield f"the files do not say: {', '.join(unknown)}"
    if not interleaved and any(len(side.readings) > 1 for side in sides):
        yield (
            "the trials were not interleaved in blocks: whatever else changed between the two "
            "sides, such as how busy the machine was, is in the difference"
        )


def _common_disturbances(sides: Sequence[Side]) -> Iterator[str]:
    """What happened during most of the trials: it explains no outlier, but the noise."""
    readings = [each for side in sides for each in side.readings]
    seen: dict[str, int] = {}
    for each in readings:
        for kind in {_kind(disturbance) for disturbance in each.disturbances}:
            seen[kind] = seen.get(kind, 0) + 1
    for kind, count in seen.items():
        if count > len(readings) / 2 and kind in _COMMON:
            yield (
                f"how small a difference this machine shows when it is left alone: {_COMMON[kind]} "
                f"during {count} of {len(readings)} trials"
            )


def _refused_percentiles(sides: Sequence[Side]) -> Iterator[str]:
    """Percentiles that too few transactions carry, each with how many trials lack it."""
    readings = [each for side in sides for each in side.readings]
    thin = _thin(readings)
    if not thin:
        return
    lacking = ", ".join(f"p{100 * each:g} in {len(thin[each])}" for each in sorted(thin))
    least = min(min(transactions) for transactions in thin.values())
    yield (
        f"percentiles beyond which fewer than {tails.BEYOND_NEEDED} transactions lie: {lacking} of "
        f"{format_counted(len(readings), 'trial')}; the shortest had "
        f"{format_counted(least, 'transaction')}"
    )


def _thin(readings: Sequence[Reading]) -> dict[float, list[int]]:
    """Quantile → transactions of each trial in which too few lie beyond it."""
    found: dict[float, list[int]] = {}
    for each in readings:
        for name in each.absent:
            quantile, count = METRICS[name].quantile, each.committed
            if name.startswith("p99_lag") or quantile is None or not count:
                continue
            # Only what was there and was taken away; what its source never had says so itself.
            if each.absent[name] == tails.refusal(quantile, count):
                found.setdefault(quantile, []).append(count)
    return found
