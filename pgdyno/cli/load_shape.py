"""Options that shape a load in time, and what excludes what among them."""

from __future__ import annotations

from typing import Any

import click

from pgdyno.cli.options import COUNT, DURATION, RATE, F
from pgdyno.contract import Stage
from pgdyno.errors import InvalidInput
from pgdyno.experiment.levels import stage as read_stage
from pgdyno.model import Sessions

# What makes a load open, and what only an open one has.
_KINDS = {"rate_per_s": "--rate", "stages": "--stage", "session_rate_per_s": "--session-rate"}
_OF_ARRIVALS = {
    "arrival": "--arrivals",
    "schedule": "--schedule",
    "backlog_limit_s": "--backlog-limit",
}


class StageWords(click.ParamType[Stage]):
    """A stage of an open load: `30s@1000/s`, or a ramp, `30s@100/s..900/s`.

    >>> StageWords().convert("1min@0..900/s", None, None)
    Stage(duration_s=60.0, rate_per_s=0.0, end_rate_per_s=900.0)
    """

    name = "LENGTH@RATE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Stage:
        """The stage; a click usage error for anything else."""
        if isinstance(value, Stage):
            return value
        try:
            return read_stage(str(value))
        except InvalidInput as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


def load_shape_options(command: F) -> F:
    """When transactions start, apart from `--clients`, and what is late."""
    return _arrival_options(_pace_options(command))


def _arrival_options(command: F) -> F:
    options = (
        click.option(
            "-R",
            "--rate",
            "rate_per_s",
            type=RATE,
            metavar="RATE",
            help="Open loop: transactions arrive at this rate, e.g. 5000/s.",
        ),
        click.option(
            "--stage",
            "stages",
            type=StageWords(),
            multiple=True,
            help="Open loop, one after the other: 30s@1000/s, or a ramp: 30s@100/s..900/s.",
        ),
        click.option(
            "--session-rate",
            "session_rate_per_s",
            type=RATE,
            metavar="RATE",
            help="Partly open: sessions arrive at this rate; within one, transactions follow.",
        ),
        click.option(
            "--session-length", type=COUNT, metavar="N", help="Transactions of each session."
        ),
        click.option(
            "--arrivals",
            "arrival",
            type=click.Choice(["poisson", "constant"]),
            help="How arrivals are spaced.  [default: poisson]",
        ),
        click.option(
            "--schedule",
            type=click.Choice(["shared", "per-client"]),
            help="Open loop: who takes an arrival: whoever is free, or each client its own."
            "  [default: shared]",
        ),
        click.option(
            "--backlog-limit",
            "backlog_limit_s",
            type=DURATION,
            help="Open loop: what waited longer for a client is skipped, and counted.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _pace_options(command: F) -> F:
    options = (
        click.option(
            "--response-limit",
            "response_time_limit_s",
            type=DURATION,
            help="Responses that take longer are counted as late.",
        ),
        click.option(
            "--think-time",
            "think_time_s",
            type=DURATION,
            default="0s",
            show_default=True,
            help="Pause of a client between two transactions; its mean.",
        ),
        click.option(
            "--think-times",
            "think_time",
            type=click.Choice(["constant", "exponential"]),
            help="How pauses vary.  [default: constant]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def check_load_shape(options: dict[str, Any]) -> None:
    """Refuse what cannot be, or not together."""
    for name in ("backlog_limit", "response_time_limit"):
        value = options[f"{name}_s"]
        if value is not None and value <= 0:
            word = name.replace("response_time", "response").replace("_", "-")
            raise InvalidInput(f"--{word} must be above zero")
    kinds = [word for name, word in _KINDS.items() if options[name]]
    if len(kinds) > 1:
        raise InvalidInput(
            f"{' and '.join(kinds)} cannot be used together",
            hint="a stage has its own rate, --stage 60s@1000/s; sessions have theirs",
        )
    _check_sessions(options)
    kind = kinds[0] if kinds else None
    if kind in ("--rate", "--stage") and options["think_time_s"]:
        raise InvalidInput(
            f"{kind} and --think-time cannot be used together",
            hint="with a rate, arrivals do not wait for a client's thinking",
        )
    if options["think_time"] is not None and not options["think_time_s"]:
        raise InvalidInput("--think-times needs --think-time", hint="it says how that pause varies")
    for name, word in _OF_ARRIVALS.items():
        if options[name] is not None and kind is None:
            raise InvalidInput(
                f"{word} needs --rate, --stage or --session-rate",
                hint="in a closed loop nothing arrives or waits for a client",
            )
    if options["schedule"] == "per-client" and kind == "--session-rate":
        raise InvalidInput("--schedule per-client cannot be used with --session-rate")
    stages = options["stages"]
    if stages and not any(stage.rate_per_s or stage.end_rate_per_s for stage in stages):
        raise InvalidInput("the rates of all stages are 0", hint="for example: --stage 60s@1000/s")


def _check_sessions(options: dict[str, Any]) -> None:
    rate_per_s, length = options["session_rate_per_s"], options["session_length"]
    if (rate_per_s is None) != (length is None):
        raise InvalidInput(
            "--session-rate and --session-length belong together",
            hint="for example: --session-rate 50/s --session-length 10",
        )
    if length is not None and length <= 0:
        raise InvalidInput("--session-length must be above zero")


def load_shape_of(options: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `LoadChoice` that these options set."""
    sessions = None
    if options["session_rate_per_s"] is not None:
        sessions = Sessions(
            rate_per_s=options["session_rate_per_s"], transactions=options["session_length"]
        )
    return {
        "rate_per_s": options["rate_per_s"],
        "stages": options["stages"],
        "sessions": sessions,
        "arrival": options["arrival"] or "poisson",
        "schedule": (options["schedule"] or "shared").replace("-", "_"),
        "backlog_limit_s": options["backlog_limit_s"],
        "response_time_limit_s": options["response_time_limit_s"],
        "think_time_s": options["think_time_s"],
        "think_time": options["think_time"] or "constant",
    }
