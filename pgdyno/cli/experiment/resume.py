"""`pgdyno experiment resume RUN`: go on where an experiment stopped, however it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgdyno.cli.execute import Execution, proceed
from pgdyno.cli.options import json_option, run_argument
from pgdyno.experiment.runner import check_experiment
from pgdyno.experiment.store import find_run
from pgdyno.hosts.local import Local
from pgdyno.workloads.keeping import find_kept


@click.command(short_help="Go on where it stopped.")
@run_argument
@click.option("--even-so", is_flag=True, help="Compare what is not comparable, and mark it.")
@click.option("--fail-if-worse", is_flag=True, help="Exit with 3 when a metric is worse.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html.")
@json_option
def resume(reference: str, output: Path, **options: Any) -> None:
    """Run the trials of RUN that are left, from its folder alone.

    Trials that have ended stay as they are; the one that was broken off is repeated in its place,
    and failures before are forgiven. A server that wants a password finds it in PGPASSWORD or
    ~/.pgpass, for none is stored.
    """
    run = find_run(reference, output)
    experiment = run.experiment
    workloads = {one.name: find_kept(run.workloads / one.name) for one in experiment.variants}
    resolved = check_experiment(experiment, workloads, Local())
    proceed(run, resolved, Execution(output=output, **options))
