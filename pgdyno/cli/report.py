"""`pgdyno report RUN`: write a stored run's HTML report again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pgdyno.cli.options import json_option, run_argument
from pgdyno.cli.verdicts import write_page
from pgdyno.experiment.store import find_run


@click.command(short_help="Write a stored run's HTML report.")
@run_argument
@click.option(
    "-o",
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write it; default: report.html in the run's folder.",
)
@json_option
def report(reference: str, output: Path, file: Path | None, *, as_json: bool) -> None:
    """Write RUN's report: one file that opens with no network."""
    run = find_run(reference, output)
    path = write_page(run, file or run.folder / "report.html")
    if as_json:
        click.echo(json.dumps({"report": str(path), "bytes": path.stat().st_size}))
    else:
        click.echo(f"report: {path}")
