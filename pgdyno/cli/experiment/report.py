"""`pgdyno experiment report RUN`: an experiment's answer, from its folder alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from pgdyno.cli.execute import Execution
from pgdyno.cli.options import json_option, run_argument
from pgdyno.cli.verdicts import exit_code, is_comparison, tell_experiment
from pgdyno.errors import InvalidInput
from pgdyno.experiment.store import find_run


@click.command(short_help="Say what an experiment found.")
@run_argument
@click.option("--even-so", is_flag=True, help="Compare what is not comparable, and mark it.")
@click.option("--fail-if-worse", is_flag=True, help="Exit with 3 when a metric is worse.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html.")
@json_option
def report(reference: str, output: Path, **options: Any) -> None:
    """Print RUN's verdicts over the trials it has so far, and write its page and its trials' pages.

    Exits with 3 when a variant must not be compared and --even-so was not given.
    """
    run = find_run(reference, output)
    if not is_comparison(run.experiment):
        raise InvalidInput(
            f"run {run.id} has one variant: there is nothing to compare",
            hint=f"pgdyno show {run.id}, or compare it with another: pgdyno compare RUN -- RUN",
        )
    comparison = tell_experiment(run, Execution(output=output, **options))
    sys.exit(exit_code(comparison, fail_if_worse=options["fail_if_worse"]))
