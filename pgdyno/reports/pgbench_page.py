"""The page of one run of our pgbench: what its `--json` document says, drawn as one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from pgdyno import __version__
from pgdyno.foreign.pgbench_document import Command, Document, Interval, Script, name_order
from pgdyno.reports import html
from pgdyno.reports.charts import Line, Panel
from pgdyno.reports.figures import milliseconds, rate
from pgdyno.reports.terms import TITLES
from pgdyno.units import format_counted, format_duration_s, format_per_s

_COLOURS = ("time-1", "time-2", "time-3", "time-4")
_MOST_LINES = len(_COLOURS)
# A last interval below this share of the one before it is shown together with it.
_SHORT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRows:
    """One script; its commands, each with its share of the time of all of them."""

    script: Script
    commands: tuple[tuple[Command, float], ...]


def write_pgbench_page(document: Document, name: str, path: Path) -> Path:
    """Write the page of a document to `path` and return it; `name` is what the page calls the run.

    Raises `PgdynoError` where the file cannot be written.
    """
    return html.write_page(render_pgbench_page(document, name), path)


def render_pgbench_page(document: Document, name: str) -> str:
    """The page's text."""
    style, script = html.page_style(), html.page_script()
    return (
        html.environment()
        .get_template("pgbench.html")
        .render(
            name=name,
            document=document,
            run=document.run,
            total=document.total,
            began=_began(document),
            headline=headline(document),
            trouble=tuple(trouble(document)),
            facts=tuple(facts(document)),
            percentiles=percentile_names(document),
            over_time=_over_time(document),
            rows=tuple(_rows(each) for each in document.scripts),
            titles=TITLES,
            pgdyno_version=__version__,
            style=Markup(style),
            script=Markup(script),
            style_hash=html.source_hash(style),
            script_hash=html.source_hash(script),
        )
    )


def headline(document: Document) -> str:
    """The result in one sentence."""
    total = document.total
    if total.tps is None or total.latency is None:
        return "No transaction was committed."
    said = f"{rate(total.tps)} transactions per second"
    half_us = total.latency.percentiles_us.get("p50")
    if half_us is None:
        return f"{said}, {_ms(total.latency.mean_us)} ms each on average."
    return f"{said}; half of them within {_ms(half_us)} ms."


def trouble(document: Document) -> Iterator[str]:
    """What stands against taking the figures as they are."""
    if document.ending == "aborted":
        yield "A client was aborted, so the results are incomplete."
    if document.ending == "interrupted":
        yield "The run was interrupted: these are the results up to then."
    if document.total.failed:
        yield f"{format_counted(document.total.failed, 'transaction')} failed."


def facts(document: Document) -> Iterator[tuple[str, str]]:
    """What was asked for, as names and values."""
    run = document.run
    clients = format_counted(run.clients, "client")
    threads = format_counted(run.threads, "thread")
    yield "Load", f"{clients} on {threads}, {run.query_mode} queries, {_pace(document)}"
    yield "Length", _length(document)
    partitions = f", {run.partitions} {run.partition_method} partitions" if run.partitions else ""
    yield "Scale factor", f"{run.scale}{partitions}"
    if run.max_tries != 1:
        yield "Tries", f"at most {run.max_tries}" if run.max_tries else "without limit"
    if run.variables:
        yield "Variables", ", ".join(f"{name} = {text}" for name, text in run.variables.items())
    yield "Random seed", str(run.seed)


def percentile_names(document: Document) -> tuple[str, ...]:
    """The percentiles that the document holds, in their order."""
    latency = document.total.latency
    return tuple(sorted(latency.percentiles_us, key=name_order)) if latency else ()


def joined(intervals: Sequence[Interval]) -> list[Interval]:
    """Intervals; a last one that is much shorter than the others joins the one before it.

    Counts are added; percentiles cannot be, so those of the longer one are kept.
    """
    found = [each for each in intervals if each.length_s > 0]
    if len(found) < 2 or found[-1].length_s >= _SHORT * found[-2].length_s:
        return found
    before, last = found[-2:]
    slowest = [each.latency_max_us for each in (before, last) if each.latency_max_us is not None]
    together = before.model_copy(
        update={
            "end_s": last.end_s,
            "end_unix_s": last.end_unix_s,
            "length_s": before.length_s + last.length_s,
            "committed": before.committed + last.committed,
            "failed": before.failed + last.failed,
            "skipped": before.skipped + last.skipped,
            "latency_max_us": max(slowest, default=None),
        }
    )
    return [*found[:-2], together]


