"""`pgdyno run WORKLOAD`: an experiment of one variant and one trial, from nothing to a report."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pgdyno import __version__
from pgdyno.cli.execute import Execution, execute
from pgdyno.cli.options import (
    json_option,
    output_option,
)
from pgdyno.cli.parameters import WorkloadCommand
from pgdyno.cli.trial_options import trial_options, variant_of
from pgdyno.experiment.store import new_id
from pgdyno.model import Experiment


@click.command(cls=WorkloadCommand, short_help="Run a workload and report.")
@click.argument("workload")
@trial_options
@click.option("--name", help="Name of the run; default: the workload's.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html.")
@output_option
@json_option
def run(workload: str, output: Path, **options: Any) -> None:
    """Run WORKLOAD: a name (see pgdyno workloads), a folder, or a .sql file in pgbench's language.

    Without --dsn a private PostgreSQL is started, used and removed. Every number, with all that is
    needed to repeat it, is kept in a folder below --output.

    \b
      pgdyno run userlogin
      pgdyno run userlogin --users 100_000 --clients 4 --time 10s
      pgdyno run tpcb --scale 50 --set shared_buffers=1GB --pg 18
      pgdyno run my-transaction.sql --dsn "host=db.example dbname=app"
    """  # noqa: D301  (click reads the escape)
    variant, found = variant_of(workload, options)
    experiment = Experiment(
        id=new_id(),
        name=options["name"] or variant.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pgdyno_version=__version__,
        variants=(variant,),
        baseline=variant.name,
    )
    execute(
        experiment,
        {variant.name: found},
        Execution(output=output, as_json=options["as_json"], with_report=options["with_report"]),
    )
