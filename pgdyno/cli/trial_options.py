"""What a trial runs, from the command line: the options that `run` and `ab` share.

Parsing only: options become a `Variant` and the workload it names; what cannot go together is told.
"""

from __future__ import annotations

import secrets
from typing import Any

import click

from pgdyno.cli.load_shape import check_load_shape, load_shape_of, load_shape_options
from pgdyno.cli.load_trouble import check_load_trouble, load_trouble_of, load_trouble_options
from pgdyno.cli.options import (
    COUNT,
    DURATION,
    Assignment,
    F,
    Warmup,
    generator_options,
    param_option,
)
from pgdyno.cli.system_options import Cpus, engine_cpus_of, system_of, system_options
from pgdyno.errors import InvalidInput
from pgdyno.model import LoadChoice, Variant, WorkloadChoice
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Workload
from pgdyno.workloads.resolving import resolve


def trial_options(command: F) -> F:
    """Workload, system and load of a trial, in the order of the help text."""
    options = (
        param_option,
        click.option(
            "--mix",
            type=Assignment(),
            multiple=True,
            metavar="TYPE=WEIGHT",
            help="Weight of a transaction type, where the workload's own is not wanted.",
        ),
        system_options,
        generator_options,
        click.option("--engine-cpus", type=Cpus(), help="CPUs of the load generator."),
        click.option(
            "-T",
            "--time",
            "duration_s",
            type=DURATION,
            default=None,
            help="Length of the measurement.  [default: 60s]",
        ),
        click.option(
            "-t",
            "--transactions-per-client",
            "transactions",
            type=COUNT,
            help="Length as a number of transactions of each client, instead of a time.",
        ),
        click.option(
            "--warmup",
            "warmup",
            type=Warmup(),
            default="10s",
            show_default=True,
            help="Measured but not counted, before the measurement; or until it is steady.",
        ),
        load_shape_options,
        load_trouble_options,
        click.option(
            "--seed", type=COUNT, help="Seed of all random numbers; default: a new one, recorded."
        ),
        click.option("--reload", is_flag=True, help="Load the data again even where it fits."),
        click.option(
            "--prewarm/--no-prewarm", default=True, help="Bring the data into memory first."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def variant_of(workload: str, options: dict[str, Any]) -> tuple[Variant, Workload]:
    """The variant that the options ask for, and the workload it names.

    Raises `InvalidInput` for what cannot be, or not together.
    """
    found = catalog.find(workload)
    weights = _weights(options["mix"])
    resolved = resolve(found, dict(options["param"]), weights=weights)
    variant = Variant(
        name=resolved.name,
        workload=WorkloadChoice(
            name=workload, parameters=dict(resolved.parameters), weights=weights
        ),
        system=system_of(options),
        load=_load(options),
    )
    return variant, found


def _weights(pairs: tuple[tuple[str, str], ...]) -> dict[str, int]:
    weights = {}
    for name, text in pairs:
        if not text.isdigit():
            raise InvalidInput(
                f"weight '{text}' of transaction type '{name}' is not a whole number",
                hint=f"for example: --mix {name}=1",
            )
        weights[name] = int(text)
    return weights


def _load(options: dict[str, Any]) -> LoadChoice:
    """The load asked for."""
    if options["transactions"] is not None and options["duration_s"] is not None:
        raise InvalidInput(
            "--time and --transactions-per-client cannot be used together", hint="give one"
        )
    check_load_shape(options)
    check_load_trouble(options)
    whole_s = sum(stage.duration_s for stage in options["stages"]) or 60.0
    counted = options["transactions"] is not None
    positive = {
        "--clients": options["clients"],
        "--transactions-per-client": options["transactions"],
        "--time": options["duration_s"],
    }
    for name, value in positive.items():
        if value is not None and value <= 0:
            raise InvalidInput(f"{name} must be above zero")
    return LoadChoice(
        clients=options["clients"],
        threads=options["threads"],
        cpus=engine_cpus_of(options),
        protocol=options["protocol"],
        warmup_s=options["warmup"][0],
        steady_warmup=options["warmup"][1],
        duration_s=None if counted else (options["duration_s"] or whole_s),
        transactions_per_client=options["transactions"],
        **load_shape_of(options),
        **load_trouble_of(options),
        seed=secrets.randbits(63) if options["seed"] is None else options["seed"],
        reload=options["reload"],
        prewarm=options["prewarm"],
    )
