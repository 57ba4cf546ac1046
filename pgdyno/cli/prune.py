"""`pgdyno prune`: delete stored runs, oldest first, never tagged ones."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli.options import output_option
from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.experiment.store import Run, list_runs, remove_run, run_bytes
from pgdyno.units import format_bytes, format_counted


@click.command(short_help="Delete old runs.")
@output_option
@click.option("--keep", type=click.IntRange(min=0), help="Keep this many of the newest.")
@click.option("--all", "everything", is_flag=True, help="Keep none.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def prune(output: Path, keep: int | None, *, everything: bool, dry_run: bool) -> None:
    """Delete stored runs, oldest first. Tagged runs always stay, and so does what is no run."""
    if (keep is None) == (not everything):
        raise InvalidInput("prune needs --keep N or --all", hint="try: pgdyno prune --keep 10")
    runs = [run for run in list_runs(output) if _may_go(run)]
    doomed = runs if everything else runs[: max(len(runs) - (keep or 0), 0)]
    freed = 0
    for run in doomed:
        freed += run_bytes(run)
        click.echo(f"{'would delete' if dry_run else 'deleted'} {run.folder}")
        if not dry_run:
            remove_run(run)
    click.echo(f"{format_counted(len(doomed), 'run')}, {format_bytes(freed)}")


def _may_go(run: Run) -> bool:
    """Whether it is certainly a run of ours and nobody gave it a name."""
    try:
        return bool(run.experiment.id) and not run.tags
    except PgdynoError as error:
        reason = error.message.splitlines()[0]
        click.echo(f"left alone: {run.folder} cannot be read as a run: {reason}", err=True)
        return False
