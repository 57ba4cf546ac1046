"""Options that several commands share, and the types that read quantities with their units."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pgdyno.errors import InvalidInput
from pgdyno.experiment.levels import cpu_time, share, warmup
from pgdyno.experiment.store import DEFAULT_OUTPUT
from pgdyno.units import parse_bytes, parse_count, parse_duration_s, parse_rate_per_s

F = TypeVar("F", bound=Callable[..., Any])


class Quantity(click.ParamType[float | int]):
    """A quantity read by one of the parsers in `units`."""

    def __init__(self, name: str, parse: Callable[[str], float | int]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | int:
        """The number in SI base units; a click usage error for anything else."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return self._parse(value)
        except InvalidInput as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


class Assignment(click.ParamType[tuple[str, str]]):
    """`name=value`, as a pair."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """The pair; a click usage error when there is no name or no `=`."""
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"'{value}' is not of the form name=value", param, ctx)
        return name.strip(), text.strip()


class Warmup(click.ParamType[tuple[float, bool]]):
    """A warm-up, `10s`, `steady` or `steady:30s`: seconds at most; whether it may end sooner."""

    name = "10s|steady[:MAX]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, bool]:
        """The pair; a click usage error for anything else."""
        if isinstance(value, tuple):
            return value
        try:
            return warmup(value, {})
        except InvalidInput as error:
            self.fail(f"{error.message}; {error.hint or 'for example 10s, steady'}", param, ctx)


class RunReference(click.ParamType[str]):
    """A stored run: folder, beginning of its id, tag, or `last`."""

    name = "RUN"


DURATION = Quantity("duration", parse_duration_s)
RATE = Quantity("rate", parse_rate_per_s)
COUNT = Quantity("count", parse_count)
SHARE = Quantity("share", share)
SIZE = Quantity("size", parse_bytes)
CPU_TIME = Quantity("CPUs", cpu_time)


def output_option(command: F) -> F:
    """`--output DIR`: where run folders lie."""
    return click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_OUTPUT,
        show_default=True,
        envvar="PGDYNO_OUTPUT",
        help="Folder of the run folders.",
    )(command)


def json_option(command: F) -> F:
    """`--json`: the result as JSON on standard output, for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(
        command
    )


def param_option(command: F) -> F:
    """`--param NAME=VALUE`: a parameter of the workload that the command names."""
    return click.option(
        "-p",
        "--param",
        type=Assignment(),
        multiple=True,
        metavar="NAME=VALUE",
        help="Workload parameter; --NAME VALUE is the short form. WORKLOAD --help lists them.",
    )(command)


def generator_options(command: F) -> F:
    """How the load generator is set up: `--clients`, `--threads`, `--protocol`."""
    options = (
        click.option("-c", "--clients", type=COUNT, default=16, show_default=True, help="Clients."),
        click.option(
            "-j", "--threads", type=COUNT, default=0, help="Engine threads; 0: its own rule."
        ),
        click.option(
            "-M",
            "--protocol",
            type=click.Choice(["simple", "extended", "prepared"]),
            default="prepared",
            show_default=True,
            help="How statements are sent.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run_argument(command: F) -> F:
    """The argument RUN, with its `--output`."""
    argument = click.argument("reference", metavar="RUN", type=RunReference())
    return argument(output_option(command))
