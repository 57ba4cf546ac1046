"""Tells a comparison: standard output, the kept noise floor, and the exit code it deserves."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
from rich.console import Console

from pgdyno.errors import EXIT_CHECK_FAILED, EXIT_DONE, PgdynoError
from pgdyno.experiment.comparing import Comparison
from pgdyno.experiment.noise_keeping import keep_floors, kept_floors
from pgdyno.experiment.store import Run
from pgdyno.reports.comparison import kept_noise_words, render_comparison
from pgdyno.reports.comparison_json import comparison_as_json
from pgdyno.servers.orphans import state_folder
from pgdyno.units import format_duration_s


def tell(comparison: Comparison, *, as_json: bool, run: Run | None = None) -> None:
    """Print a comparison; `run` where it is that of one experiment."""
    if as_json:
        click.echo(json.dumps(comparison_as_json(comparison), indent=2, allow_nan=False))
        return
    render_comparison(comparison, Console(), kept_sentences(comparison, run))


def keep(comparison: Comparison, run: Run) -> None:
    """Keep the noise floor that an A/A found; a state folder that cannot be written is told."""
    try:
        keep_floors(run, comparison, state_folder())
    except PgdynoError as error:
        click.echo(f"notice: {error.message}", err=True)


def kept_sentences(comparison: Comparison, run: Run | None) -> tuple[str, ...]:
    """What earlier A/As on the run's machine found; none where this one had its own."""
    if run is None or comparison.noise:
        return ()
    blocks = max((len(side.readings) for side in comparison.sides), default=0)
    floors = kept_floors(run, comparison, state_folder(), datetime.now(UTC))
    if not floors:
        return ("never measured on this machine for this workload; add --aa",)
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
