"""`pgdyno tag RUN NAME…`: give a run names of your own, by which every command finds it."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli.options import run_argument
from pgdyno.experiment.store import find_run


@click.command(short_help="Give a stored run a name.")
@run_argument
@click.argument("names", nargs=-1)
@click.option("--remove", is_flag=True, help="Take the names away instead.")
def tag(reference: str, output: Path, names: tuple[str, ...], *, remove: bool) -> None:
    """Give RUN names, or print those it has.

    A tag works wherever RUN does: `pgdyno show before-upgrade`.
    """
    run = find_run(reference, output)
    if names:
        kept = [each for each in run.tags if each not in names]
        run.set_tags(tuple(kept if remove else [*kept, *names]))
    for name in run.tags:
        click.echo(name)
