"""`pgdyno experiment`: from a question in a file to trials and an answer; one file a command."""

from __future__ import annotations

import click

from pgdyno.cli.experiment.check import check
from pgdyno.cli.experiment.plan import plan
from pgdyno.cli.experiment.report import report
from pgdyno.cli.experiment.resume import resume
from pgdyno.cli.experiment.run import run
from pgdyno.cli.experiment.show import show


@click.group(short_help="Compare on purpose: a question, factors, repeated trials, an answer.")
def experiment() -> None:
    """Experiments described in a TOML file (docs/experiments.md).

    \b
      pgdyno experiment check FILE     all that is wrong with it
      pgdyno experiment plan FILE      what would run, and how long it would take
      pgdyno experiment run FILE       run it
      pgdyno experiment resume RUN     go on where it stopped
      pgdyno experiment show RUN       how far it is
      pgdyno experiment report RUN     its answer
    """  # noqa: D301  (click reads the escape)


_COMMANDS: tuple[click.Command, ...] = (check, plan, run, resume, show, report)
for _command in _COMMANDS:
    experiment.add_command(_command)
