"""`pgdyno show RUN`: a stored run's result again, for people or for programs."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from pgdyno.cli.options import json_option, run_argument
from pgdyno.experiment.store import find_run
from pgdyno.reports import terminal


@click.command(short_help="Print a stored run's result.")
@run_argument
@json_option
def show(reference: str, output: Path, *, as_json: bool) -> None:
    """Print what RUN found. No server is needed."""
    run = find_run(reference, output)
    if as_json:
        click.echo(json.dumps(terminal.as_json(run), indent=2))
    else:
        terminal.render_summary(run, Console())
