"""A comparison's charts as positions in per cent of a plot: effects, trial values, drift.

The page draws them as SVG with percentages for coordinates, so they stretch to any width while
marks and letters keep their size. Nothing here needs a script.

>>> ticks(0.97, 1.061)
(0.98, 1.0, 1.02, 1.04, 1.06)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pgdyno.experiment.comparing import Comparison, Finding
from pgdyno.experiment.readings import Reading, Side
from pgdyno.experiment.responses import Metric
from pgdyno.reports import comparison_wording as words
from pgdyno.stats.verdict import Verdict

SHAPES = ("circle", "square", "diamond", "triangle", "cross", "ring")
"""Marks of the sides in their order, told apart without colour; the seventh begins again."""
_MARGIN = 0.06
_WIDEST = math.log(20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled place on an axis, in per cent of it."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One effect: where its estimate and the ends of its interval lie, in per cent of the plot."""

    variant: str
    metric: str
    better: str
    kind: str
    text: str
    centre: float
    low: float
    high: float
    like_for_like: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """All effects on one axis of ratios. `band`: differences that do not matter."""

    rows: tuple[ForestRow, ...]
    ticks: tuple[Tick, ...]
    zero: float
    band: tuple[float, float]
    matters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One trial: its place in per cent, and what to say about it."""

    x: float
    y: float
    title: str
    flagged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One side's trials. `number` picks colour and shape."""

    name: str
    number: int
    shape: str
    points: tuple[Point, ...]
    median: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Trial values of one metric: along one axis (`values`), or over time as well (`drift`)."""

    metric: Metric
    unit: str
    series: tuple[Series, ...]
    across: tuple[Tick, ...]
    down: tuple[Tick, ...] = ()


def forest(comparison: Comparison) -> Forest | None:
    """The effects with their intervals; None where there is none."""
    found = [(each, each.verdict) for each in comparison.findings if each.verdict is not None]
    if not found:
        return None
    matters = min(each.response.matters for each, _ in found)
    ends = [0.0, math.log1p(matters), -math.log1p(matters)]
    for _, verdict in found:
        effect = verdict.effect
        ends.append(math.log(effect.ratio))
        ends += [
            math.log(one) for one in (effect.low, effect.high) if one > 0 and math.isfinite(one)
        ]
    low, high = max(min(ends), -_WIDEST), min(max(ends), _WIDEST)
    low, high = _widened(low, high)

    def place(ratio: float) -> float:
        if ratio <= 0:
            return 0.0
        return 100.0 if math.isinf(ratio) else _percent_of(math.log(ratio), low, high)

    values = _ratio_ticks(math.exp(low), math.exp(high))
    return Forest(
        rows=tuple(_forest_row(each, verdict, place) for each, verdict in found),
        ticks=tuple(Tick(at=place(value), label=_change(value)) for value in values),
        zero=place(1.0),
        band=(place(1 / (1 + matters)), place(1 + matters)),
        matters=words.percent(matters),
    )


def _forest_row(finding: Finding, verdict: Verdict, place: Callable[[float], float]) -> ForestRow:
    effect = verdict.effect
    return ForestRow(
        variant=finding.variant,
        metric=finding.metric.words,
        better=finding.response.direction,
        kind=verdict.kind,
        text=verdict.text,
        centre=place(effect.ratio),
        low=place(effect.low),
        high=place(effect.high),
        like_for_like=finding.like_for_like,
    )


def values_plot(comparison: Comparison, metric: Metric) -> Plot | None:
    """Every trial's value, a row a side; None where no trial has one."""
    every = [value for side in comparison.sides for value in side.values(metric.name)]
    if not every:
        return None
    low, high = _widened(min(every), max(every))
    found = tuple(
        Series(
            name=side.name,
            number=number,
            shape=SHAPES[number % len(SHAPES)],
            points=tuple(
                Point(
                    x=_percent_of(each.values[metric.name], low, high),
                    y=50.0,
                    title=_title(each, metric),
                    flagged=_is_flagged(comparison, each, metric),
                )
                for each in side.readings
                if metric.name in each.values
            ),
            median=_median(side, metric, low, high),
        )
        for number, side in enumerate(comparison.sides)
    )
    return Plot(
        metric=metric, unit=words.unit_words(metric), series=found,
        across=_value_ticks(metric, low, high),
    )  # fmt: skip


