"""`pgdyno list`: the stored runs, a line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from pgdyno.cli.options import json_option, output_option
from pgdyno.errors import PgdynoError
from pgdyno.experiment.store import Run, list_runs
from pgdyno.units import format_per_s


@click.command("list", short_help="List stored runs.")
@output_option
@json_option
def list_command(output: Path, *, as_json: bool) -> None:
    """List the runs below the output folder, oldest first."""
    rows = [_row(run) for run in list_runs(output)]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(f"no runs in {output}; make one with: pgdyno run userlogin")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title, justify in (
        ("id", "left"), ("when (UTC)", "left"), ("name", "left"), ("trials", "right"),
        ("throughput", "right"), ("outcome", "left"), ("tags", "left"),
    ):  # fmt: skip
        narrow = title in ("name", "tags")
        table.add_column(
            title,
            justify=justify,  # type: ignore[arg-type]
            no_wrap=not narrow,
            overflow="fold",
        )
    for row in rows:
        tps = row["throughput_per_s"]
        table.add_row(
            row["id"],
            row["created"][:16].replace("T", " "),
            row["name"],
            str(row["trials"]),
            "" if tps is None else format_per_s(tps),
            row["outcome"],
            " ".join(row["tags"]),
        )
    Console().print(table)
    for row in rows:
        if row["problem"] is not None:
            click.echo(f"{row['folder']} cannot be read: {row['problem']}", err=True)


def _row(run: Run) -> dict[str, Any]:
    """What the list shows of one run; a folder that cannot be read is listed as such."""
    try:
        experiment, trials = run.experiment, run.trials
        last = trials[-1] if trials else None
        # Of several variants no single number stands for the run.
        alone = len(experiment.variants) == 1
        summary = last.summary if last and alone else None
        return {
            "id": experiment.id,
            "created": experiment.created,
            "name": experiment.name,
            "trials": len(trials),
            "throughput_per_s": summary.throughput_per_s if summary else None,
            "outcome": (last.trial.outcome or "unfinished") if last else "no trial",
            "tags": list(run.tags),
            "folder": str(run.folder),
            "problem": None,
        }
    except (PgdynoError, OSError, ValueError) as error:
        return {
            "id": run.id, "created": "", "name": run.folder.name, "trials": 0,
            "throughput_per_s": None, "outcome": "unreadable", "tags": [],
            "folder": str(run.folder), "problem": str(error).splitlines()[0],
        }  # fmt: skip
