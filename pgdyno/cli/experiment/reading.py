"""Reads an experiment file for the commands that take one: the design, and an experiment of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from pgdyno import __version__
from pgdyno.calibration.noise import latest_noise, machine_of
from pgdyno.errors import InvalidInput
from pgdyno.experiment.definition import read_definition
from pgdyno.experiment.design import Design, Occasion, design, experiment_of, host_names
from pgdyno.experiment.store import new_id
from pgdyno.hosts.local import Local
from pgdyno.model import Experiment, HostFacts
from pgdyno.observers.environment import host_facts
from pgdyno.servers.orphans import state_folder
from pgdyno.servers.remote import parse_dsn, take_password
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Workload

F = TypeVar("F", bound=Callable[..., Any])


def file_argument(command: F) -> F:
    """The argument FILE."""
    return click.argument("file", type=click.Path(dir_okay=False, path_type=Path))(command)


def read_file(path: Path) -> tuple[Experiment, dict[str, Workload]]:
    """The experiment that a file describes, with the workload of each variant by its name.

    Raises `Problems` with every line that is wrong. Passwords move from `dsn` to this process's
    environment.
    """
    definition = read_definition(path)
    facts = host_facts(Local())
    found = design(definition, host_names(facts), lambda choice: _find(choice, path.parent))
    occasion = Occasion(
        id=new_id(),
        name=definition.file.name or path.stem,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pgdyno_version=__version__,
        noise_known=_is_noise_known(found, facts),
    )
    experiment, workloads = experiment_of(found, occasion)
    return _without_secrets(experiment, path), workloads


def _find(choice: str, folder: Path) -> Workload:
    """A workload by its name, or a folder or script beside the file."""
    return catalog.find(choice if choice in catalog.names() else str(folder / choice))


def _is_noise_known(found: Design, facts: HostFacts) -> bool:
    """Whether an A/A comparison of what is judged first was ever made on this machine."""
    if not found.responses:
        return False
    workload = found.workloads[found.baseline].name
    machine, metric = machine_of(facts), found.responses[0].metric
    return latest_noise(state_folder(), machine, workload, metric) is not None


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
