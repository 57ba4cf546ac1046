"""The report as one HTML file: everything in it, nothing fetched, tables complete without a script.

`write_report(run, path)` renders `templates/report.html` with the style and script of `assets/` and
uPlot's, which come from the installed package `youplot` (MIT; its notice stays in the script). A
content security policy forbids everything but these very texts, so the page cannot reach a network
even if a name in it tried to. Every text from outside is escaped by Jinja2 and made visible first.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pgdyno.contract import StatementResult, Summary, TransactionTypeResult
from pgdyno.errors import PgdynoError
from pgdyno.experiment.phases import spoken
from pgdyno.experiment.store import Run
from pgdyno.reports import figures, wording
from pgdyno.reports.charts import Panel, encode_panel
from pgdyno.reports.cpu_table import CpuLine, cpu_lines
from pgdyno.reports.distribution import curve_panel, histogram_panel, kinds_of
from pgdyno.reports.documents import RunDocuments, TrialDocuments, read_run
from pgdyno.reports.inventory import Inventory, inventory
from pgdyno.reports.measured import Measured, measure
from pgdyno.reports.pooling import pooling
from pgdyno.reports.replication import lags
from pgdyno.reports.resource_panels import resource_panels
from pgdyno.reports.resources import HostCpu, Traffic, host_cpus, traffic
from pgdyno.reports.terms import DURABILITY_NAMES, TITLES
from pgdyno.reports.timeline import TimeAxis, response_panel, slices, throughput_panel, time_axis
from pgdyno.units import (
    format_bytes,
    format_count,
    format_duration_ns,
    format_duration_s,
    format_per_s,
    format_share,
)

MOST_SIZES = 24
"""Tables and indexes shown at once; the rest is folded away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Panels over one axis, and the data the page's script draws them from."""

    id: str
    panels: tuple[Panel, ...]
    data: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRows:
    """One transaction type and the statements of its script."""

    result: TransactionTypeResult
    source: str | None
    statements: tuple[tuple[StatementResult, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """Everything the template prints about one trial."""

    key: str
    documents: TrialDocuments
    measured: Measured | None
    over_time: Chart | None
    curve: Chart | None
    histogram: Chart | None
    types: tuple[TypeRows, ...]
    inventory: Inventory
    host_cpus: list[HostCpu]
    cpu_lines: list[CpuLine]
    pooling: list[tuple[str, str]]
    lags: list[tuple[str, str]]
    traffic: list[Traffic]


def write_report(run: Run, path: Path) -> Path:
    """Write the report of a run to `path` and return it; `PgdynoError` where that is impossible."""
    return write_page(render(read_run(run)), path)


def write_page(text: str, path: Path) -> Path:
    """Write a page under a temporary name and rename it; `PgdynoError` where that is impossible."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise PgdynoError(
            f"cannot write the report {path}: {error.strerror}",
            hint="give a file you can write to with --file",
        ) from error
    return path


def render(documents: RunDocuments) -> str:
    """The page's text."""
    style, script = page_style(), page_script()
    template = environment().get_template("report.html")
    return template.render(
        run=documents,
        trials=[trial_view(trial) for trial in documents.trials],
        repeat_command=f"pgdyno rerun {documents.experiment.id}",
        style=Markup(style),
        script=Markup(script),
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        words=wording,
        spoken=spoken,
        titles=TITLES,
        durability_names=DURABILITY_NAMES,
        most_sizes=MOST_SIZES,
    )


def asset(name: str) -> str:
    """One of our own styles or scripts, to stand inside a page."""
    return _asset("pgdyno.reports", name)


def page_style() -> str:
    """The style of a page with charts."""
    return _asset("youplot.vendor", "uplot.min.css") + asset("assets/report.css")


def page_script() -> str:
    """The script of every page: charts, light and dark, printing."""
    return _asset("youplot.vendor", "uplot.iife.min.js") + "\n" + asset("assets/report.js")


def trial_view(documents: TrialDocuments) -> TrialView:
    """What the template needs of one trial."""
    key = f"trial-{documents.trial.number}"
    axis = time_axis(documents)
    kinds = kinds_of(documents.distributions)
    curve, histogram = curve_panel(kinds), histogram_panel(kinds)
    return TrialView(
        key=key,
        documents=documents,
        measured=measure(documents),
        over_time=_over_time(key, documents, axis) if axis else None,
        curve=_distribution_chart(f"{key}-curve", "percentile", curve) if curve else None,
        histogram=(
            _distribution_chart(f"{key}-histogram", "milliseconds", histogram)
            if histogram
            else None
        ),
        types=tuple(_types(documents, documents.summary)) if documents.summary else (),
        inventory=inventory(documents),
        host_cpus=host_cpus(documents, axis) if axis else [],
        cpu_lines=cpu_lines(documents, axis) if axis else [],
        pooling=pooling(documents, measure(documents), axis),
        lags=lags(documents, axis),
        traffic=traffic(documents, axis) if axis else [],
    )


def _over_time(key: str, documents: TrialDocuments, axis: TimeAxis) -> Chart:
    several = slices(documents.intervals)
    response = response_panel(axis, several)
    panels = (
        throughput_panel(axis, several),
        *([response] if response else ()),
        *resource_panels(documents, axis),
    )
    wall_ns = axis.zero_wall_unix_ns
    shaded: list[tuple[float, float, str]] = []
    if axis.begin_s < 0:
        shaded.append((axis.begin_s, 0.0, "warm-up"))
    if axis.end_s > axis.measurement_end_s:
        shaded.append((axis.measurement_end_s, axis.end_s, "draining"))
    data = {
        "axis": "time",
        "from": axis.begin_s,
        "to": axis.end_s,
        "zero_unix_ms": None if wall_ns is None else wall_ns / 1e6,
        "shaded": shaded,
    }
    return chart(f"{key}-time", panels, data)


def _distribution_chart(identity: str, axis: str, panel: Panel) -> Chart:
    ends = [value for value in panel.horizontal if value is not None]
    # A single value has no width; give the axis some on both sides.
    low, high = (ends[0], ends[-1]) if ends[0] < ends[-1] else (ends[0] * 0.9, ends[-1] * 1.1)
    return chart(identity, (panel,), {"axis": axis, "from": low, "to": high})


def chart(identity: str, panels: tuple[Panel, ...], data: dict[str, Any]) -> Chart:
    """Panels over one axis, as the page's script reads them."""
    encoded = [encode_panel(panel) for panel in panels]
    return Chart(id=identity, panels=panels, data=_json({**data, "panels": encoded}))


def _json(data: dict[str, Any]) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _types(documents: TrialDocuments, summary: Summary) -> list[TypeRows]:
    """Transaction types with their statements, each with its share of the type's time."""
    plan = documents.plan
    sources = {one.name: one.source for one in plan.transaction_types} if plan else {}
    rows = []
    for result in summary.transaction_types:
        own = [one for one in summary.statements if one.transaction_type == result.name]
        total_ns = sum(one.time.sum_ns for one in own) or 1
        rows.append(
            TypeRows(
                result=result,
                source=sources.get(result.name),
                statements=tuple((one, one.time.sum_ns / total_ns) for one in own),
            )
        )
    return rows


@cache
def environment() -> Environment:
    """Templates, compiled once, with the filters that make text safe and numbers readable."""
    made = Environment(
        loader=PackageLoader("pgdyno.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        bytes=format_bytes,
        count=format_count,
        duration=format_duration_s,
        mean_ms=figures.mean_milliseconds,
        moment=figures.moment,
        ms=figures.milliseconds,
        per_s=format_per_s,
        prose=figures.prose,
        rate=figures.rate,
        share=format_share,
        time_ns=format_duration_ns,
        visible=figures.visible,
    )
    return made


def _asset(package: str, name: str) -> str:
    """A style or script to stand inside the page; it must not end the element it stands in."""
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    if "</script" in text.lower() or "</style" in text.lower():
        raise PgdynoError(f"{package}/{name} holds an end tag and cannot stand inside a page")
    return text


def source_hash(text: str) -> str:
    """The source expression that allows exactly this inline text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
