"""`pgdyno doctor`: what would disturb, mislead or refuse a measurement here; it changes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pgdyno.cli.groups import write_options
from pgdyno.cli.options import COUNT, json_option
from pgdyno.cli.system_options import Cpus, engine_cpus_of, system_of, system_options
from pgdyno.errors import EXIT_CHECK_FAILED
from pgdyno.experiment.examining import Question, examine
from pgdyno.hosts.local import Local
from pgdyno.reports.doctor import doctor_document, render_doctor


class _Grouped(click.Command):
    """Shows its many options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(formatter, self.get_params(ctx), ctx)


@click.command(cls=_Grouped, short_help="Tell what would disturb or refuse a measurement.")
@system_options
@click.option("-c", "--clients", type=COUNT, default=16, show_default=True, help="Clients.")
@click.option(
    "-M",
    "--protocol",
    type=click.Choice(["simple", "extended", "prepared"]),
    default="prepared",
    show_default=True,
    help="How statements are sent.",
)
@click.option("--engine-cpus", type=Cpus(), help="CPUs of the load generator.")
@click.option(
    "--storage",
    "measured",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Measure there how fast flushes are, about 20 s, and the clock.",
)
@json_option
def doctor(*, measured: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Look at this machine, and at the system that the options describe as for pgdyno run.

    Shows what is found beside the values of published benchmarks, with advice where it matters.
    Nothing is started but programs that judge settings and end, and nothing is changed. Exit code
    3: a run would be refused.

    \b
      pgdyno doctor
      pgdyno doctor --pg 15 --profile osc-2014 --clients 400
      pgdyno doctor --system pair.toml --clients 300
      pgdyno doctor --dsn "host=db.example dbname=bench" --clients 300
      pgdyno doctor --storage /srv/data
    """  # noqa: D301  (click reads the escape)
    question = Question(
        system=system_of(options),
        clients=options["clients"],
        protocol=options["protocol"],
        engine_cpus=engine_cpus_of(options),
        measured=measured,
    )
    findings = examine(question, Local())
    if as_json:
        click.echo(json.dumps(doctor_document(findings), indent=2))
    else:
        render_doctor(findings, Console())
    if any(finding.verdict == "problem" for finding in findings):
        sys.exit(EXIT_CHECK_FAILED)
