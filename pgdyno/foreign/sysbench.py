"""sysbench's report as text, of 0.4, 0.5, 1.0 and its master: one reading for each report. Pure.

Lines are found by their words, wherever they stand. Its percentile comes from buckets 1.8 % wide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pgdyno.experiment.readings import Circumstances, Reading

_VERSION: Final = re.compile(r"^\s*sysbench (?:v?(\d\S*))", re.M)
_BEGIN: Final = re.compile(r"^\s*Running the test with following options", re.M)
_STATISTICS: Final = re.compile(
    r"^\s*(?:OLTP test statistics|SQL statistics|General statistics|Throughput):", re.M
)
_PROGRESS: Final = re.compile(
    r"^\s*\[ *(?P<at>\d+)s *\] (?:thds|threads): \d+,? tps: (?P<tps>[\d.]+)", re.M
)
_CHECKPOINT: Final = re.compile(r"^\s*\[ *\d+s *\] Checkpoint report:", re.M)

NEVER_SAID: Final = (
    "durability class",
    "which script, tables and sizes",
    "version and settings of the server",
    "host",
    "warm-up",
    "age of the data",
)
"""What no output of sysbench says."""


def is_sysbench(text: str) -> bool:
    """Whether a text holds a report or progress lines of sysbench."""
    return bool(_STATISTICS.search(text) or _PROGRESS.search(text))


def read_text(text: str, source: str) -> tuple[Reading, ...]:
    """Every report in the text, in its order."""
    parts = [part for part in _parts(text) if is_sysbench(part)]
    return tuple(
        _reading(part, source if len(parts) == 1 else f"{source} report {number}", number)
        for number, part in enumerate(parts, start=1)
    )


def _parts(text: str) -> Iterator[str]:
    """From one beginning to the next; a text without any is one part."""
    starts = [match.start() for match in _BEGIN.finditer(text)]
    if len(starts) < 2:
        yield text
        return
    versions = [match.start() for match in _VERSION.finditer(text)]
    # The line with the version stands before the beginning it belongs to.
    begins = [max((v for v in versions if v < start), default=start) for start in starts]
    begins = [begin if begin not in begins[:i] else starts[i] for i, begin in enumerate(begins)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        yield text[begin:end]


def _reading(part: str, label: str, number: int) -> Reading:
    final = _final(part)
    values = _values(final)
    progress = [float(match["tps"]) for match in _PROGRESS.finditer(part)]
    reason = None
    if "throughput_per_s" not in values:
        reason = "has no final report: the run was cut off"
        if progress:
            reason = f"was cut off: only {len(progress)} progress lines are there"
            values["throughput_per_s"] = sum(progress) / len(progress)
    elif _CHECKPOINT.search(part):
        reason = "used --report-checkpoints: its final report covers only the time after the last"
    return Reading(
        label=label,
        variant="",
        source=label,
        number=number,
        complete=reason is None,
        reason=reason,
        values=values,
        absent={
            name: "sysbench reports one percentile of its own choice (--percentile)"
            for name in ("p50_us", "p90_us", "p95_us", "p99_us", "p99_9_us")
            if name not in values
        },
        committed=_whole(final, r"^\s*(?:transactions|total number of events): *(\d+)"),
        unknown=(*NEVER_SAID, *_unsaid(part)),
        circumstances=Circumstances(
            tool="sysbench",
            tool_version=_version(part),
            load=_load(part),
        ),
    )


def _final(part: str) -> str:
    """The last report of a part: from its first block of statistics on."""
    after = [match.end() for match in _CHECKPOINT.finditer(part)]
    body = part[after[-1] :] if after else part
    blocks = [match.start() for match in _STATISTICS.finditer(body)]
    if after and len(blocks) > 1:
        sql = [m.start() for m in re.finditer(r"^\s*(?:SQL|OLTP test) statistics:", body, re.M)]
        return body[sql[-1] :] if len(sql) > 1 else body
    return body[blocks[0] :] if blocks else ""


def _values(report: str) -> dict[str, float]:
    per_s = _number(report, r"^\s*transactions: *\d+ *\(([\d.]+) per sec")
    if per_s is None:
        per_s = _number(report, r"^\s*events/s \(eps\): *([\d.]+)")
    events = _whole(report, r"^\s*(?:transactions|total number of events): *(\d+)")
    total_s = _number(report, r"^\s*total time: *([\d.]+)s")
    if per_s is None and events and total_s:
        per_s = events / total_s
    errors = _whole(report, r"^\s*(?:ignored errors|deadlocks): *(\d+)")
    found = {
        "throughput_per_s": per_s,
        "average_us": _microseconds(report, r"avg: *([\d.]+)"),
        "max_us": _microseconds(report, r"max: *([\d.]+)"),
    }
    if events is not None and errors is not None:
        found["failed_share"] = errors / max(events + errors, 1)
        found["not_committed_share"] = found["failed_share"]
    percentile = re.search(r"^\s*(?:approx\. +)?(\d+)(?:th)? percentile: *([\d.]+)", report, re.M)
    if percentile and percentile[1] in ("50", "90", "95", "99"):
        found[f"p{percentile[1]}_us"] = float(percentile[2]) * 1000
    return {name: value for name, value in found.items() if value is not None}


def _microseconds(report: str, pattern: str) -> float | None:
    """Sysbench prints milliseconds, with or without their unit."""
    found = _number(report, rf"^\s*{pattern}(?:ms)?\s*$")
    return None if found is None else found * 1000


def _unsaid(part: str) -> Iterator[str]:
    if _version(part) is None:
        yield "version of sysbench"
    if "Target transaction rate" in part:
        yield "times without waiting in its queue"


def _version(part: str) -> str | None:
    match = _VERSION.search(part)
    return match[1].rstrip(":") if match else None


def _load(part: str) -> dict[str, str]:
    found = {}
    for name, pattern in (
        ("clients", r"^\s*Number of threads: *(\d+)"),
        ("arrivals", r"^\s*Target transaction rate: *(\S+)"),
    ):
        if match := re.search(pattern, part, re.M):
            found[name] = match[1] if name == "clients" else f"open loop at {match[1]}"
    found.setdefault("arrivals", "closed loop")
    time = _number(part, r"^\s*(?:total time|time elapsed): *([\d.]+)s")
    if time is not None:
        found["length"] = f"{time:.0f} s"
    return found


def _number(text: str, pattern: str) -> float | None:
    match = re.search(pattern, text, re.M)
    return float(match[1]) if match else None


def _whole(text: str, pattern: str) -> int | None:
    found = _number(text, pattern)
    return None if found is None else int(found)
