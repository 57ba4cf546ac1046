"""`pgdyno experiment run FILE`: from a question in a file to its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pgdyno.cli.execute import Execution, execute
from pgdyno.cli.experiment.reading import file_argument, read_experiment
from pgdyno.cli.options import json_option, output_option


@click.command(short_help="Run an experiment and say what it found.")
@file_argument
@click.option("--even-so", is_flag=True, help="Compare what is not comparable, and mark it.")
@click.option("--fail-if-worse", is_flag=True, help="Exit with 3 when a metric is worse.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html.")
@output_option
@json_option
def run(file: Path, output: Path, **options: Any) -> None:
    """Run every trial of FILE, in the order that `plan` shows, and give the answer.

    Every trial is stored when it ends. What was stopped, by Ctrl-C or worse, goes on with
    `pgdyno experiment resume RUN`.
    """
    read = read_experiment(file, output)
    execute(read.experiment, read.workloads, Execution(output=output, **options))
