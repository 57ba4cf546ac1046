"""Tells a comparison: standard output, the kept noise floor, and the exit code it deserves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console

from pgdyno.cli.options import SHARE, F
from pgdyno.errors import (
    EXIT_CHECK_FAILED,
    EXIT_COULD_NOT,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    PgdynoError,
)
from pgdyno.experiment.comparing import Comparison
from pgdyno.experiment.noise_keeping import keep_floors, kept_floors
from pgdyno.experiment.responses import DEFAULT_METRIC, metric
from pgdyno.experiment.selecting import compare_experiment
from pgdyno.experiment.store import Run
from pgdyno.model import Experiment, Response
from pgdyno.reports import html
from pgdyno.reports.comparison import kept_noise_words, render_closing, render_comparison
from pgdyno.reports.comparison_json import comparison_as_json, identity
from pgdyno.reports.comparison_page import write_comparison
from pgdyno.servers.orphans import state_folder
from pgdyno.units import format_duration_s


def metric_option(command: F) -> F:
    """`--metric NAME` and `--matters SHARE`: what is judged."""
    options = (
        click.option(
            "-m",
            "--metric",
            "metrics",
            multiple=True,
            help=f"Response metric to judge; repeatable.  [default: {DEFAULT_METRIC}]",
        ),
        click.option(
            "--matters",
            type=SHARE,
            default="2%",
            show_default=True,
            help="The relative difference that would matter.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def responses_of(names: Sequence[str], matters: float) -> tuple[Response, ...]:
    """The metrics asked for, each with its own direction; `InvalidInput` for an unknown one."""
    return tuple(
        Response(metric=name, direction=metric(name).direction, matters=matters)
        for name in dict.fromkeys(names or (DEFAULT_METRIC,))
    )


class Telling(Protocol):
    """What a command line says about how to tell a comparison."""

    @property
    def as_json(self) -> bool:
        """On standard output, for programs."""

    @property
    def with_report(self) -> bool:
        """Write the page."""

    @property
    def even_so(self) -> bool:
        """Compare what is not comparable."""

    @property
    def fail_if_worse(self) -> bool:
        """Whether "worse" is a failure."""


def is_comparison(experiment: Experiment) -> bool:
    """Whether an experiment has anything to compare: more than one variant, or an A/A."""
    return len(experiment.variants) > 1


def tell(comparison: Comparison, *, as_json: bool) -> None:
    """Print a comparison of trials that were named on the command line."""
    if as_json:
        click.echo(json.dumps(comparison_as_json(comparison), indent=2, allow_nan=False))
    else:
        render_comparison(comparison, Console())


def tell_experiment(run: Run, how: Telling) -> Comparison:
    """Print an experiment's comparison, write its page, keep the noise floor an A/A found."""
    comparison = compare_experiment(run, even_so=how.even_so)
    keep(comparison, run)
    kept = kept_sentences(comparison, run)
    page = run.folder / "report.html"
    if how.with_report:
        write_comparison(run, comparison, kept, page)
    _print(run, comparison, kept, as_json=how.as_json)
    return comparison


def write_page(run: Run, path: Path) -> Path:
    """Write the page that fits a run: one trial's report, or a comparison's; its path."""
    if not is_comparison(run.experiment):
        return html.write_report(run, path)
    comparison = compare_experiment(run, even_so=False)
    return write_comparison(run, comparison, kept_sentences(comparison, run), path)


def show_experiment(run: Run) -> None:
    """Print an experiment's comparison as it is stored; nothing is written."""
    comparison = compare_experiment(run, even_so=False)
    _print(run, comparison, kept_sentences(comparison, run), as_json=False)


def _print(run: Run, comparison: Comparison, kept: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        document = {**identity(run), **comparison_as_json(comparison)}
        click.echo(json.dumps(document, indent=2, allow_nan=False))
        return
    console = Console()
    render_comparison(comparison, console, kept)
    render_closing(run, console)


def experiment_exit_code(run: Run, comparison: Comparison | None, how: Telling) -> int:
    """130 interrupted, 1 could not go on; else what the comparison deserves (None: no trial)."""
    trials = run.trials
    last = trials[-1].trial.outcome if trials else "failed"
    if last == "interrupted":
        return EXIT_INTERRUPTED
    if last != "completed" or comparison is None:
        return EXIT_COULD_NOT
    return exit_code(comparison, fail_if_worse=how.fail_if_worse)


def keep(comparison: Comparison, run: Run) -> None:
    """Keep the noise floor that an A/A found; a state folder that cannot be written is told."""
    try:
        keep_floors(run, comparison, state_folder())
    except PgdynoError as error:
        click.echo(f"notice: {error.message}", err=True)


def kept_sentences(comparison: Comparison, run: Run) -> tuple[str, ...]:
    """What earlier A/As on the run's machine found; none where this one had its own."""
    if comparison.noise or not comparison.asked.responses:
        return ()
    blocks = max((len(side.readings) for side in comparison.sides), default=0)
    floors = kept_floors(run, comparison, state_folder(), datetime.now(UTC))
    if not floors:
        return (
            "not known: no A/A of this workload on this machine; pgdyno ab WORKLOAD makes one, "
            "or aa = true in an experiment's file",
        )
    return tuple(kept_noise_words(each, _age(age_s), blocks) for each, age_s in floors)


def exit_code(comparison: Comparison, *, fail_if_worse: bool) -> int:
    """0 done; 3 where a pair was refused, or where the person asked and something is worse."""
    failed = comparison.refused or (fail_if_worse and comparison.worse)
    return EXIT_CHECK_FAILED if failed else EXIT_DONE


def _age(seconds: float) -> str:
    days = int(seconds // 86400)
    if days >= 2:
        return f"{days} days"
    return format_duration_s(max(seconds, 0.0))
