"""`pgdyno experiment plan FILE`: what would run, in which order, and how long it would take."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from pgdyno.cli.experiment.reading import ReadExperiment, file_argument, read_experiment
from pgdyno.cli.options import json_option, output_option
from pgdyno.experiment.precision import comparisons
from pgdyno.reports.plan import as_json as plan_as_json
from pgdyno.reports.plan import render_plan


@click.command(short_help="Say what would run, and how long it would take.")
@file_argument
@output_option
@json_option
def plan(file: Path, output: Path, *, as_json: bool) -> None:
    """Print the trials of FILE in order, with the time they will take, and what they can show.

    A design that cannot decide is refused, with the number of trials that could. How long a trial
    takes is told by trials of the same kind below --output, where there are any.
    """
    read = read_experiment(file, output)
    detectable = _detectable(read)
    if as_json:
        click.echo(json.dumps(plan_as_json(read.experiment, read.plan, detectable), indent=2))
    else:
        render_plan(read.experiment, read.plan, detectable, Console())


def _detectable(read: ReadExperiment) -> float | None:
    """The smallest difference that so many blocks find, with the noise of an earlier A/A."""
    if read.noise is None or read.plan.needed_blocks is None:
        return None
    return read.noise.detectable_with(read.plan.blocks, comparisons=comparisons(read.experiment))
