"""The noise floor of a machine: kept after every A/A experiment, found before a comparison."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path

from pgdyno.calibration.noise import (
    KeptNoise,
    Machine,
    keep_noise,
    latest_noise,
    machine_of,
)
from pgdyno.experiment.comparing import Comparison
from pgdyno.experiment.store import Run
from pgdyno.stats.power import blocks_that_can_decide


def keep_floors(run: Run, comparison: Comparison, folder: Path) -> None:
    """Keep the floors of an A/A experiment, each for its workload and metric.

    Raises `PgdynoError` where the state folder cannot be written.
    """
    machine, workload = _machine_of(run), _workload_of(run)
    if machine is None:
        return
    load = run.experiment.variants[0].load
    for noise in comparison.noise:
        floor = noise.floor
        # One that was stopped early would take the place of a better one.
        if floor.blocks < blocks_that_can_decide():
            continue
        keep_noise(
            KeptNoise(
                machine=machine,
                workload=workload,
                metric=noise.metric.name,
                measured=run.experiment.created,
                run=run.id,
                blocks=floor.blocks,
                trial_s=load.duration_s,
                sd_log=floor.sd_log,
                floor=floor.floor if math.isfinite(floor.floor) else None,
            ),
            folder,
        )


def kept_floors(
    run: Run, comparison: Comparison, folder: Path, now: datetime
) -> tuple[tuple[KeptNoise, float], ...]:
    """Earlier floors of the run's machine, workload and responses, with their age in seconds."""
    machine, workload = _machine_of(run), _workload_of(run)
    if machine is None:
        return ()
    names = [response.metric for response in comparison.asked.responses]
    found = (latest_noise(folder, machine, workload, name) for name in names)
    return tuple((each, each.age_s(now)) for each in found if each is not None)


def _machine_of(run: Run) -> Machine | None:
    for stored in run.trials:
        environment = stored.environment
        if environment is not None and environment.hosts:
            return machine_of(environment.hosts[0])
    return None


def _workload_of(run: Run) -> str:
    for stored in run.trials:
        if stored.trial.state is not None:
            return stored.trial.state.workload
    experiment = run.experiment
    name = experiment.baseline or experiment.variants[0].name
    return next(each.workload.name for each in experiment.variants if each.name == name)
