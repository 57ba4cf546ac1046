"""A comparison in the terminal: what stands against it, the verdicts, then the figures; 80 columns.

Colour only repeats what the words say.
"""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgdyno.calibration.noise import KeptNoise
from pgdyno.experiment.comparing import Comparison, Finding, Pair
from pgdyno.experiment.responses import METRICS, Metric
from pgdyno.experiment.store import Run
from pgdyno.reports import comparison_wording as words
from pgdyno.reports import wording
from pgdyno.reports.figures import visible, wrapped
from pgdyno.units import format_counted

VERDICT_STYLES = {
    "better": "bold green",
    "worse": "bold red",
    "equivalent": "bold cyan",
    "undecided": "bold yellow",
    "refused": "bold red",
    "none": "bold yellow",
}
_INDENT = 2
_SIDES_ACROSS = 4
_FIRST = 26
_GAP = 2
_METRICS_ACROSS = 3
_OUTLIERS_SHOWN = 5


def render_comparison(comparison: Comparison, console: Console, kept: tuple[str, ...] = ()) -> None:
    """Print a comparison. `kept`: sentences about noise floors that earlier A/As left."""
    if comparison.asked.question:
        _say(console, comparison.asked.question, "bold")
        console.print()
    for pair in comparison.pairs:
        _pair(console, pair, comparison.baseline.name)
    _noise(console, comparison, kept)
    _figures(console, comparison)
    _list(console, "what differs", _differences(comparison))
    _list(console, "outliers", _outliers(comparison))
    _list(console, "not known", list(comparison.remarks))


def render_closing(run: Run, console: Console) -> None:
    """Where the run lies, its page, and how to look at it again."""
    closing = [("folder", str(run.folder))]
    report = run.folder / "report.html"
    if report.exists():
        closing.append(("report", str(report)))
    closing.append(("again", wording.repeat_command(run)))
    for name, value in closing:
        # Never wrapped, so that it can be copied whole.
        console.print(Text.assemble("  ", (f"{name:<16}", "dim"), value), soft_wrap=True)


def _pair(console: Console, pair: Pair, baseline: str) -> None:
    for obstacle in (*pair.comparability.refused, *pair.comparability.warned):
        _say(console, f"! {obstacle.sentence}", "red" if obstacle.kind == "refused" else "yellow")
    if pair.refused:
        _say(console, words.refusal(pair, baseline), VERDICT_STYLES["refused"])
        _say(console, "To see the difference all the same: --even-so", "dim")
    for finding in pair.findings:
        _finding(console, finding, baseline)
    console.print()


def _finding(console: Console, finding: Finding, baseline: str) -> None:
    kind = words.verdict_of(finding)
    _say(console, words.headline(finding, baseline), VERDICT_STYLES[kind])
    for sentence in words.reasons(finding):
        text = wrapped(visible(sentence), console.width - _INDENT)
        console.print(Padding(Text(text), (0, 0, 0, _INDENT)))


def _noise(console: Console, comparison: Comparison, kept: tuple[str, ...]) -> None:
    sentences = [words.noise_words(each) for each in comparison.noise] or list(kept)
    _list(console, "noise floor", sentences)


def _figures(console: Console, comparison: Comparison) -> None:
    """Medians of the trials: metrics down and variants across, or turned where there are many."""
    sides, metrics = comparison.sides, words.table_metrics(comparison)
    if not metrics or not any(side.readings for side in sides):
        return
    table = _across(comparison, metrics, console.width) if len(sides) <= _SIDES_ACROSS else None
    console.print(Padding(table or _turned(comparison, metrics), (0, 0, 1, _INDENT)))


def _across(comparison: Comparison, metrics: tuple[Metric, ...], width: int) -> Table | None:
    """Metrics down and variants across; None where that is too wide."""
    sides = comparison.sides
    names = words.short_names([side.name for side in sides])
    rows = [
        ("trials", *(str(len(side.readings)) for side in sides)),
        ("durability class", *(words.class_labels(side) for side in sides)),
        *(
            (_titled(metric), *(words.median_words(side, metric) for side in sides))
            for metric in metrics
        ),
    ]
    heads = ("median of the trials", *(visible(names[side.name]) for side in sides))
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    room = width - _INDENT - sum(each + _GAP for each in widths[1:])
    if room < min(widths[0], _FIRST):
        return None
    table = _table()
    table.add_column(heads[0], overflow="fold", width=min(widths[0], room))
    for head in heads[1:]:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _turned(comparison: Comparison, metrics: tuple[Metric, ...]) -> Table:
    """Variants down, and of the metrics only those that are judged."""
    table = _table()
    table.add_column("median of the trials", overflow="fold")
    table.add_column("trials", justify="right")
    table.add_column("class")
    judged = metrics[: max(1, min(len(comparison.asked.responses), _METRICS_ACROSS))]
    for each in judged:
        table.add_column(_titled(each), justify="right", overflow="fold")
    for side in comparison.sides:
        values = [words.median_words(side, metric) for metric in judged]
        count = str(len(side.readings))
        table.add_row(Text(visible(side.name)), count, words.class_labels(side), *values)
    return table


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")


def _titled(metric: Metric) -> str:
    unit = words.unit_words(metric)
    return f"{metric.words}, {unit}" if unit else metric.words


def _differences(comparison: Comparison) -> list[str]:
    several = len(comparison.pairs) > 1
    return [
        (f"{pair.variant.name}: " if several else "") + each.sentence
        for pair in comparison.pairs
        for each in pair.comparability.differences
    ]


def _outliers(comparison: Comparison) -> list[str]:
    """The first few; the page has them all."""
    sentences = [words.flagged_words(each) for each in comparison.flagged]
    more = len(sentences) - _OUTLIERS_SHOWN
    return [*sentences[:_OUTLIERS_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _list(console: Console, name: str, sentences: list[str]) -> None:
    """A name, and sentences wrapped under each other beside it."""
    if not sentences:
        return
    width = 14
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=width)
    table.add_column(overflow="fold")
    for number, sentence in enumerate(sentences):
        text = wrapped(visible(sentence), console.width - _INDENT - width - 2)
        table.add_row(Text(name if number == 0 else "", style="dim"), Text(text))
    console.print(Padding(table, (0, 0, 1, _INDENT)))


def kept_noise_words(kept: KeptNoise, age: str, blocks: int) -> str:
    """What an earlier A/A on this machine found, how old that is, and what it means here."""
    floor = "not known" if kept.floor is None else words.percent(kept.floor)
    reach = kept.detectable_with(blocks) if blocks > 1 else float("inf")
    name, these = METRICS[kept.metric].words, format_counted(blocks, "block")
    shows = f"{these} find {words.percent(reach)}" if reach < 10 else f"{these} cannot decide"
    when = f"A/A of {kept.workload} {age} ago, {format_counted(kept.blocks, 'block')}"
    return f"{name}: {floor} ({when}); {shows}"


def _say(console: Console, sentence: str, style: str) -> None:
    console.print(Text(wrapped(visible(sentence), console.width), style=style))
