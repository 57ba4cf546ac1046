"""`pgdyno experiment check FILE`: all that is wrong with an experiment, before anything starts."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli.experiment.reading import file_argument, read_file
from pgdyno.experiment.runner import check_experiment
from pgdyno.hosts.local import Local
from pgdyno.units import format_counted


@click.command(short_help="Say all that is wrong with a file.")
@file_argument
def check(file: Path) -> None:
    """Check FILE, the scripts of its workloads, and whether its design can decide.

    No server is started; whether its settings exist is the server's to say, before the first trial.
    """
    experiment, workloads = read_file(file)
    check_experiment(experiment, workloads, Local())
    click.echo(f"{file}: {format_counted(len(experiment.variants), 'variant')}, nothing is wrong")
