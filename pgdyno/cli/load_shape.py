"""Options that shape an open load beyond one rate, and what excludes what among all of them."""

from __future__ import annotations

from typing import Any

import click

from pgdyno.cli.options import DURATION, F
from pgdyno.contract import Stage
from pgdyno.errors import InvalidInput
from pgdyno.units import parse_duration_s, parse_rate_per_s


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
        length, at, rates = str(value).partition("@")
        begin, dots, end = rates.partition("..")
        if not at:
            self.fail(f"'{value}' is not a stage; write 30s@1000/s or 30s@0..900/s", param, ctx)
        try:
            duration_s = parse_duration_s(length)
            rate_per_s = _rate_per_s(begin)
            end_rate_per_s = _rate_per_s(end) if dots else None
        except InvalidInput as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        if duration_s <= 0:
            self.fail(f"the stage '{value}' has no length", param, ctx)
        return Stage(duration_s=duration_s, rate_per_s=rate_per_s, end_rate_per_s=end_rate_per_s)


def _rate_per_s(text: str) -> float:
    """A rate; in a stage it may be 0."""
    return 0.0 if text.strip() in ("0", "0/s") else parse_rate_per_s(text)


def load_shape_options(command: F) -> F:
    """`--stage`, `--backlog-limit` and `--response-limit`."""
    options = (
        click.option(
            "--stage",
            "stages",
            type=StageWords(),
            multiple=True,
            help="Open loop, one after the other: 30s@1000/s, or a ramp: 30s@100/s..900/s.",
        ),
        click.option(
            "--backlog-limit",
            "backlog_limit_s",
            type=DURATION,
            help="Open loop: what waited longer for a client is skipped, and counted.",
        ),
        click.option(
            "--response-limit",
            "response_time_limit_s",
            type=DURATION,
            help="Responses that take longer are counted as late.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def check_load_shape(options: dict[str, Any]) -> None:
    """Refuse what cannot be, or not together."""
    stages, is_rate = options["stages"], options["rate_per_s"] is not None
    for name in ("backlog_limit_s", "response_time_limit_s"):
        if options[name] is not None and options[name] <= 0:
            word = "--backlog-limit" if name == "backlog_limit_s" else "--response-limit"
            raise InvalidInput(f"{word} must be above zero")
    if stages and is_rate:
        raise InvalidInput(
            "--rate and --stage cannot be used together",
            hint="a stage has its own rate: --stage 60s@1000/s",
        )
    if (stages or is_rate) and options["think_time_s"]:
        raise InvalidInput(
            f"{'--stage' if stages else '--rate'} and --think-time cannot be used together",
            hint="with a rate, arrivals do not wait for a client's thinking",
        )
    if options["backlog_limit_s"] is not None and not (stages or is_rate):
        raise InvalidInput(
            "--backlog-limit needs --rate or --stage",
            hint="in a closed loop nothing waits for a client",
        )
    if stages and not any(stage.rate_per_s or stage.end_rate_per_s for stage in stages):
        raise InvalidInput("the rates of all stages are 0", hint="for example: --stage 60s@1000/s")
