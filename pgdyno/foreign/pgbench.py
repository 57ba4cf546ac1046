"""pgbench's report as text, of 9.x to 19: one reading for each report in it. Pure.

Lines are found by their words, wherever they stand, so a report pasted into a page is read as well.
Progress lines before a report belong to it; without a report (a run that was cut off) they are all
there is. Nothing is guessed: what the text does not say stands in `unknown`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pgdyno.experiment.readings import Circumstances, Reading

_BANNER: Final = re.compile(
    r"^\s*pgbench \((?P<version>\d[\w.]*)[^,]*?(?:, server (?P<server>[^)]+))?\)*\s*$", re.M
)
_REPORT: Final = re.compile(r"^\s*transaction type: *(.+?)\s*$", re.M)
_PROGRESS: Final = re.compile(
    r"progress: (?P<at>[\d.]+) s, (?P<tps>[\d.]+) tps, lat (?P<lat>[\d.]+|NaN) ms"
)
_ABORTED: Final = "Run was aborted"
_OF_OTHERS: Final = (
    "the average is run time × clients / transactions, not measured: no -P, -R or -L"
)

NEVER_SAID: Final = (
    "durability class",
    "host",
    "server settings",
    "warm-up (pgbench has none)",
    "age of the data",
)
"""What no output of pgbench says."""


def is_pgbench(text: str) -> bool:
    """Whether a text holds a report or progress lines of pgbench."""
    return bool(_REPORT.search(text) or _PROGRESS.search(text))


def read_text(text: str, source: str) -> tuple[Reading, ...]:
    """Every report in the text, in its order."""
    parts = list(_parts(text))
    return tuple(
        _reading(part, source if len(parts) == 1 else f"{source} report {number}", number)
        for number, part in enumerate(parts, start=1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One report with the progress lines and the banner before it; `report` may be empty."""

    before: str
    report: str


def _parts(text: str) -> Iterator[_Part]:
    starts = [match.start() for match in _REPORT.finditer(text)]
    if not starts:
        yield _Part(before=text, report="")
        return
    done = 0
    for number, start in enumerate(starts):
        following = starts[number + 1] if number + 1 < len(starts) else len(text)
        end = _end_of_report(text, start, following)
        yield _Part(before=text[done:start], report=text[start:end])
        done = end


def _end_of_report(text: str, start: int, following: int) -> int:
    """A report ends before the next one's banner or progress lines."""
    ends = [following]
    tps = list(re.finditer(r"^\s*tps = .*$", text[start:following], re.M))
    if tps:
        after = start + tps[-1].end()
        for pattern in (_BANNER, _PROGRESS):
            if match := pattern.search(text, after, following):
                ends.append(match.start())
    return min(ends)


def _reading(part: _Part, label: str, number: int) -> Reading:
    values = _values(part.report) if part.report else {}
    progress = [
        (float(match["tps"]), float(match["lat"]))
        for match in _PROGRESS.finditer(part.before + part.report)
    ]
    reason = None
    if "throughput_per_s" not in values:
        reason = "has no tps: the run was cut off"
        if progress:
            reason = f"was cut off: only {len(progress)} progress lines are there"
            values = {**values, **_from_progress(progress)}
    elif _ABORTED in part.report:
        reason = "was aborted by pgbench: clients were lost on the way"
    return Reading(
        label=label,
        variant="",
        source=label,
        number=number,
        complete=reason is None,
        reason=reason,
        values=values,
        absent=dict.fromkeys(("p50_us", "p90_us", "p95_us", "p99_us", "p99_9_us"), _NO_TIMES),
        committed=_whole(part.report, r"number of transactions actually processed: *(\d+)"),
        unknown=(*NEVER_SAID, *_unsaid(part)),
        circumstances=_circumstances(part),
    )


_NO_TIMES: Final = "pgbench's report has no percentiles; its -l log has the times"


