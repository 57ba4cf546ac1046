"""`pgdyno calibrate [WORKLOAD]`: what the load generator itself can do on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from pgdyno.calibration.measure import Calibrating, calibrate
from pgdyno.calibration.store import Answer, Calibration, generator_of, keep
from pgdyno.cli.options import COUNT, DURATION, generator_options, json_option, param_option
from pgdyno.cli.parameters import WorkloadCommand
from pgdyno.contract import Plan
from pgdyno.engine import build_plan, check_plan, find_engine
from pgdyno.errors import InvalidInput
from pgdyno.hosts.local import Local
from pgdyno.model import LoadChoice
from pgdyno.observers.environment import host_facts
from pgdyno.servers.orphans import state_folder
from pgdyno.units import (
    format_count,
    format_counted,
    format_duration_ns,
    format_per_s,
    format_share,
)
from pgdyno.workloads import catalog
from pgdyno.workloads.resolving import resolve

_DEFAULT_WORKLOAD = "select-only"
# Below this the generator's threads were not the limit: the machine or the null server was.
_BUSY_ENOUGH = 0.7


@click.command(
    cls=WorkloadCommand, name="calibrate", short_help="Measure the load generator itself."
)
@click.argument("workload", default=_DEFAULT_WORKLOAD)
@param_option
@generator_options
@click.option(
    "-T",
    "--time",
    "duration_s",
    type=DURATION,
    default="3s",
    show_default=True,
    help="Length of the measurement.",
)
@click.option("--tcp", is_flag=True, help="Over loopback TCP instead of a Unix socket.")
@click.option("--rows", type=COUNT, default=1, show_default=True, help="Rows of every result.")
@click.option("--row-bytes", type=COUNT, default=4, show_default=True, help="Bytes of each row.")
@json_option
def calibrate_command(workload: str, **options: Any) -> None:
    """Measure what the load generator can do with WORKLOAD's statements, against a null server.

    The null server answers at once with constant rows, so what is measured is the generator alone:
    the ceiling of any result on this machine. It is kept, and later runs of the same load are
    compared with it.

    \b
      pgdyno calibrate
      pgdyno calibrate userlogin --clients 64
    """  # noqa: D301  (click reads the escape)
    plan = _plan(workload, options)
    if options["duration_s"] <= 0:
        raise InvalidInput("--time must be above zero")
    host = Local()
    check_plan(plan, host)
    how = Calibrating(
        duration_s=options["duration_s"],
        tcp=options["tcp"],
        answer=Answer(rows=options["rows"], row_bytes=options["row_bytes"]),
    )
    generator = generator_of(host_facts(host), find_engine())
    calibration = calibrate(plan, generator, how, host)
    path = keep(calibration, state_folder())
    if options["as_json"]:
        click.echo(json.dumps(as_json(calibration, path), indent=2))
    else:
        show(calibration, path)


def _plan(workload: str, options: dict[str, Any]) -> Plan:
    if options["clients"] <= 0:
        raise InvalidInput("--clients must be above zero")
    resolved = resolve(catalog.find(workload), dict(options["param"]))
    load = LoadChoice(
        clients=options["clients"], threads=options["threads"], protocol=options["protocol"]
    )
    return build_plan(
        resolved.name,
        load,
        (resolved.transaction_types, resolved.variables),
        ("host=/nowhere", Path("/nowhere")),
    )


def as_json(calibration: Calibration, path: Path) -> dict[str, Any]:
    """The calibration for programs, with what follows from it."""
    ceiling = calibration.ceiling
    return {
        **calibration.model_dump(),
        "per_core_per_s": ceiling.per_core_per_s,
        "cpu_ns_per_transaction": ceiling.cpu_ns_per_transaction,
        "busy_share": ceiling.busy_share,
        "file": str(path),
    }


def show(calibration: Calibration, path: Path) -> None:
    """The calibration for people."""
    ceiling = calibration.ceiling
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(
        "load",
        f"{calibration.name}, {calibration.protocol}, {format_counted(ceiling.clients, 'client')}",
    )
    threads = format_counted(ceiling.threads, "thread")
    table.add_row("engine", f"{threads}, {ceiling.reactor}")
    table.add_row("ceiling", f"{format_per_s(ceiling.per_core_per_s)} transactions per core")
    table.add_row("cost", f"{format_duration_ns(ceiling.cpu_ns_per_transaction)} of CPU each")
    measured = f"{format_count(ceiling.transactions)} in {ceiling.measured_s:.1f} s"
    table.add_row(
        "measured",
        f"{format_per_s(ceiling.throughput_per_s)} ({measured}), "
        f"threads {format_share(ceiling.busy_share)} busy",
    )
    table.add_row("kept in", str(path))
    Console(soft_wrap=True).print(table)
    if ceiling.busy_share < _BUSY_ENOUGH:
        click.echo(
            "note: the engine waited for the null server or for a CPU; "
            "the ceiling per core comes from its CPU time and is rather too low than too high",
            err=True,
        )