def _pace(document: Document) -> str:
    offered_per_s = document.run.rate_per_s
    pace = "as fast as possible" if offered_per_s is None else format_per_s(offered_per_s)
    limit_us = document.run.latency_limit_us
    return pace if limit_us is None else f"{pace}, limit {_ms(limit_us)} ms"


def _length(document: Document) -> str:
    run = document.run
    if run.duration_s is not None:
        asked = f"{format_duration_s(run.duration_s)} asked for"
    else:
        asked = f"{format_counted(run.transactions_per_client or 0, 'transaction')} a client"
    return f"{asked}, {format_duration_s(run.measured_s)} measured"


def _began(document: Document) -> str | None:
    """When the measurement began, as ISO 8601."""
    if not document.intervals:
        return None
    first = document.intervals[0]
    return datetime.fromtimestamp(first.end_unix_s - first.end_s, UTC).isoformat()


def _rows(script: Script) -> ScriptRows:
    total_us = sum(each.mean_us for each in script.commands) or 1.0
    return ScriptRows(
        script=script,
        commands=tuple((each, each.mean_us / total_us) for each in script.commands),
    )


def _over_time(document: Document) -> html.Chart | None:
    several = joined(document.intervals)
    if not several:
        return None
    first, last = several[0], several[-1]
    latency = _latency_panel(document, several)
    panels = (_throughput_panel(several), *([latency] if latency else ()))
    data = {
        "axis": "time",
        "from": first.end_s - first.length_s,
        "to": last.end_s,
        "zero_unix_ms": (first.end_unix_s - first.end_s) * 1e3,
        "shaded": [],
    }
    return html.chart("over-time", panels, data)


def _throughput_panel(several: Sequence[Interval]) -> Panel:
    kinds = (
        ("committed", "throughput", "green", [each.committed for each in several]),
        ("failed", "failed", "red", [each.failed for each in several]),
        ("skipped", "skipped", "faint", [each.skipped for each in several]),
    )
    lines = tuple(
        Line(
            label=label,
            about=TITLES[title],
            colour=colour,
            values=[count / each.length_s for count, each in zip(counts, several, strict=True)],
            filled=label == "committed",
        )
        for label, title, colour, counts in kinds
        if label == "committed" or any(counts)
    )
    return Panel(
        key="throughput",
        title="Throughput",
        about="committed transactions a second, interval by interval",
        unit="tps",
        scale="linear",
        horizontal=[each.end_s for each in several],
        lines=lines,
    )


def _latency_panel(document: Document, several: Sequence[Interval]) -> Panel | None:
    if not any(each.committed for each in several):
        return None
    names = percentile_names(document)
    shown = names if len(names) <= _MOST_LINES else (names[0], *names[1 - _MOST_LINES :])
    lines = [
        Line(
            label=name,
            about=TITLES.get(name, "percentile of the interval"),
            colour=colour,
            values=[_above_zero(each.latency_percentiles_us.get(name)) for each in several],
        )
        for name, colour in zip(shown, _COLOURS, strict=False)
    ]
    slowest = [_above_zero(each.latency_max_us) for each in several]
    lines.append(
        Line(label="max", about="the slowest one", colour="faint", values=slowest, dashed=True)
    )
    return Panel(
        key="latency",
        title="Latency",
        about="percentiles of each interval, on a logarithmic axis",
        unit="ms",
        scale="log",
        horizontal=[each.end_s for each in several],
        lines=tuple(lines),
    )


def _above_zero(value_us: float | None) -> float | None:
    """Milliseconds where a logarithmic axis can show them."""
    return value_us / 1e3 if value_us else None


def _ms(value_us: float) -> str:
    return milliseconds(value_us * 1e3)
