"""The page of an experiment: question, verdicts in sentences, effects, trials, drift, figures.

`write_comparison` writes it beside the run and every trial's own report into the trial's folder,
and links them. It is one file without a script that it needs: charts are SVG.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from pgdyno.experiment.comparing import Comparison, Pair
from pgdyno.experiment.readings import Reading
from pgdyno.experiment.store import Run
from pgdyno.reports import comparison_wording, html, wording
from pgdyno.reports.comparison_charts import Plot, drift_plot, forest, values_plot
from pgdyno.reports.documents import RunDocuments, read_head, read_trial

_MOST_PLOTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One line of the table of trials; `link` to its own report, None where there is none."""

    reading: Reading
    side: str
    number: int
    link: str | None


def write_comparison(run: Run, comparison: Comparison, kept: tuple[str, ...], path: Path) -> Path:
    """Write the page of an experiment to `path` and return it, and the report of every trial.

    `kept`: sentences about earlier noise floors. A page that lies elsewhere than in the run's
    folder has no links. Raises `PgdynoError` where a file cannot be written.
    """
    documents = read_head(run)
    links: dict[str, str] = {}
    if path.absolute().parent == run.folder.absolute():
        links = _write_trials(documents)
    html.write_page(render_comparison_page(documents, comparison, kept, links), path)
    return path


def render_comparison_page(
    documents: RunDocuments, comparison: Comparison, kept: tuple[str, ...], links: dict[str, str]
) -> str:
    """The page's text. `links`: trial folder → where its report lies."""
    metrics = comparison_wording.table_metrics(comparison)
    judged = metrics[: max(1, min(len(comparison.asked.responses), _MOST_PLOTS))]
    style = html.asset("assets/report.css") + html.asset("assets/comparison.css")
    script = html.page_script()
    template = html.environment().get_template("comparison.html")
    return template.render(
        run=documents,
        comparison=comparison,
        kept=kept,
        metrics=metrics,
        forest=forest(comparison),
        values=_plots(values_plot(comparison, each) for each in judged),
        drifts=_plots(drift_plot(comparison, each) for each in judged),
        rows=tuple(_rows(comparison, links)),
        said=comparison_wording,
        words=wording,
        repeat_command=wording.repeat_command(documents.run),
        style=Markup(style),
        script=Markup(script),
        style_hash=html.source_hash(style),
        script_hash=html.source_hash(script),
        headline=_headline(comparison),
    )


def _plots(several: Iterator[Plot | None]) -> tuple[Plot, ...]:
    return tuple(each for each in several if each is not None)


def _headline(comparison: Comparison) -> str:
    """The first verdict, or why there is none."""
    baseline = comparison.baseline.name
    first: Pair | None = comparison.pairs[0] if comparison.pairs else None
    if first is None:
        return "There is nothing to compare."
    if first.findings:
        return comparison_wording.headline(first.findings[0], baseline)
    if first.refused:
        return comparison_wording.refusal(first, baseline)
    return "No response was named, so nothing is judged."


def _rows(comparison: Comparison, links: dict[str, str]) -> Iterator[TrialRow]:
    """Trials in the order in which they ran."""
    every = [
        (number, side, each)
        for number, side in enumerate(comparison.sides)
        for each in side.readings
    ]
    for number, side, each in sorted(every, key=lambda row: (row[2].began or "", row[2].number)):
        yield TrialRow(reading=each, side=side.name, number=number, link=links.get(each.source))


def _write_trials(documents: RunDocuments) -> dict[str, str]:
    """Write the trials' own reports one by one; where they lie, as seen from the run's folder."""
    links = {}
    for stored in documents.run.trials:
        trial = read_trial(stored, documents.experiment)
        page = html.render(replace(documents, trials=(trial,)))
        html.write_page(page, stored.folder / "report.html")
        links[str(stored.folder)] = f"trials/{stored.folder.name}/report.html"
    return links
