"""Reads an experiment file for the commands that take one: all that can be told beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from pgdyno import __version__
from pgdyno.calibration.noise import KeptNoise, latest_noise, machine_of
from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.experiment.definition import Definition, read_definition
from pgdyno.experiment.design import Design, Occasion, design, experiment_of, host_names
from pgdyno.experiment.earlier import earlier_trials
from pgdyno.experiment.grouping import Grouping
from pgdyno.experiment.planning import ExperimentPlan, plan_experiment, refusals, trial_time
from pgdyno.experiment.runner import check_experiment
from pgdyno.experiment.store import new_id
from pgdyno.hosts.base import Host
from pgdyno.hosts.local import Local
from pgdyno.model import Experiment, HostFacts
from pgdyno.observers.environment import host_facts
from pgdyno.servers.binaries import choose, find_installations
from pgdyno.servers.orphans import state_folder
from pgdyno.servers.privileges import server_user
from pgdyno.servers.readable import readable_by
from pgdyno.servers.remote import parse_dsn, take_password
from pgdyno.servers.settings import known_settings
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import ResolvedWorkload, Workload

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadExperiment:
    """An experiment as its file means it, checked, with what it will take.

    `workloads` and `resolved` hold each variant's workload by the variant's name. `noise` is what
    an earlier A/A comparison on this machine found for the first response; None: there was none.
    """

    experiment: Experiment
    workloads: Mapping[str, Workload]
    resolved: Mapping[str, ResolvedWorkload]
    plan: ExperimentPlan
    noise: KeptNoise | None


def file_argument(command: F) -> F:
    """The argument FILE."""
    return click.argument("file", type=click.Path(dir_okay=False, path_type=Path))(command)


def read_experiment(path: Path, output: Path) -> ReadExperiment:
    """The experiment that a file describes. `output`: where earlier runs say how long trials take.

    Raises `Problems` with every line that is wrong, or that makes a design which cannot decide.
    Passwords move from `dsn` to this process's environment.
    """
    host = Local()
    facts = host_facts(host)
    definition = read_definition(path)
    found = design(definition, host_names(facts), partial(catalog.find_beside, folder=path.parent))
    noise = _noise(found, facts)
    occasion = Occasion(
        id=new_id(),
        name=definition.file.name or path.stem,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pgdyno_version=__version__,
        noise_known=noise is not None,
    )
    experiment, workloads = experiment_of(found, occasion)
    experiment = _without_secrets(experiment, path)
    resolved = check_experiment(experiment, workloads, host)
    return ReadExperiment(
        experiment=experiment,
        workloads=workloads,
        resolved=resolved,
        plan=_plan(definition, experiment, resolved, (host, output)),
        noise=noise,
    )


def _plan(
    definition: Definition,
    experiment: Experiment,
    resolved: Mapping[str, ResolvedWorkload],
    where: tuple[Host, Path],
) -> ExperimentPlan:
    """The plan; raises `Problems` for a design that cannot decide."""
    host, output = where
    grouping = Grouping(workloads=resolved, contexts=_contexts(experiment, host))
    stored = earlier_trials(output, experiment.variants)
    times = {
        each.name: trial_time(each, resolved[each.name].expected_bytes, stored[each.name])
        for each in experiment.variants
    }
    refused = refusals(experiment, grouping, times)
    definition.raise_problems([((key,), text) for key, text in refused])
    return plan_experiment(experiment, grouping, times)


def _noise(found: Design, facts: HostFacts) -> KeptNoise | None:
    """What an A/A comparison of what is judged first found on this machine."""
    if not found.responses:
        return None
    workload, metric = found.workloads[found.baseline].name, found.responses[0].metric
    return latest_noise(state_folder(), machine_of(facts), workload, metric)


def _contexts(experiment: Experiment, host: Host) -> dict[str, str]:
    """When a change of each setting counts, as the servers that are involved say.

    A server that cannot be asked says nothing: whether it can be used is told when it is started.
    """
    contexts: dict[str, str] = {}
    installations = find_installations(host)
    for pg in {each.system.pg for each in experiment.variants if each.system.dsn is None}:
        try:
            user = server_user()
            installation = readable_by(choose(pg, installations, host), user, host)
            known = known_settings(installation, host, user)
        except PgdynoError:
            continue
        contexts |= {name.lower(): setting.context for name, setting in known.items()}
    return contexts


def _without_secrets(experiment: Experiment, path: Path) -> Experiment:
    """The experiment fit to be stored. One process has one PGPASSWORD, so there is one password."""
    dsns = {variant.system.dsn for variant in experiment.variants if variant.system.dsn}
    if len({parse_dsn(dsn).get("password") for dsn in dsns} - {None}) > 1:
        raise InvalidInput(
            f"{path}: the dsn of the variants have different passwords",
            hint="put them into ~/.pgpass",
        )
    safe = {dsn: take_password(dsn) for dsn in sorted(dsns)}
    variants = tuple(
        variant
        if variant.system.dsn is None
        else variant.model_copy(
            update={"system": variant.system.model_copy(update={"dsn": safe[variant.system.dsn]})}
        )
        for variant in experiment.variants
    )
    return experiment.model_copy(update={"variants": variants})
