"""pgbench's log files (-l): every transaction, or sums of intervals (--aggregate-interval). Pure.

A run leaves one file a thread, `PREFIX.PID` and `PREFIX.PID.THREAD`; together they are one trial.
The time of a transaction includes its schedule lag (-R) and its retries, as a response time does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pgdyno.experiment.readings import Circumstances, Reading

_ONE: Final = re.compile(
    r"^(\d+) (\d+) (\d+|skipped|failed|serialization|deadlock|other) (\d+) (\d{9,}) (\d+)(?: \d+)*$"
)
_SUMS: Final = re.compile(r"^\d{9,}(?: \d+){5,15}$")
_QUANTILES: Final = {
    "p50_us": 0.5,
    "p90_us": 0.9,
    "p95_us": 0.95,
    "p99_us": 0.99,
    "p99_9_us": 0.999,
}
_SAMPLED_TELLING: Final = 1.02
UNSAID: Final = (
    "durability class",
    "host",
    "server settings",
    "versions of pgbench and of the server",
    "clients' protocol and scripts",
    "warm-up (pgbench has none)",
    "age of the data",
)
"""What no log of pgbench says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transaction:
    client: int
    number: int
    time_us: int | None
    skipped: bool
    end_us: int


def is_log(text: str) -> bool:
    """Whether a text's first line is one of pgbench's log."""
    first = text.partition("\n")[0].strip()
    return bool(_ONE.match(first) or _SUMS.match(first))


def read_log(texts: Sequence[str], label: str) -> Reading:
    """One trial from the logs of all its threads. Lines that are cut off are left out."""
    lines = [line for text in texts for line in text.splitlines()]
    if any(_SUMS.match(line) and not _ONE.match(line) for line in lines[:1]):
        return _from_sums(lines, label)
    return _from_transactions(list(_transactions(lines)), label)


def _transactions(lines: Iterable[str]) -> Iterator[_Transaction]:
    for line in lines:
        if match := _ONE.match(line):
            time = match[3]
            yield _Transaction(
                client=int(match[1]),
                number=int(match[2]),
                time_us=int(time) if time.isdigit() else None,
                skipped=time == "skipped",
                end_us=int(match[5]) * 1_000_000 + int(match[6]),
            )


def _from_transactions(found: Sequence[_Transaction], label: str) -> Reading:
    times = sorted(each.time_us for each in found if each.time_us is not None)
    values: dict[str, float] = {}
    absent: dict[str, str] = {}
    if found:
        skipped = sum(each.skipped for each in found)
        failed = len(found) - skipped - len(times)
        values["failed_share"] = failed / len(found)
        values["skipped_share"] = skipped / len(found)
        values["not_committed_share"] = (failed + skipped) / len(found)
    if times:
        values["average_us"] = sum(times) / len(times)
        values["max_us"] = times[-1]
        for name, quantile in _QUANTILES.items():
            values[name] = times[max(math.ceil(quantile * len(times)), 1) - 1]
    begin_us = min((each.end_us - (each.time_us or 0) for each in found), default=0)
    length_s = (max((each.end_us for each in found), default=0) - begin_us) / 1e6
    if is_sampled(found):
        absent["throughput_per_s"] = "the log is a sample (--sampling-rate)"
        absent["max_us"] = absent["throughput_per_s"]
        values.pop("max_us", None)
    elif length_s > 0 and times:
        values["throughput_per_s"] = len(times) / length_s
    clients = len({each.client for each in found})
    return _reading(label, values, absent, len(times), clients=clients)


def is_sampled(found: Sequence[_Transaction]) -> bool:
    """Whether transactions are missing: pgbench numbers those of each client without gaps."""
    last: dict[int, int] = {}
    for each in found:
        last[each.client] = max(last.get(each.client, 0), each.number)
    return sum(last.values()) > _SAMPLED_TELLING * len(found)


def _from_sums(lines: Sequence[str], label: str) -> Reading:
    """Sums of intervals: an average and the extremes. The first interval of the run is a part."""
    rows = [[int(word) for word in line.split()] for line in lines if _SUMS.match(line)]
    starts = sorted({row[0] for row in rows})
    step_s = min((b - a for a, b in pairwise(starts)), default=0)
    whole = [row for row in rows if row[0] != starts[0]] if len(starts) > 2 else rows
    count = sum(row[1] for row in whole)
    values: dict[str, float] = {}
    if count:
        values["average_us"] = sum(row[2] for row in whole) / count
        values["max_us"] = max(row[5] for row in whole)
    if count and step_s:
        values["throughput_per_s"] = count / (len({row[0] for row in whole}) * step_s)
    lost = [sum(row[column] for row in whole if len(row) > column) for column in (10, 13, 14, 15)]
    if any(len(row) >= 15 for row in whole) and count:
        values["skipped_share"] = lost[0] / (count + sum(lost))
        values["failed_share"] = sum(lost[1:]) / (count + sum(lost))
        values["not_committed_share"] = sum(lost) / (count + sum(lost))
    reason = "aggregated logs have sums, not single times"
    absent = dict.fromkeys(_QUANTILES, reason)
    reading = _reading(label, values, absent, count, clients=None)
    note = "the first interval (left out) and the last (pgbench drops it)"
    return Reading(
        label=reading.label, variant="", source=label, values=reading.values,
        absent=reading.absent, committed=count, unknown=(*reading.unknown, note),
        complete=reading.complete, reason=reading.reason, circumstances=reading.circumstances,
    )  # fmt: skip


def _reading(
    label: str, values: dict[str, float], absent: dict[str, str], count: int, *, clients: int | None
) -> Reading:
    return Reading(
        label=label,
        variant="",
        source=label,
        complete=bool(count),
        reason=None if count else "holds no committed transaction",
        values=values,
        absent=absent,
        committed=count,
        unknown=UNSAID,
        circumstances=Circumstances(
            tool="pgbench", load={} if clients is None else {"clients": str(clients)}
        ),
    )
