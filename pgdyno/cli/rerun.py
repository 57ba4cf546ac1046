"""`pgdyno rerun RUN`: the same experiment again, from its folder alone, into a new one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from pgdyno import __version__
from pgdyno.cli.execute import Execution, execute
from pgdyno.cli.options import json_option, run_argument
from pgdyno.experiment.store import find_run, new_id
from pgdyno.model import Experiment, Variant
from pgdyno.servers.remote import take_password
from pgdyno.workloads.keeping import find_kept


@click.command(short_help="Run a stored run again.")
@run_argument
@click.option("--dsn", help="Server to use; needed where the stored one required a password.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html.")
@json_option
def rerun(
    reference: str, output: Path, dsn: str | None, *, with_report: bool, as_json: bool
) -> None:
    """Run RUN again with its own workload files, settings and seed, into a new folder."""
    stored = find_run(reference, output)
    old = stored.experiment
    variants = tuple(_moved(variant, dsn) for variant in old.variants)
    experiment = old.model_copy(
        update={
            "id": new_id(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "pgdyno_version": __version__,
            "variants": variants,
        }
    )
    workloads = {each.name: find_kept(stored.workloads / each.name) for each in variants}
    execute(
        Experiment.model_validate(experiment.model_dump()),
        workloads,
        Execution(output=output, as_json=as_json, with_report=with_report),
    )


def _moved(variant: Variant, dsn: str | None) -> Variant:
    if dsn is None:
        return variant
    system = variant.system.model_copy(update={"dsn": take_password(dsn)})
    return variant.model_copy(update={"system": system})
