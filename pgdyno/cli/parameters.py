"""A workload's parameters on the command line: `--users 2000000`, and their list in the help.

Which parameters there are is known only once the workload is named, so every long option that a
command does not know becomes `--param name=value` before click reads the words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click

from pgdyno.cli.groups import write_options
from pgdyno.cli.words import name_parameters
from pgdyno.errors import PgdynoError
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Parameter, Workload


class WorkloadCommand(click.Command):
    """A command whose unknown long options are parameters of the workload it names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite the words, then parse as click does."""
        ctx.meta[__name__] = tuple(args)
        return super().parse_args(ctx, name_parameters(args, self._known(ctx)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's options, and below them the parameters of the workload that was named."""
        write_options(formatter, self.get_params(ctx), ctx)
        workload = _named(ctx.meta.get(__name__, ()))
        if workload is not None and workload.parameters:
            known = self._known(ctx)
            with formatter.section(f"Parameters of {workload.name}"):
                formatter.write_dl(
                    [_described(name, one, known) for name, one in workload.parameters.items()]
                )

    def _known(self, ctx: click.Context) -> set[str]:
        parameters = self.get_params(ctx)
        known = {option for one in parameters for option in one.opts}
        return known | {option for one in parameters for option in one.secondary_opts}


def option_of(name: str) -> str:
    """A parameter's long option: `log_tables` is `--log-tables`."""
    return "--" + name.replace("_", "-")


def values_of(parameter: Parameter) -> str:
    """What a parameter may be, in few words."""
    if parameter.choices:
        return " | ".join(parameter.choices)
    low = "" if parameter.min is None else f"{parameter.min:,.12g}".replace(",", "_")
    high = "" if parameter.max is None else f"{parameter.max:,.12g}".replace(",", "_")
    limits = f" {low}…{high}" if low or high else ""
    unit = f" {parameter.unit}" if parameter.unit else ""
    return f"{parameter.type}{limits}{unit}"


def default_of(parameter: Parameter) -> str:
    """A parameter's default as the command line takes it."""
    value = parameter.default
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:_}" if isinstance(value, int) else str(value)


def _described(name: str, parameter: Parameter, known: Collection[str]) -> tuple[str, str]:
    """One line of the help. A parameter hidden by an option of the command needs --param."""
    option = option_of(name)
    how = f"--param {name}=" if option in known else f"{option} "
    about = f"{parameter.about}: {values_of(parameter)}  [default: {default_of(parameter)}]"
    return f"{how}{'' if parameter.choices else parameter.type.upper()}".rstrip(), about


def _named(words: Iterable[str]) -> Workload | None:
    """The workload that the words name: the first of them that is one."""
    for word in words:
        if word.startswith("-"):
            continue
        try:
            return catalog.find(word)
        except PgdynoError:
            continue
    return None
