"""How far an experiment is, for people and for programs."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from pgdyno.experiment.policies import Next
from pgdyno.experiment.responses import METRICS
from pgdyno.experiment.standing import Standing, VariantStanding, deciding_metric
from pgdyno.model import Experiment
from pgdyno.units import format_count, format_counted, format_duration_s

_NAME_WIDTH = 32


def render_standing(experiment: Experiment, standing: Standing, console: Console) -> None:
    """Print it."""
    question = f": {experiment.question}" if experiment.question else ""
    console.print(f"[bold]{experiment.name}[/] ({experiment.id}){question}")
    console.print()
    console.print(_variants(experiment, standing))
    console.print()
    most = "" if standing.last is None else f" of {standing.last}"
    console.print(
        f"{standing.completed}{most} trials have completed, "
        f"{format_counted(standing.blocks, 'whole block')}, in {format_duration_s(standing.used_s)}"
    )
    console.print(_what_next(experiment, standing), soft_wrap=True)


def as_json(experiment: Experiment, standing: Standing) -> dict[str, Any]:
    """The same for programs."""
    following = standing.following
    return {
        "version": 1,
        "id": experiment.id,
        "name": experiment.name,
        "question": experiment.question,
        "metric": deciding_metric(experiment),
        "variants": [
            {
                "name": each.name,
                "completed": each.completed,
                "repeated": each.repeated,
                "median": each.median,
                "lowest": each.lowest,
                "highest": each.highest,
            }
            for each in standing.variants
        ],
        "completed": standing.completed,
        "trials_at_most": standing.last,
        "whole_blocks": standing.blocks,
        "used_s": standing.used_s,
        "finished": standing.finished,
        "reason": None if isinstance(following, Next) else following.reason,
        "next": None
        if not isinstance(following, Next)
        else {
            "number": following.number,
            "block": following.block,
            "variant": following.variant.name,
        },
        "open": standing.open and standing.open.number,
    }


def _what_next(experiment: Experiment, standing: Standing) -> str:
    under_way, following = standing.open, standing.following
    resume = f"pgdyno experiment resume {experiment.id}"
    if under_way is not None:
        return (
            f"trial {under_way.number}, block {under_way.block}, {under_way.variant}: "
            f"under way, or broken off; then go on with: {resume}"
        )
    if isinstance(following, Next):
        where = f"trial {following.number}, block {following.block}, {following.variant.name}"
        return f"next: {where}; go on with: {resume}"
    return f"finished: {following.reason}"


def _variants(experiment: Experiment, standing: Standing) -> Table:
    metric = METRICS[deciding_metric(experiment)]
    table = Table(box=None, pad_edge=False, header_style="dim")
    longest = max(len(each.name) for each in standing.variants)
    table.add_column("variant", overflow="fold", min_width=min(longest, _NAME_WIDTH))
    table.add_column("done", justify="right")
    table.add_column("redone", justify="right")
    table.add_column(metric.words, justify="right")
    table.add_column("lowest to highest", justify="right", style="dim")
    for each in standing.variants:
        table.add_row(
            each.name,
            str(each.completed),
            str(each.repeated or ""),
            _shown(each.median, metric.unit),
            _span(each, metric.unit),
        )
    return table


def _span(variant: VariantStanding, unit: str) -> str:
    if variant.lowest is None or variant.highest is None or variant.completed < 2:
        return ""
    return f"{_shown(variant.lowest, unit)} to {_shown(variant.highest, unit)}"


def _shown(value: float | None, unit: str) -> str:
    """A value with its unit; small ones keep their digits."""
    if value is None:
        return "-"
    number = format_count(value) if value >= 1000 else f"{value:.3g}"
    return f"{number}{unit}" if unit.startswith("/") else f"{number} {unit}"
