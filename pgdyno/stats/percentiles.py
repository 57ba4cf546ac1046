"""Percentiles from HdrHistogram logs: histograms are added up, percentiles are never averaged.

The percentile of quantile q over n recorded values is the value of rank max(1, ⌈q·n⌉) (nearest
rank; Hyndman and Fan 1996, type 1), reported as the highest value its histogram bucket stands
for, so it errs upwards by less than one part in 10^digits. q·n is computed in binary floating
point. The engine's crate (`hdrhistogram`, `value_at_quantile`) uses the same rule;
`tests/golden/percentiles.json` holds vectors for both halves. (The Python package's own
percentile rounds the rank instead, so only its decoder is used.) Log format: HdrHistogram's
interval log 1.x with V2 deflate payloads, https://hdrhistogram.org.

>>> distribution = Distribution.of({100: 98, 5000: 2})
>>> distribution.value_at(0.5), distribution.value_at(0.99), distribution.count
(100, 5003, 100)
"""

from __future__ import annotations

import math
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import Final

from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram

DEFAULT_DIGITS: Final = 3
_UNDECODABLE: Final = (
    *(ValueError, TypeError, IndexError, zlib.error),
    *(HdrCookieException, HdrLengthException),
)
_INTERVAL_LINE: Final = re.compile(
    r"(?:Tag=(?P<tag>[^,]*),)?(?P<begin>[\d.]+),(?P<length>[\d.]+),[\d.]+,(?P<payload>\S+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a histogram cuts the axis of values into buckets.

    `unit_magnitude` is the power of two below which values are not told apart;
    `half_magnitude` the power of two of half the number of linear sub-buckets.
    """

    unit_magnitude: int
    half_magnitude: int

    @staticmethod
    def of_digits(digits: int) -> Layout:
        """The layout that tells values apart to so many decimal digits, from 1 upwards."""
        return Layout(unit_magnitude=0, half_magnitude=math.ceil(math.log2(2 * 10**digits)) - 1)

    def index(self, value: int) -> int:
        """The bucket that holds a value."""
        half = 1 << self.half_magnitude
        mask = (2 * half - 1) << self.unit_magnitude
        exponent = (value | mask).bit_length() - self.unit_magnitude - self.half_magnitude - 1
        return exponent * half + (value >> (exponent + self.unit_magnitude))

    def lowest(self, index: int) -> int:
        """The lowest value of a bucket."""
        exponent, position = self._split(index)
        return position << (exponent + self.unit_magnitude)

    def highest(self, index: int) -> int:
        """The highest value of a bucket."""
        exponent, _ = self._split(index)
        return self.lowest(index) + (1 << (exponent + self.unit_magnitude)) - 1

    def _split(self, index: int) -> tuple[int, int]:
        exponent = (index >> self.half_magnitude) - 1
        position = (index & ((1 << self.half_magnitude) - 1)) + (1 << self.half_magnitude)
        return (exponent, position) if exponent >= 0 else (0, position - (1 << self.half_magnitude))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point of a distribution: `quantile` of the values are at most `value`."""

    quantile: float
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """How many values lie in [`low`, `high`)."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Recorded values: bucket numbers in rising order, and how many values lie at or below each."""

    layout: Layout
    indices: tuple[int, ...]
    cumulated: tuple[int, ...]

    @staticmethod
    def of(counts: Mapping[int, int], *, digits: int = DEFAULT_DIGITS) -> Distribution:
        """A distribution of values with how often each was seen."""
        layout = Layout.of_digits(digits)
        found: dict[int, int] = {}
        for value, count in counts.items():
            index = layout.index(value)
            found[index] = found.get(index, 0) + count
        return _distribution(layout, found)

    @property
    def count(self) -> int:
        """How many values were recorded."""
        return self.cumulated[-1] if self.cumulated else 0

    @property
    def lowest(self) -> int:
        """Lowest value that the lowest recorded bucket stands for; 0 without values."""
        return self.layout.lowest(self.indices[0]) if self.indices else 0

    @property
    def highest(self) -> int:
        """Highest value that the highest recorded bucket stands for; 0 without values."""
        return self.layout.highest(self.indices[-1]) if self.indices else 0

    def value_at(self, quantile: float) -> int:
        """The percentile of a quantile in [0, 1]; 0 when nothing was recorded."""
        if not 0.0 <= quantile <= 1.0:
            raise ValueError(f"a quantile lies between 0 and 1, {quantile} does not")
        if not self.indices:
            return 0
        rank = max(1, math.ceil(quantile * self.count))
        index = self.indices[bisect_left(self.cumulated, min(rank, self.count))]
        return self.layout.lowest(index) if quantile == 0.0 else self.layout.highest(index)

    def bins(self, *, per_decade: int = 20) -> tuple[Bin, ...]:
        """Counts in bins of equal width on a logarithmic axis, lowest to highest, empty ones too.

        A bucket belongs to the bin of its middle.
        """
        found: dict[int, int] = {}
        for index, count in self.buckets():
            middle = (self.layout.lowest(index) + self.layout.highest(index)) / 2
            number = math.floor(math.log10(max(middle, 1.0)) * per_decade)
            found[number] = found.get(number, 0) + count
        if not found:
            return ()
        return tuple(
            Bin(
                low=10 ** (number / per_decade),
                high=10 ** ((number + 1) / per_decade),
                count=found.get(number, 0),
            )
            for number in range(min(found), max(found) + 1)
        )

    def points(self, *, per_half: int = 8) -> tuple[Point, ...]:
        """Points for a curve over 1/(1−q): `per_half` for each halving of what is left, then q = 1.

        It goes on while at least one value lies above, so 10 million values reach 0.9999999.
        """
        if not self.indices:
            return ()
        quantiles = [0.0]
        step = 1
        while (1 - quantiles[-1]) * self.count >= 1:
            quantiles.append(1 - 2 ** -(step / per_half))
            step += 1
        quantiles[-1] = 1.0
        return tuple(Point(quantile=q, value=self.value_at(q)) for q in quantiles)

    def buckets(self) -> Iterator[tuple[int, int]]:
        """Every recorded bucket's number and count."""
        before = 0
        for index, below in zip(self.indices, self.cumulated, strict=True):
            yield index, below - before
            before = below


EMPTY: Final = Distribution(layout=Layout.of_digits(DEFAULT_DIGITS), indices=(), cumulated=())


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalHistogram:
    """One line of a log: the values recorded in `length_s` seconds from `begin_s`, as logged."""

    tag: str
    begin_s: float
    length_s: float
    distribution: Distribution


def merge(distributions: Iterable[Distribution]) -> Distribution:
    """One distribution of all values; `ValueError` when their buckets are not cut alike."""
    layout: Layout | None = None
    found: dict[int, int] = {}
    for distribution in distributions:
        if not distribution.indices:
            continue
        if layout is None:
            layout = distribution.layout
        elif layout != distribution.layout:
            raise ValueError("histograms of different precision cannot be merged")
        for index, count in distribution.buckets():
            found[index] = found.get(index, 0) + count
    return EMPTY if layout is None else _distribution(layout, found)


def read_log(text: str, *, tags: Set[str] | None = None) -> Iterator[IntervalHistogram]:
    """The intervals of a log, in its order; only those with a tag in `tags` where that is given.

    An untagged line has the tag "". Comments and the legend are skipped, and so is a last line
    without its end (the engine was killed while writing it). `ValueError` where a payload cannot
    be decoded.
    """
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        match = _INTERVAL_LINE.match(line)
        if match is None or not line.endswith("\n"):
            continue
        tag = match["tag"] or ""
        if tags is not None and tag not in tags:
            continue
        yield IntervalHistogram(
            tag=tag,
            begin_s=float(match["begin"]),
            length_s=float(match["length"]),
            distribution=_decode(match["payload"], number),
        )


def distributions_by_tag(text: str, *, tags: Set[str] | None = None) -> dict[str, Distribution]:
    """All intervals of each tag merged, tags in order of appearance."""
    grouped: dict[str, list[Distribution]] = {}
    for interval in read_log(text, tags=tags):
        grouped.setdefault(interval.tag, []).append(interval.distribution)
    return {tag: merge(distributions) for tag, distributions in grouped.items()}


def _distribution(layout: Layout, counts: Mapping[int, int]) -> Distribution:
    indices = tuple(sorted(index for index, count in counts.items() if count))
    return Distribution(
        layout=layout,
        indices=indices,
        cumulated=tuple(accumulate(counts[index] for index in indices)),
    )


def _decode(payload: str, line_number: int) -> Distribution:
    try:
        histogram = HdrHistogram.decode(payload)
    except _UNDECODABLE as error:
        raise ValueError(f"line {line_number} of the histogram log cannot be decoded") from error
    layout = Layout(
        unit_magnitude=histogram.unit_magnitude,
        half_magnitude=histogram.sub_bucket_half_count_magnitude,
    )
    if not histogram.total_count:
        return Distribution(layout=layout, indices=(), cumulated=())
    length = layout.index(histogram.max_value) + 1
    # Most buckets are empty: let C find those that are not.
    counts = memoryview(histogram.counts).cast("B").cast("Q")[:length].tolist()
    indices = tuple(compress(range(length), counts))
    return Distribution(
        layout=layout,
        indices=indices,
        cumulated=tuple(accumulate(counts[index] for index in indices)),
    )
