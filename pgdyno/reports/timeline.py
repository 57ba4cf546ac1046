"""What happened when: throughput and response times from the engine's intervals, on one time axis.

Zero is the beginning of the measurement, so the warm-up lies at negative seconds. A line of the
engine's intervals stands at its end. Percentiles of an interval are its own histogram's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgdyno.contract import Interval, Series
from pgdyno.reports.charts import Line, Panel
from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.terms import TITLES

_PERCENTILES: tuple[tuple[str, str, Callable[[Series], int]], ...] = (
    ("p50", "time-1", lambda series: series.p50_ns),
    ("p95", "time-2", lambda series: series.p95_ns),
    ("p99", "time-3", lambda series: series.p99_ns),
    ("p99.9", "time-4", lambda series: series.p99_9_ns),
)

# A last slice below this share of the one before it is shown together with it.
_SHORT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """Where zero is on both clocks, and what the axis spans in seconds."""

    zero_monotonic_ns: int
    zero_wall_unix_ns: int | None
    begin_s: float
    measurement_end_s: float
    end_s: float

    def seconds(self, monotonic_ns: int) -> float:
        """An instant of the engine's clock as seconds on the axis."""
        return (monotonic_ns - self.zero_monotonic_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """All lines of one slice of time together; `times` of the phase that has more in it."""

    begin_ns: int
    end_ns: int
    committed: int
    failed: int
    server_commits: int
    response: Series | None

    @property
    def length_s(self) -> float:
        """Length in seconds."""
        return (self.end_ns - self.begin_ns) / 1e9


def time_axis(documents: TrialDocuments) -> TimeAxis | None:
    """The axis of a trial, or None where the engine wrote no interval."""
    intervals = documents.intervals
    if not intervals:
        return None
    measured = [one for one in intervals if one.phase == "measurement"]
    last_ns = max(one.end_ns for one in intervals)
    zero_ns = measured[0].begin_ns if measured else last_ns
    wall_ns, end_ns = None, last_ns
    if documents.summary is not None:
        clock, timeline = documents.summary.clock, documents.summary.timeline
        zero_ns = timeline.measurement_begin_ns or zero_ns
        end_ns = timeline.measurement_end_ns or end_ns
        wall_ns = clock.wall_unix_ns + zero_ns - clock.monotonic_ns
    first_ns = min(one.begin_ns for one in intervals)
    return TimeAxis(
        zero_monotonic_ns=zero_ns,
        zero_wall_unix_ns=wall_ns,
        begin_s=(first_ns - zero_ns) / 1e9,
        measurement_end_s=(end_ns - zero_ns) / 1e9,
        end_s=(last_ns - zero_ns) / 1e9,
    )


def slices(intervals: Sequence[Interval]) -> list[Slice]:
    """Intervals by slice of time. Stragglers of the warm-up share a slice with the measurement.

    Their counts are added. Percentiles cannot be: those of the line with more in it are shown. A
    last slice much shorter than the others (what is left when a measurement ends between two
    seconds) joins the one before it: a rate over a millisecond is a spike that says nothing.
    """
    together: defaultdict[tuple[int, int], list[Interval]] = defaultdict(list)
    for one in intervals:
        if one.end_ns > one.begin_ns:
            together[one.begin_ns, one.end_ns].append(one)
    found = sorted(together.items())
    if len(found) > 1:
        (begin_ns, before_end_ns), before = found[-2]
        (_, end_ns), last = found[-1]
        if end_ns - before_end_ns < _SHORT * (before_end_ns - begin_ns):
            found[-2:] = [((begin_ns, end_ns), [*before, *last])]
    return [_slice(begin_ns, end_ns, lines) for (begin_ns, end_ns), lines in found]


def _slice(begin_ns: int, end_ns: int, lines: Sequence[Interval]) -> Slice:
    return Slice(
        begin_ns=begin_ns,
        end_ns=end_ns,
        committed=sum(line.counters.committed for line in lines),
        failed=sum(line.counters.failed.total for line in lines),
        server_commits=sum(line.server_commits for line in lines),
        response=_response(lines),
    )


def _response(lines: Sequence[Interval]) -> Series | None:
    all_times = (line.times.response or line.times.service for line in lines)
    most = max(all_times, key=lambda series: series.count)
    return most if most.count else None


def throughput_panel(axis: TimeAxis, several: Sequence[Slice]) -> Panel:
    """Committed transactions a second, and failed ones where there are any."""
    lines = [
        Line(
            label="committed",
            about=TITLES["throughput"],
            colour="green",
            values=[one.committed / one.length_s for one in several],
            filled=True,
        )
    ]
    if any(one.failed for one in several):
        rates = [one.failed / one.length_s for one in several]
        lines.append(Line(label="failed", about=TITLES["failed"], colour="red", values=rates))
    return Panel(
        key="throughput",
        title="Throughput",
        about="committed transactions a second, interval by interval",
        unit="tps",
        scale="linear",
        horizontal=[axis.seconds(one.end_ns) for one in several],
        lines=tuple(lines),
    )


def response_panel(axis: TimeAxis, several: Sequence[Slice]) -> Panel | None:
    """Percentiles of response time in milliseconds, each from its interval's own histogram.

    None where no transaction was committed.
    """
    if not any(one.response for one in several):
        return None
    lines = [
        Line(
            label=name,
            about=TITLES[name],
            colour=colour,
            values=[_ms(value(one.response)) if one.response else None for one in several],
        )
        for name, colour, value in _PERCENTILES
    ]
    slowest = [_ms(one.response.max_ns) if one.response else None for one in several]
    lines.append(
        Line(label="max", about="the slowest one", colour="faint", values=slowest, dashed=True)
    )
    return Panel(
        key="response",
        title="Response time",
        about="percentiles of each interval, on a logarithmic axis",
        unit="ms",
        scale="log",
        horizontal=[axis.seconds(one.end_ns) for one in several],
        lines=tuple(lines),
    )


def _ms(ns: int) -> float | None:
    return ns / 1e6 if ns > 0 else None
