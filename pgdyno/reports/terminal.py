"""A run's result in the terminal: what ran, what it found, what that is worth; in 80 columns.

Colour only repeats what the words say, so nothing is lost without it; Rich leaves it out by itself
where there is no terminal. `as_json` is the same result for programs.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgdyno.contract import Series, Summary
from pgdyno.experiment.store import Run
from pgdyno.model import CheckResult, LoadReport, PrewarmReport
from pgdyno.reports import wording
from pgdyno.reports.cpu_table import cpu_lines
from pgdyno.reports.documents import TrialDocuments, read_run
from pgdyno.reports.figures import mean_milliseconds, milliseconds, rate, visible, wrapped
from pgdyno.reports.inventory import settings_words
from pgdyno.reports.json_document import as_json
from pgdyno.reports.measured import Measured, measure
from pgdyno.reports.pooling import pooling
from pgdyno.reports.replication import lags
from pgdyno.reports.timeline import time_axis
from pgdyno.units import (
    format_bytes,
    format_count,
    format_counted,
    format_duration_s,
    format_share,
)

__all__ = ["as_json", "render_summary"]

_VERDICT_STYLES = {"held": "green", "broken": "bold red", "undecided": "yellow"}
_WIDE = 118
_ROOMY = 90
_INDENT = 2


def render_summary(run: Run, console: Console) -> None:
    """Print every trial of a run, then where its folder lies and how to run it again."""
    documents = read_run(run)
    if not documents.trials:
        console.print(Text("No result: no trial was begun."))
    for trial in documents.trials:
        _render_trial(trial, console, of=len(documents.trials))
    closing = [("folder", str(run.folder))]
    report = run.folder / "report.html"
    if report.exists():
        closing.append(("report", str(report)))
    closing.append(("again", wording.repeat_command(run)))
    for name, value in closing:
        # Never wrapped, so that it can be copied whole.
        console.print(Text.assemble("  ", (f"{name:<16}", "dim"), value), soft_wrap=True)


def _render_trial(documents: TrialDocuments, console: Console, *, of: int) -> None:
    trial, measured = documents.trial, measure(documents)
    name = f"{trial.variant}, trial {trial.number} of {of}" if of > 1 else trial.variant
    console.print(Text(visible(name), style="bold"))
    _pairs(console, _what_ran(documents))
    for sentence in wording.trouble(documents, measured):
        _say(console, f"! {visible(sentence)}", "bold red")
    console.print()
    _say(console, wording.headline(documents, measured), "bold")
    console.print()
    if measured is not None:
        _pairs(console, _figures(documents, measured, of))
        _percentiles(console, measured)
    if documents.summary is not None:
        _types(console, documents.summary)
        _statements(console, documents.summary)
        _errors(console, documents.summary)
    if behind := lags(documents, time_axis(documents)):
        _pairs(console, behind)
    if lines := pooling(documents, measured, time_axis(documents)):
        _pairs(console, lines)
    _cpu(console, documents, measured)
    _data(console, trial.load, trial.prewarm)
    _durability(console, documents)
    _checks(console, documents.checks)
    for why, parts in wording.missing_by_reason(documents.missing).items():
        _say(console, f"not known, because {visible(why)}: {visible('; '.join(parts))}", "dim")
    for notice in trial.notices:
        _say(console, f"notice: {visible(notice)}", "yellow")
    if documents.missing or trial.notices:
        console.print()


def _what_ran(documents: TrialDocuments) -> list[tuple[str, str]]:
    found = []
    if documents.variant is not None:
        found.append(("workload", wording.workload_words(documents.variant.workload)))
        found.append(("load", wording.load_words(documents.variant.load, documents.plan)))
    found.append(("server", wording.server_words(documents)))
    if settings := settings_words(documents):
        found.append(("settings", visible(settings)))
    found.append((wording.host_label(documents), wording.host_words(documents)))
    return found


def _figures(documents: TrialDocuments, measured: Measured, of: int) -> list[tuple[str, str]]:
    durability = documents.trial.durability
    worth = wording.durability_words(durability) if durability else "durability class unknown"
    throughput = f"{rate(measured.throughput_per_s)} tps   [{worth}]"
    found = [("throughput", throughput)]
    if measured.throughput_with_connect_per_s is not None:
        with_connect = f"{rate(measured.throughput_with_connect_per_s)} tps"
        found.append(("", f"{with_connect} with connecting counted in"))
    found.append(("server commits", f"{rate(measured.server_commits_per_s)}/s"))
    found.append(("transactions", _partition(measured)))
    if measured.counters.late:
        late = measured.counters.late
        of_committed = format_share(late / measured.counters.committed)
        found.append(
            ("late", f"{format_count(late)} committed above the response limit ({of_committed})")
        )
    if measured.fairness is not None:
        fair = measured.fairness
        found.append(
            (
                "fairness",
                f"{format_count(fair.committed_average)} committed a client, standard deviation "
                f"{rate(fair.committed_stddev)}, {format_count(fair.committed_min)} to "
                f"{format_count(fair.committed_max)}",
            )
        )
    law = measured.littles_law
    if law is not None and law.relevant:
        reasons = "; ".join(law.explanations) or "not explained"
        found.append(("Little's law", f"a gap of {format_share(law.gap)}: {reasons}"))
    if documents.trial.generator is not None:
        found.append(("generator", visible(wording.generator_words(documents.trial.generator))))
    found.append(("worth", wording.anecdote(of, measured.spread)))
    return found


def _partition(measured: Measured) -> str:
    """What became of the scheduled transactions; fates that none of them had are left out."""
    counters = measured.counters
    fates = (
        ("failed", counters.failed.total),
        ("unknown", counters.unknown),
        ("skipped", counters.skipped),
        ("in flight at the end", counters.in_flight_at_end),
    )
    others = [f"{format_count(count)} {fate}" for fate, count in fates if count or fate == "failed"]
    committed = f"{format_count(counters.committed)} committed"
    return ", ".join((committed, *others)) + f" in {format_duration_s(measured.measured_s)}"


def _percentiles(console: Console, measured: Measured) -> None:
    names = ("mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "max")
    table = _table("ms", *names, gap=2 if console.width >= _ROOMY else 1)
    rows = [("response time", measured.response)]
    if measured.lag is not None:
        rows += [("service time", measured.service), ("schedule lag", measured.lag)]
    for name, series in rows:
        if series is not None:
            table.add_row(name, *_eight(series))
    if table.row_count:
        _print(console, table)


def _eight(series: Series) -> tuple[str, ...]:
    values = (
        *(series.mean_ns, series.stddev_ns, series.p50_ns, series.p90_ns),
        *(series.p95_ns, series.p99_ns, series.p99_9_ns, series.max_ns),
    )
    return tuple(milliseconds(value) for value in values)


def _types(console: Console, summary: Summary) -> None:
    """Transaction types beside each other; with one alone it would repeat the lines above."""
    if len(summary.transaction_types) < 2:
        return
    table = _table("transaction type", "weight", "committed", "failed", "mean ms", "p95", "p99")
    for one in summary.transaction_types:
        series = one.times.response or one.times.service
        table.add_row(
            Text(visible(one.name)),
            str(one.weight),
            format_count(one.counters.committed),
            format_count(one.counters.failed.total),
            milliseconds(series.mean_ns),
            milliseconds(series.p95_ns),
            milliseconds(series.p99_ns),
        )
    _print(console, table)


def _statements(console: Console, summary: Summary) -> None:
    """Statements in the order of their scripts; in a narrow terminal the text has its own line."""
    if not summary.statements:
        return
    wide = console.width >= _WIDE
    heads = ("mean", "p50", "p95", "p99", "count", "rows", "errors")
    widths = (10, 9, 9, 9, 11, 11, 7)
    header = _columns(heads, widths)
    console.print(Text(f"statements, times in ms\n{header}", style="dim"))
    previous = None
    for one in summary.statements:
        if one.transaction_type != previous and len(summary.transaction_types) > 1:
            console.print(Text(f" {visible(one.transaction_type)}"))
        previous = one.transaction_type
        values = (
            *_four(one.time),
            format_count(one.time.count),
            format_count(one.rows) if one.kind == "sql" else "",
            format_count(one.errors),
        )
        numbers = _columns(values, widths)
        text = Text(visible(one.text), style="cyan")
        if wide:
            console.print(Text.assemble(numbers, "  ", text), overflow="ellipsis", no_wrap=True)
        else:
            console.print(Text.assemble("   ", text), overflow="ellipsis", no_wrap=True)
            console.print(Text(numbers))
    console.print()


def _four(series: Series) -> tuple[str, ...]:
    """Mean and percentiles; nothing was timed where nothing succeeded."""
    if not series.count:
        return ("",) * 4
    percentiles = (series.p50_ns, series.p95_ns, series.p99_ns)
    return (mean_milliseconds(series.mean_ns), *(milliseconds(value) for value in percentiles))


def _columns(values: Sequence[str], widths: Sequence[int]) -> str:
    """Values to the right of their columns; one that is too wide moves the rest, never joins it."""
    pairs = zip(values, widths, strict=True)
    return "".join(f" {value:>{width - 1}}" for value, width in pairs)


def _errors(console: Console, summary: Summary) -> None:
    if not summary.errors:
        return
    table = _table("SQLSTATE", "count", "where", "message", left=("where", "message"))
    for error in summary.errors:
        where = wording.error_place(error)
        table.add_row(
            Text(visible(error.sqlstate or "none")),
            format_count(error.count),
            Text(visible(where)),
            Text(visible(error.message)),
        )
    _print(console, table)


def _cpu(console: Console, documents: TrialDocuments, measured: Measured | None) -> None:
    """What hosts, CPUs and roles did on average and at most, then what the engine used."""
    axis = time_axis(documents)
    table = _table("CPU", "", "user", "sys", "wait", "idle", "CPU", left=("",))
    for line in cpu_lines(documents, axis) if axis else []:
        for number, (what, cells) in enumerate(line.rows):
            table.add_row(Text("" if number else visible(line.label)), what, *cells)
    if table.row_count:
        _print(console, table)
    cost = measured.engine_cost if measured else None
    if cost is not None:
        each = cost.cpu_per_transaction_us
        share = f", {each:.1f} µs a transaction" if each is not None else ""
        words = f"{cost.cpu_user_s:.2f} s user, {cost.cpu_sys_s:.2f} s sys{share}"
        _pairs(console, [("engine's CPU", words)])


def _data(console: Console, load: LoadReport | None, prewarm: PrewarmReport | None) -> None:
    if load is not None:
        _pairs(console, [("data", wording.data_words(load))], last=not load.steps)
    if load is not None and load.steps:
        table = _table("load step", "time", "rows", "rows/s", "size")
        for step in load.steps:
            per_s = step.rows / step.duration_s if step.rows and step.duration_s else None
            table.add_row(
                step.name,
                format_duration_s(step.duration_s),
                format_count(step.rows) if step.rows is not None else "",
                format_count(per_s) if per_s is not None else "",
                format_bytes(step.bytes) if step.bytes is not None else "",
            )
        _print(console, table)
    if prewarm is not None and prewarm.method != "none":
        share = prewarm.shared_buffers_share
        known = "unknown" if share is None else format_share(share)
        words = f"{format_bytes(prewarm.bytes)} by {wording.PREWARM_WORDS[prewarm.method]} in "
        words += f"{format_duration_s(prewarm.duration_s)}; in shared buffers: {known}"
        _pairs(console, [("prewarm", words)])


def _durability(console: Console, documents: TrialDocuments) -> None:
    durability = documents.trial.durability
    if durability is None:
        return
    words = wording.durability_cost(durability)
    if durability.durability_class != "none":
        words = f"{wording.durability_words(durability)}. {words}"
    evidence = [("", sentence) for sentence in durability.because]
    _pairs(console, [("durability", words), *evidence])


def _checks(console: Console, checks: tuple[CheckResult, ...]) -> None:
    if not checks:
        return
    table = Table.grid(padding=(0, 2))
    held = [check for check in checks if check.verdict == "held"]
    if held:
        names = ", ".join(dict.fromkeys(visible(check.check) for check in held))
        rules = format_counted(len(held), "rule")
        table.add_row(Text("held", style=_VERDICT_STYLES["held"]), Text(rules), "", Text(names))
    for check in (each for each in checks if each.verdict != "held"):
        table.add_row(
            Text(check.verdict, style=_VERDICT_STYLES[check.verdict]),
            Text(visible(check.check)),
            Text(f"after {'loading' if check.after == 'load' else 'the measurement'}"),
            Text(visible(check.detail), style="dim"),
        )
    console.print(Text("checks", style="dim"))
    _print(console, table)


def _table(first: str, *others: str, left: tuple[str, ...] = (), gap: int = 2) -> Table:
    """A table without lines: the first column to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold")
    for other in others:
        to_left = other in left
        table.add_column(other, justify="left" if to_left else "right", no_wrap=not to_left)
    return table


def _pairs(console: Console, pairs: list[tuple[str, str]], *, last: bool = True) -> None:
    """Names and values in two columns, values wrapped under themselves."""
    table = Table.grid(padding=(0, 2, 0, 0))
    first_width = max(14, *(len(name) for name, _ in pairs))
    table.add_column(min_width=first_width)
    table.add_column(overflow="fold")
    width = console.width - _INDENT - first_width - 2
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), Text(wrapped(visible(value), width)))
    if last:
        _print(console, table)
    else:
        console.print(Padding(table, (0, 0, 0, _INDENT)))


def _print(console: Console, table: Table) -> None:
    console.print(Padding(table, (0, 0, 1, _INDENT)))


def _say(console: Console, sentence: str, style: str) -> None:
    console.print(Text(wrapped(sentence, console.width), style=style))
