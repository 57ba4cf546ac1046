"""Charts of what hosts, processes and the server did: CPU, disk, WAL and network over time.

Tables are matched by name and column, as `observers/` declares them; a table that is not there, or
a device that stood still, gives no panel.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pgdyno.reports.charts import Line, Panel
from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.observed import Observed, busiest, observed, tables_ending
from pgdyno.reports.resources import JIFFIES_PER_S
from pgdyno.reports.terms import TITLES
from pgdyno.reports.timeline import TimeAxis
from pgdyno.stats.rates import CPU_KINDS

_CPU_COLOURS = {
    "user": "blue",
    "sys": "orange",
    "wait": "purple",
    "steal": "red",
    "idle": "idle",
}
_ROLE_COLOURS = ("blue", "orange", "green", "red", "purple", "sky")
_BYTE_UNITS = (("GB/s", 1024**3), ("MB/s", 1024**2), ("kB/s", 1024), ("bytes/s", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """A line before it is placed: values by seconds on the axis."""

    label: str
    about: str
    colour: str
    values: dict[float, float | None]


def resource_panels(documents: TrialDocuments, axis: TimeAxis) -> list[Panel]:
    """All panels there is something to show on, CPU first."""
    found = [_cpu(documents, axis, name) for name in tables_ending(documents, "_cpu")]
    found.append(_roles(documents, axis))
    found += [_disk(documents, axis, name) for name in tables_ending(documents, "_disk")]
    found.append(_wal(documents, axis))
    found += [_network(documents, axis, name) for name in tables_ending(documents, "_network")]
    return [panel for panel in found if panel is not None]


def _cpu(documents: TrialDocuments, axis: TimeAxis, name: str) -> Panel | None:
    rows = observed(documents, axis, name).select("cpu", "all")
    shares = rows.shares()
    if not shares:
        return None
    host = name.removesuffix("_cpu")
    kinds = [kind for kind in CPU_KINDS if kind != "steal" or any(one.steal for one in shares)]
    return Panel(
        key=name,
        title="CPU" if host == "host" else f"CPU of {host}",
        about="what all CPUs of the host did, in percent of their time",
        unit="%",
        scale="share",
        stacked=True,
        horizontal=[rows.seconds(share.end_ns) for share in shares],
        lines=tuple(
            Line(
                label=kind,
                about=TITLES[kind],
                colour=_CPU_COLOURS[kind],
                values=[100 * getattr(share, kind) for share in shares],
            )
            for kind in kinds
        ),
    )


def _roles(documents: TrialDocuments, axis: TimeAxis) -> Panel | None:
    whole = observed(documents, axis, "processes")
    several = []
    for role, colour in zip(whole.labels("role"), _ROLE_COLOURS, strict=False):
        own = whole.select("role", role)
        user = own.values("user_jiffies", factor=1 / JIFFIES_PER_S)
        sys = own.values("sys_jiffies", factor=1 / JIFFIES_PER_S)
        about = f"CPUs that the {role}'s processes kept busy"
        summed = {time_s: _sum(value, sys.get(time_s)) for time_s, value in user.items()}
        several.append(_Series(label=role, about=about, colour=colour, values=summed))
    about = "CPUs that the processes of each role kept busy"
    return _panel(("processes", "CPU by role", "CPUs", about), several)


def _disk(documents: TrialDocuments, axis: TimeAxis, name: str) -> Panel | None:
    counters = (("read", "read_bytes", "sky"), ("written", "write_bytes", "red"))
    found = busiest(observed(documents, axis, name), "device", ("read_bytes", "write_bytes"))
    return _bytes_panel((name, "Disk", "of the busiest disk"), _bytes(found, counters))


def _network(documents: TrialDocuments, axis: TimeAxis, name: str) -> Panel | None:
    counters = (("received", "received_bytes", "sky"), ("sent", "sent_bytes", "purple"))
    found = busiest(observed(documents, axis, name), "interface", ("received_bytes", "sent_bytes"))
    return _bytes_panel((name, "Network", "of the busiest interface"), _bytes(found, counters))


def _wal(documents: TrialDocuments, axis: TimeAxis) -> Panel | None:
    values = observed(documents, axis, "wal").values("wal_position_bytes")
    series = _Series(label="WAL", about=TITLES["WAL"], colour="purple", values=values)
    return _bytes_panel(("wal", "WAL", "write-ahead log generated"), [series])


def _bytes(
    found: tuple[str, Observed] | None, counters: Iterable[tuple[str, str, str]]
) -> list[_Series]:
    if found is None:
        return []
    device, own = found
    return [
        _Series(
            label=f"{device} {word}",
            about=f"bytes {word} by {device}",
            colour=colour,
            values=own.values(counter),
        )
        for word, counter, colour in counters
    ]


def _bytes_panel(words: tuple[str, str, str], several: list[_Series]) -> Panel | None:
    """A panel of bytes a second in the unit that its highest value calls for."""
    key, title, about = words
    highest = max((v or 0.0 for one in several for v in one.values.values()), default=0.0)
    unit, size = next(pair for pair in _BYTE_UNITS if highest >= pair[1] or pair[1] == 1)
    scaled = [
        replace(one, values={at: None if v is None else v / size for at, v in one.values.items()})
        for one in several
    ]
    return _panel((key, title, unit, f"{about}; units are powers of 1024"), scaled)


def _panel(words: tuple[str, str, str, str], several: list[_Series]) -> Panel | None:
    """A panel of (key, title, unit, about), its lines on the union of their times.

    None where nothing is known or everything stood still.
    """
    filled = [one for one in several if any(v is not None for v in one.values.values())]
    if not filled or not any(v for one in filled for v in one.values.values()):
        return None
    key, title, unit, about = words
    times = sorted({time_s for one in filled for time_s in one.values})
    lines = tuple(
        Line(
            label=one.label,
            about=one.about,
            colour=one.colour,
            values=_at(times, one.values),
        )
        for one in filled
    )
    return Panel(
        key=key, title=title, about=about, unit=unit, scale="linear", horizontal=times, lines=lines
    )


def _at(times: Sequence[float], values: dict[float, float | None]) -> list[float | None]:
    """A line's value at every time, also where only other lines were sampled.

    A rate stands at the end of the time it covers, so in between it is that of the next sample.

    >>> _at([1, 2, 3, 4, 5], {2: 7.0, 4: 9.0})
    [None, 7.0, 9.0, 9.0, None]
    """
    own = sorted(values)
    found: list[float | None] = []
    for time_s in times:
        following = bisect_left(own, time_s)
        covered = following < len(own) and (following > 0 or own[0] == time_s)
        found.append(values[own[following]] if covered else None)
    return found


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
