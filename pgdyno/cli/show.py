"""`pgdyno show RUN`: a stored run's result again, for people or for programs."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from pgdyno.cli.options import json_option, run_argument
from pgdyno.cli.verdicts import is_comparison, show_experiment
from pgdyno.experiment.selecting import compare_experiment
from pgdyno.experiment.store import find_run
from pgdyno.reports import terminal
from pgdyno.reports.comparison_json import comparison_as_json


@click.command(short_help="Print a stored run's result.")
@run_argument
@json_option
def show(reference: str, output: Path, *, as_json: bool) -> None:
    """Print what RUN found: a trial's figures, or the verdicts of several variants.

    No server is needed.
    """
    run = find_run(reference, output)
    compared = is_comparison(run.experiment)
    if as_json:
        document = terminal.as_json(run)
        if compared:
            comparison = compare_experiment(run, even_so=False)
            document["comparison"] = comparison_as_json(comparison)
        click.echo(json.dumps(document, indent=2))
    elif compared:
        show_experiment(run)
    else:
        terminal.render_summary(run, Console())
