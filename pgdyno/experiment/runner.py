"""The loop: asks the policy what comes next, conducts that trial, stores it, asks again.

The one place that wires everything together is `conduct.py`, one trial at a time; here is only
what comes before the first of them and between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.engine import build_plan, check_plan
from pgdyno.experiment.conduct import Conduct
from pgdyno.experiment.policies import Stop, next_step, past_of
from pgdyno.experiment.progress import Progress
from pgdyno.experiment.store import Run
from pgdyno.hosts.base import Host
from pgdyno.model import Experiment, Trial, Variant
from pgdyno.workloads.definition import ResolvedWorkload, Workload
from pgdyno.workloads.resolving import resolve


def check_experiment(
    experiment: Experiment, workloads: Mapping[str, Workload], host: Host
) -> dict[str, ResolvedWorkload]:
    """Whatever can be refused before anything is made: parameters, scripts, plans.

    Returns every variant's workload resolved. Raises `Problems` with all that is wrong.
    """
    resolved = {}
    for variant in experiment.variants:
        workload = _resolved(variant, workloads[variant.name])
        scripts = (workload.transaction_types, workload.variables)
        check_plan(build_plan(variant.name, variant.load, scripts, ("", Path("/"))), host)
        resolved[variant.name] = workload
    return resolved


def run_experiment(
    run: Run, workloads: Mapping[str, ResolvedWorkload], host: Host, progress: Progress
) -> None:
    """Run every trial that the policy asks for; stops at the first that did not complete."""
    experiment = run.experiment
    while True:
        step = next_step(experiment, [past_of(stored.trial) for stored in run.trials])
        if isinstance(step, Stop):
            return
        trial = Trial(
            number=step.number,
            variant=step.variant.name,
            replicate=step.replicate,
            block=step.block,
            began=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        stored = run.new_trial(trial)
        workload = workloads[step.variant.name]
        Conduct(stored, step.variant, workload, host, progress).run()
        if stored.trial.outcome != "completed":
            return


def _resolved(variant: Variant, workload: Workload) -> ResolvedWorkload:
    choice = variant.workload
    given = {name: str(value) for name, value in choice.parameters.items()}
    return resolve(workload, given, weights=choice.weights)
