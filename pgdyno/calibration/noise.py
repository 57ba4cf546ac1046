"""Noise floors that A/A experiments found, kept by machine, workload and metric: `noise.json`.

The file lies in the state folder. A machine is its CPUs, memory and kernel; a floor says how far
two identical variants can differ there, so it counts for nothing else. The newest of a kind counts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from pgdyno.contract import Noun
from pgdyno.errors import PgdynoError
from pgdyno.model import HostFacts
from pgdyno.stats import power

FILE_NAME = "noise.json"


class Machine(Noun):
    """What a noise floor belongs to."""

    cpu_model: str | None
    cpus: int
    memory_bytes: int
    kernel: str


class KeptNoise(Noun):
    """One entry: how far two identical variants differed, block by block."""

    machine: Machine
    workload: str
    metric: str
    measured: str = Field(description="ISO 8601, UTC")
    run: str = Field(description="id of the experiment")
    blocks: int = Field(ge=1)
    trial_s: float | None = Field(default=None, description="length of a measurement")
    sd_log: float = Field(ge=0, description="spread of a block's log ratio")
    floor: float | None = Field(description="relative; None: one block says nothing")

    @property
    def moment(self) -> datetime:
        """When it was measured."""
        return datetime.fromisoformat(self.measured).astimezone(UTC)

    def age_s(self, now: datetime) -> float:
        """Seconds since it was measured."""
        return (now - self.moment).total_seconds()

    def detectable_with(self, blocks: int, *, comparisons: int = 1) -> float:
        """The smallest relative difference that so many blocks find in 8 of 10 experiments."""
        return power.detectable(self.sd_log, blocks, comparisons=comparisons)


class _File(Noun):
    version: Literal[1] = 1
    floors: tuple[KeptNoise, ...] = ()


def machine_of(host: HostFacts) -> Machine:
    """The machine that a host is."""
    return Machine(
        cpu_model=host.cpu_model,
        cpus=host.cpus,
        memory_bytes=host.memory_bytes,
        kernel=host.kernel,
    )


def read_noise(folder: Path, machine: Machine) -> tuple[KeptNoise, ...]:
    """All floors of a machine. A file that cannot be read counts as none: measure again."""
    return tuple(each for each in _read(folder) if each.machine == machine)


def latest_noise(folder: Path, machine: Machine, workload: str, metric: str) -> KeptNoise | None:
    """The newest floor of this machine, workload and metric; None where there never was an A/A."""
    found = (
        each
        for each in read_noise(folder, machine)
        if each.workload == workload and each.metric == metric
    )
    return max(found, key=lambda each: each.moment, default=None)


def keep_noise(noise: KeptNoise, folder: Path) -> None:
    """Add one in the place of an older one of its kind; a newer one stays. Raises `PgdynoError`."""

    def kind(each: KeptNoise) -> tuple[Machine, str, str]:
        return each.machine, each.workload, each.metric

    known = _read(folder)
    if any(kind(each) == kind(noise) and each.moment > noise.moment for each in known):
        return
    others = tuple(each for each in known if kind(each) != kind(noise))
    path = folder / FILE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = path.with_suffix(".new")
        unfinished.write_text(_File(floors=(*others, noise)).model_dump_json(indent=1) + "\n")
        unfinished.replace(path)
    except OSError as error:
        raise PgdynoError(
            f"cannot keep the noise floor in '{folder}': {error.strerror}",
            hint="XDG_STATE_HOME moves the place",
        ) from error


def _read(folder: Path) -> tuple[KeptNoise, ...]:
    try:
        return _File.model_validate_json((folder / FILE_NAME).read_bytes()).floors
    except (OSError, ValidationError):
        return ()
