"""Ceilings that were measured, kept by machine, engine and load: `calibration.json`.

The file lies in the state folder. A ceiling counts for exactly what it was measured with: the same
CPUs and kernel, the same engine (its file's digest), the same scripts, weights, protocol and
clients. Anything else is another ceiling.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from pgdyno.contract import Noun, Plan
from pgdyno.errors import PgdynoError
from pgdyno.model import HostFacts
from pgdyno.stats.ceiling import Ceiling

FILE_NAME = "calibration.json"
_DIGEST_LENGTH = 32


class Answer(Noun):
    """What the null server answers a query with."""

    rows: int = Field(default=1, ge=0)
    row_bytes: int = Field(default=4, ge=0, description="of the one value of each row")


class Generator(Noun):
    """Where the load comes from: the host and the engine's own file."""

    cpu_model: str | None
    cpus: int
    kernel: str
    engine_digest: str


class Calibration(Noun):
    """One entry of the file: what was measured, where, when, and what it is kept under."""

    key: str
    name: str = Field(description="of the workload")
    measured: str = Field(description="ISO 8601, with its offset")
    generator: Generator
    protocol: str
    answer: Answer
    ceiling: Ceiling


class _File(Noun):
    version: Literal[1] = 1
    calibrations: tuple[Calibration, ...] = ()


def generator_of(host: HostFacts, engine: Path) -> Generator:
    """The generator on a host, by the contents of the engine's file."""
    with engine.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:_DIGEST_LENGTH]
    return Generator(
        cpu_model=host.cpu_model, cpus=host.cpus, kernel=host.kernel, engine_digest=digest
    )


def key_of(plan: Plan, generator: Generator, answer: Answer) -> str:
    """Digest of everything a ceiling depends on.

    Length, seed, arrivals, where the server is and how failures are recognised make no difference.
    """
    load = {
        "protocol": plan.protocol,
        "clients": plan.clients,
        "threads": plan.threads,
        "cpus": plan.cpus,
        "reactor": plan.reactor,
        "variables": plan.variables,
        "transaction_types": [(each.weight, each.script) for each in plan.transaction_types],
    }
    whole = [load, generator.model_dump(), answer.model_dump()]
    text = json.dumps(whole, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def ceiling_of(
    plan: Plan, generator: Generator, folder: Path, *, answer: Answer | None = None
) -> Ceiling | None:
    """The ceiling that was measured for this load on this machine; None: never measured."""
    key = key_of(plan, generator, answer or Answer())
    found = (each for each in read(folder) if each.key == key)
    return next((each.ceiling for each in found), None)


def read(folder: Path) -> tuple[Calibration, ...]:
    """All that were kept. A file that cannot be read counts as none: it can be measured again."""
    try:
        return _File.model_validate_json((folder / FILE_NAME).read_bytes()).calibrations
    except (OSError, ValidationError):
        return ()


def keep(calibration: Calibration, folder: Path) -> Path:
    """Add one, in the place of an older one of its key; the file. Raises `PgdynoError`."""
    others = tuple(each for each in read(folder) if each.key != calibration.key)
    whole = _File(calibrations=(*others, calibration))
    path = folder / FILE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = path.with_suffix(".new")
        unfinished.write_text(whole.model_dump_json(indent=1) + "\n")
        unfinished.replace(path)
    except OSError as error:
        raise PgdynoError(
            f"cannot keep the calibration in '{folder}': {error.strerror}",
            hint="XDG_STATE_HOME moves the place",
        ) from error
    return path
