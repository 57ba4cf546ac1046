"""Runs an experiment for the commands that do: folder, view, result, exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from pgdyno.cli.verdicts import experiment_exit_code, is_comparison, tell_experiment
from pgdyno.errors import (
    EXIT_CHECK_FAILED,
    EXIT_COULD_NOT,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    InvalidInput,
)
from pgdyno.experiment.comparing import Comparison
from pgdyno.experiment.policies import Stop, trials_at_most
from pgdyno.experiment.runner import check_experiment, run_experiment
from pgdyno.experiment.store import Run, new_run, remove_run
from pgdyno.hosts.local import Local
from pgdyno.model import Experiment
from pgdyno.reports import html, terminal
from pgdyno.reports.live import new_live
from pgdyno.workloads.definition import ResolvedWorkload, Workload
from pgdyno.workloads.keeping import keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What the command line says about where and how to tell."""

    output: Path
    as_json: bool
    with_report: bool
    even_so: bool = False
    fail_if_worse: bool = False


def execute(
    experiment: Experiment, workloads: Mapping[str, Workload], execution: Execution
) -> NoReturn:
    """Run the experiment, show its result and exit with what it deserves.

    `workloads` holds every variant's workload by the variant's name. Results go to standard output,
    everything else to standard error. A run that was refused before it touched anything leaves no
    folder.
    """
    resolved = check_experiment(experiment, workloads, Local())
    run = new_run(experiment, execution.output)
    for name, workload in workloads.items():
        keep(workload, run.workloads / name)
    proceed(run, resolved, execution)


def proceed(run: Run, resolved: Mapping[str, ResolvedWorkload], execution: Execution) -> NoReturn:
    """Run what is left of a stored experiment; show and exit as `execute`."""
    live = new_live(sys.stderr)
    refused, stop, comparison = False, None, None
    try:
        stop = run_experiment(run, resolved, Local(), live)
    except InvalidInput:
        refused = _is_untouched(run)
        raise
    finally:
        live.end()
        if refused:
            remove_run(run)
        else:
            _say_why_it_ended(run, stop)
            comparison = _tell(run, execution)
    if is_comparison(run.experiment):
        sys.exit(experiment_exit_code(run, comparison, execution))
    sys.exit(exit_code(run))


def exit_code(run: Run) -> int:
    """0 done, 1 could not, 3 a check does not hold, 130 interrupted; the worst trial counts.

    Of trials that were repeated in their place the last counts.
    """
    last = {(one.trial.variant, one.trial.block): one for one in run.trials}
    outcomes = {stored.trial.outcome for stored in last.values()}
    if "interrupted" in outcomes:
        return EXIT_INTERRUPTED
    if not last or outcomes != {"completed"}:
        return EXIT_COULD_NOT
    broken = any(check.verdict == "broken" for stored in last.values() for check in stored.checks)
    return EXIT_CHECK_FAILED if broken else EXIT_DONE


def _say_why_it_ended(run: Run, stop: Stop | None) -> None:
    """Why there are no more trials, and how to go on where there could be."""
    if trials_at_most(run.experiment) == 1:
        return
    if stop is not None and not stop.failed:
        click.echo(stop.reason, err=True)
        return
    click.echo(f"pgdyno experiment resume {run.id} goes on from here", err=True)


def _is_untouched(run: Run) -> bool:
    """Whether nothing but looking at the server has happened: there is nothing worth keeping."""
    return all(phase.name == "provision" for stored in run.trials for phase in stored.trial.phases)


def _tell(run: Run, execution: Execution) -> Comparison | None:
    """Print what there is and write the report, also after a failure: results are never lost.

    The comparison, where there is one.
    """
    if not any(stored.summary or stored.intervals() for stored in run.trials):
        return None
    if is_comparison(run.experiment):
        return tell_experiment(run, execution)
    if execution.with_report:
        html.write_report(run, run.folder / "report.html")
    if execution.as_json:
        click.echo(json.dumps(terminal.as_json(run), indent=2))
    else:
        terminal.render_summary(run, Console())
    return None
