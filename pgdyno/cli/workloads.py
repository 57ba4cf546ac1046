"""`pgdyno workloads [WORKLOAD]`: the catalogue, or one workload's parameters and types."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from pgdyno.cli.options import json_option
from pgdyno.cli.parameters import default_of, option_of, values_of
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Workload
from pgdyno.workloads.resolving import resolve


@click.command(short_help="List workloads, or describe one.")
@click.argument("workload", required=False)
@json_option
def workloads(workload: str | None, *, as_json: bool) -> None:
    """List the workloads, or describe WORKLOAD: a name, a folder or a .sql file."""
    found = catalog.catalog() if workload is None else (catalog.find(workload),)
    if as_json:
        click.echo(json.dumps([_described(each) for each in found], indent=2))
    elif workload is None:
        _print_list(found)
    else:
        _print_one(found[0])


def _described(workload: Workload) -> dict[str, Any]:
    resolved = resolve(workload, {})
    return {
        "name": workload.name,
        "description": workload.description,
        "source": workload.definition.source,
        "data_version": workload.definition.data_version,
        "parameters": {
            name: each.model_dump(mode="json") for name, each in workload.parameters.items()
        },
        "transaction_types": {each.name: each.weight for each in resolved.transaction_types},
    }


def _print_list(found: tuple[Workload, ...]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for workload in found:
        table.add_row(workload.name, workload.description)
    Console().print(table)
    click.echo("\ntry: pgdyno run userlogin    describe one: pgdyno workloads userlogin")


def _print_one(workload: Workload) -> None:
    resolved = resolve(workload, {})
    click.echo(f"{workload.name}: {workload.description}")
    click.echo(f"source: {workload.definition.source}")
    console = Console()
    if workload.parameters:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for title in ("parameter", "default", "values", "what it is"):
            table.add_column(title)
        for name, parameter in workload.parameters.items():
            described = (default_of(parameter), values_of(parameter), parameter.about)
            table.add_row(option_of(name), *described)
        click.echo()
        console.print(table)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("transaction type")
    table.add_column("weight", justify="right")
    for kind in resolved.transaction_types:
        table.add_row(kind.name, str(kind.weight))
    click.echo()
    console.print(table)
