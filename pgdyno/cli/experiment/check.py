"""`pgdyno experiment check FILE`: all that is wrong with an experiment, before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pgdyno.cli.experiment.reading import file_argument, read_experiment
from pgdyno.cli.options import json_option, output_option
from pgdyno.units import format_counted, format_duration_s


@click.command(short_help="Say all that is wrong with a file.")
@file_argument
@output_option
@json_option
def check(file: Path, output: Path, *, as_json: bool) -> None:
    """Check FILE, the scripts of its workloads, and whether its design can decide.

    No server is started: whether a setting exists is the server's to say, before the first trial.
    """
    read = read_experiment(file, output)
    variants, trials = len(read.experiment.variants), len(read.plan.trials)
    if as_json:
        document = {"version": 1, "file": str(file), "variants": variants, "trials": trials}
        click.echo(json.dumps(document))
        return
    click.echo(
        f"{file}: nothing is wrong: {format_counted(variants, 'variant')}, "
        f"{format_counted(trials, 'trial')}, about {format_duration_s(read.plan.total_s)}"
    )
