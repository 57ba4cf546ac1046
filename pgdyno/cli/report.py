"""`pgdyno report RUN`: a stored run's HTML report again, or that of a document of our pgbench."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pgdyno.cli.options import json_option, run_argument
from pgdyno.cli.verdicts import write_page
from pgdyno.experiment.store import find_run
from pgdyno.foreign.pgbench_document import read_document
from pgdyno.reports.pgbench_page import write_pgbench_page


@click.command(short_help="Write the HTML report of a run, or of a pgbench --json file.")
@run_argument
@click.option(
    "-o",
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write it; default: report.html in the run's folder, or FILE.html.",
)
@json_option
def report(reference: str, output: Path, file: Path | None, *, as_json: bool) -> None:
    """Write RUN's report: one file that opens with no network.

    RUN may also be a file that pgbench --json=FILE wrote.
    """
    if reference.endswith(".json"):
        document = Path(reference)
        page = file or document.with_suffix(".html")
        path = write_pgbench_page(read_document(document), document.stem, page)
    else:
        run = find_run(reference, output)
        path = write_page(run, file or run.folder / "report.html")
    if as_json:
        click.echo(json.dumps({"report": str(path), "bytes": path.stat().st_size}))
    else:
        click.echo(f"report: {path}")
