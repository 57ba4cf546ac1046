"""`pgdyno pgbench …`: the engine in pgbench's place; everything behind the word is pgbench's."""

from __future__ import annotations

import os
import sys

import click

from pgdyno.engine import find_engine


@click.command(
    name="pgbench",
    short_help="What pgbench does, with the engine.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def pgbench(words: tuple[str, ...]) -> None:
    """What pgbench does, with the engine: the same options, output lines, files and exit status.

    `pgdyno pgbench --help` tells them all. A symlink named pgbench to pgdyno-engine does the same.
    """
    sys.stdout.flush()
    # By that name the engine is pgbench, and speaks as it.
    os.execv(find_engine(), ["pgbench", *words])