def _values(report: str) -> dict[str, float]:
    found: dict[str, float | None] = {
        "throughput_per_s": _tps(report),
        "average_us": _thousandfold(_number(report, r"^\s*latency average(?: =|:) *([\d.]+) ms")),
    }
    processed = _whole(report, r"number of transactions actually processed: *(\d+)")
    failed = _whole(report, r"^number of failed transactions: *(\d+)") or 0
    skipped = _whole(report, r"^number of transactions skipped: *(\d+)") or 0
    late = _whole(report, r"^number of transactions above the .* latency limit: *(\d+)")
    if processed:
        scheduled = processed + failed + skipped
        found["failed_share"] = failed / scheduled
        found["skipped_share"] = skipped / scheduled
        found["not_committed_share"] = (failed + skipped) / scheduled
        if late is not None:
            found["late_share"] = late / processed
    return {name: value for name, value in found.items() if value is not None}


def _tps(report: str) -> float | None:
    """Without the time to connect where the report tells both; with -C only the other is there."""
    for words in (
        "without initial connection time",
        "excluding connections establishing",
        "including reconnection times",
        "including connections establishing",
    ):
        found = _number(report, rf"^\s*tps = ([\d.]+) \({words}\)")
        if found is not None:
            return found
    return None


def _from_progress(progress: list[tuple[float, float]]) -> dict[str, float]:
    """Means over progress lines, which all cover the same time; latency weighted by throughput."""
    total = sum(tps for tps, _ in progress)
    found = {"throughput_per_s": statistics.fmean(tps for tps, _ in progress)}
    if total:
        found["average_us"] = 1000 * sum(tps * lat for tps, lat in progress if tps) / total
    return found


def _unsaid(part: _Part) -> Iterator[str]:
    report = part.report
    if report and "latency stddev" not in report:
        yield f"average response time ({_OF_OTHERS})"
    if not _BANNER.search(part.before):
        yield "version of pgbench and of the server"
    if "reconnection times" not in report and "initial connection time" not in report:
        yield "whether each transaction had its own connection (-C)"
    if "rate limit schedule lag" in report:
        yield "the rate that was asked for (-R)"
    if "transaction type: multiple scripts" in report and "weight:" not in report:
        yield "the scripts' weights"


def _circumstances(part: _Part) -> Circumstances:
    report = part.report
    banners = list(_BANNER.finditer(part.before))
    banner = banners[-1] if banners else None
    version = banner["version"] if banner else None
    kind = _REPORT.search(report)
    data = {}
    if kind:
        data["transaction type"] = kind[1]
    for name, pattern in (
        ("scaling factor", r"^\s*scaling factor: *(\S+)"),
        ("partitions", r"^\s*partitions: *(\S+)"),
    ):
        if found := re.search(pattern, report, re.M):
            data[name] = found[1]
    return Circumstances(
        tool="pgbench",
        tool_version=version,
        workload=kind[1] if kind else None,
        data=data or None,
        load=_load(report),
        server_version=(banner["server"] or version) if banner else None,
    )


def _load(report: str) -> dict[str, str]:
    found = {}
    for name, pattern in (
        ("clients", r"number of clients: *(\d+)"),
        ("threads", r"number of threads: *(\d+)"),
        ("protocol", r"query mode: *(\w+)"),
        ("length", r"duration: *(\d+ s)"),
        ("length", r"number of transactions per client: *(\d+)"),
        ("tries", r"maximum number of tries: *(\d+)"),
        ("latency limit", r"above the ([\d.]+ ms) latency limit"),
    ):
        if match := re.search(rf"^\s*(?:number of transactions )?{pattern}", report, re.M):
            found[name] = match[1] + (" transactions a client" if "per client" in pattern else "")
    if "rate limit schedule lag" in report:
        found["arrivals"] = "open loop"
    elif report:
        found["arrivals"] = "closed loop"
    if "reconnection times" in report:
        found["connections"] = "one for each transaction"
    return found


def _number(text: str, pattern: str) -> float | None:
    match = re.search(pattern, text, re.M)
    return float(match[1]) if match else None


def _whole(text: str, pattern: str) -> int | None:
    found = _number(text, pattern)
    return None if found is None else int(found)


def _thousandfold(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds * 1000
