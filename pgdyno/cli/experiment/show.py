"""`pgdyno experiment show RUN`: how far an experiment is, also while it runs."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from pgdyno.cli.options import json_option, run_argument
from pgdyno.experiment.policies import past_of
from pgdyno.experiment.standing import deciding_metric, standing
from pgdyno.experiment.store import find_run
from pgdyno.experiment.trial_readings import values_of
from pgdyno.reports.standing import as_json as standing_as_json
from pgdyno.reports.standing import render_standing


@click.command(short_help="Say how far it is.")
@run_argument
@json_option
def show(reference: str, output: Path, *, as_json: bool) -> None:
    """Print what RUN's variants have so far, and what comes next. Another pgdyno may be running it.

    Its answer is `pgdyno experiment report`'s to give.
    """
    run = find_run(reference, output)
    experiment = run.experiment
    judged = deciding_metric(experiment)
    past = [past_of(stored.trial, values_of(stored, (judged,))) for stored in run.trials]
    found = standing(experiment, past)
    if as_json:
        click.echo(json.dumps(standing_as_json(experiment, found), indent=2))
    else:
        render_standing(experiment, found, Console())
