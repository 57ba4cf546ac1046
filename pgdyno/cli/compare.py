"""`pgdyno compare BASELINE… -- VARIANT…`: stored runs, and outputs of pgbench and sysbench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from pgdyno.cli.options import json_option, output_option
from pgdyno.cli.verdicts import exit_code, metric_option, responses_of, tell
from pgdyno.errors import InvalidInput
from pgdyno.experiment.comparability import Purpose
from pgdyno.experiment.comparing import Asked
from pgdyno.experiment.selecting import compare_words

_BETWEEN = "--"
_KEPT = "\x1e"


class TwoSides(click.Command):
    """A command whose words stand on two sides of `--`; options may stand on either."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the first `--`, which click would drop, as an argument of its own."""
        if _BETWEEN in args:
            place = args.index(_BETWEEN)
            args = [*args[:place], _KEPT, *args[place + 1 :]]
        return super().parse_args(ctx, args)


@click.command(
    cls=TwoSides,
    short_help="Compare stored runs or files.",
    options_metavar="[OPTIONS]",
)
@click.argument("words", nargs=-1, metavar="BASELINE... -- VARIANT...")
@metric_option
@click.option("--even-so", is_flag=True, help="Compare what is not comparable, and mark it.")
@click.option("--fail-if-worse", is_flag=True, help="Exit with 3 when a metric is worse.")
@output_option
@json_option
def compare(words: tuple[str, ...], output: Path, **options: Any) -> None:
    """Compare what stands after `--` with what stands before it.

    A side is a run (folder, id, tag, `last`), one variant of an experiment (RUN:VARIANT), a
    trial's folder, or files that pgbench or sysbench left: reports as text, logs of pgbench -l.

    \b
      pgdyno compare k7m2qd -- w3x9ab
      pgdyno compare k7m2qd:on -- k7m2qd:off --metric p99_us
      pgdyno compare before/*.txt -- after/*.txt

    Exits with 3 when the two sides must not be compared and --even-so was not given.
    """  # noqa: D301  (click reads the escape)
    before, after = _sides(words)
    asked = Asked(
        responses=responses_of(options["metrics"], options["matters"]),
        purpose=Purpose(matters=options["matters"]),
        paired=False,
        even_so=options["even_so"],
    )
    comparison = compare_words(before, after, output, asked)
    tell(comparison, as_json=options["as_json"])
    sys.exit(exit_code(comparison, fail_if_worse=options["fail_if_worse"]))


def _sides(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    example = "for example: pgdyno compare k7m2qd -- w3x9ab"
    if _KEPT not in words:
        one = "one side only" if words else "nothing to compare"
        raise InvalidInput(f"{one}: there is no '--' between two sides", hint=example)
    place = words.index(_KEPT)
    before, after = words[:place], words[place + 1 :]
    for side, where in ((before, "before"), (after, "after")):
        if not side:
            raise InvalidInput(f"nothing stands {where} '--'", hint=example)
    return before, after