def drift_plot(comparison: Comparison, metric: Metric) -> Plot | None:
    """Every trial's value over the time at which it began; None without at least three times."""
    timed = [
        (side, each, began)
        for side in comparison.sides
        for each in side.readings
        if metric.name in each.values and (began := _moment_s(each)) is not None
    ]
    if len(timed) < 3:
        return None
    first_s, last_s = min(began for *_, began in timed), max(began for *_, began in timed)
    if last_s <= first_s:
        return None
    every = [each.values[metric.name] for _, each, _ in timed]
    low, high = _widened(min(every), max(every))
    left, right = _widened(first_s, last_s)
    found = []
    for number, side in enumerate(comparison.sides):
        own = sorted(
            ((began, each) for of, each, began in timed if of is side), key=lambda pair: pair[0]
        )
        points = tuple(
            Point(
                x=_percent_of(began, left, right),
                y=100 - _percent_of(each.values[metric.name], low, high),
                title=_title(each, metric),
                flagged=_is_flagged(comparison, each, metric),
            )
            for began, each in own
        )
        shape = SHAPES[number % len(SHAPES)]
        found.append(Series(name=side.name, number=number, shape=shape, points=points, median=None))
    minutes = (last_s - first_s) / 60
    return Plot(
        metric=metric,
        unit=words.unit_words(metric),
        series=tuple(found),
        across=tuple(
            Tick(at=_percent_of(first_s + value * 60, left, right), label=f"{value:g} min")
            for value in ticks(0.0, minutes)
        ),
        down=tuple(
            Tick(at=100 - each.at, label=each.label) for each in _value_ticks(metric, low, high)
        ),
    )


def ticks(low: float, high: float, *, about: int = 5) -> tuple[float, ...]:
    """Round values (1, 2 or 5 times a power of ten apart) from `low` to `high`."""
    if not high > low:
        return (low,)
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return tuple(round(number * step, digits) for number in range(first, last + 1))


def _ratio_ticks(low: float, high: float) -> tuple[float, ...]:
    """Round changes; powers of two where the axis spans more than a doubling."""
    if high / low <= 2.5:
        return ticks(low, high)
    return tuple(
        2.0**power for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    )


def _value_ticks(metric: Metric, low: float, high: float) -> tuple[Tick, ...]:
    scale = 1000.0 if words.unit_words(metric) == "ms" else 1.0
    return tuple(
        Tick(at=_percent_of(value * scale, low, high), label=f"{value:,.6g}".replace(",", " "))
        for value in ticks(low / scale, high / scale)
    )


def _change(ratio: float) -> str:
    """A ratio as people read it: `+2 %`, `×4`."""
    if ratio >= 2:
        return f"×{ratio:g}"
    change = round((ratio - 1) * 100, 6)
    return f"{change:+g} %".replace("-", "−") if change else "0"


def _widened(low: float, high: float) -> tuple[float, float]:
    room = (high - low) * _MARGIN or abs(low) * 0.01 or 1.0
    return low - room, high + room


def _percent_of(value: float, low: float, high: float) -> float:
    return round(min(max((value - low) / (high - low), 0.0), 1.0) * 100, 3)


def _median(side: Side, metric: Metric, low: float, high: float) -> float | None:
    values: Sequence[float] = side.values(metric.name)
    return _percent_of(statistics.median(values), low, high) if values else None


def _title(reading: Reading, metric: Metric) -> str:
    unit = words.unit_words(metric)
    value = f"{words.value_words(metric, reading.values[metric.name])} {unit}".strip()
    happened = f"; {', '.join(reading.disturbances)}" if reading.disturbances else ""
    return f"{reading.label}: {value}{happened}"


def _is_flagged(comparison: Comparison, reading: Reading, metric: Metric) -> bool:
    return any(each.reading == reading and each.metric == metric for each in comparison.flagged)


def _moment_s(reading: Reading) -> float | None:
    if reading.began is None:
        return None
    try:
        return datetime.fromisoformat(reading.began).timestamp()
    except ValueError:
        return None
