"""The document that our own pgbench writes with `--json`, as `docs/pgbench.md` describes it.

Times ending in `_us` are microseconds; what is not known is None.

>>> name_order("p99.9") > name_order("p99")
True
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pgdyno.errors import InvalidInput

VERSION = 1
_HINT = "pgdyno pgbench --json=FILE writes such a document"


class _Part(BaseModel):
    """Frozen; a name that a later release adds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Times(_Part):
    """Times of committed transactions; `percentiles_us` by name: `p50`, `p99.9`."""

    mean_us: float
    stddev_us: float
    min_us: float
    max_us: float
    percentiles_us: dict[str, float] = {}


class Outcome(_Part):
    """What became of transactions."""

    committed: int
    tps: float | None
    serialization_failures: int
    deadlock_failures: int
    other_failures: int
    skipped: int
    retried: int
    retries: int
    late: int
    latency: Times | None
    lag: Times | None

    @property
    def failed(self) -> int:
        """Transactions that did not commit."""
        return self.serialization_failures + self.deadlock_failures + self.other_failures


class Command(_Part):
    """One command of a script."""

    text: str
    mean_us: float
    failures: int
    retries: int


class Script(Outcome):
    """One script and its share of the run."""

    description: str
    weight: int
    commands: tuple[Command, ...]


class Interval(_Part):
    """What ended in one interval; `end_s` counts from the start of the measurement."""

    end_s: float
    length_s: float
    end_unix_s: float
    committed: int
    failed: int
    skipped: int
    retries: int
    late: int
    latency_mean_us: float | None
    latency_max_us: float | None
    latency_percentiles_us: dict[str, float]


class Asked(_Part):
    """What was asked for, and how long it took."""

    scale: int
    partition_method: str | None
    partitions: int | None
    query_mode: str
    clients: int
    threads: int
    max_tries: int
    transactions_per_client: int | None
    duration_s: int | None
    rate_per_s: float | None
    latency_limit_us: float | None
    seed: int
    variables: dict[str, str]
    measured_s: float
    connection_us: float


class Document(_Part):
    """A run of our pgbench."""

    version: Literal[1]
    engine_version: str
    emulated: int
    ending: Literal["completed", "aborted", "interrupted"]
    run: Asked
    total: Outcome
    scripts: tuple[Script, ...]
    intervals: tuple[Interval, ...]


def name_order(name: str) -> float:
    """Where a percentile's name, `p99.9`, stands among others."""
    return float(name.removeprefix("p"))


def read_document(path: Path) -> Document:
    """The document in a file; `InvalidInput` where it is none, with all that is wrong about it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}", hint=_HINT) from error
    except ValueError as error:
        raise InvalidInput(f"{path} is no JSON document: {error}", hint=_HINT) from error
    version = found.get("version") if isinstance(found, dict) else None
    if not isinstance(found, dict) or "total" not in found:
        raise InvalidInput(f"{path} is no document of a pgbench run", hint=_HINT)
    if version != VERSION:
        raise InvalidInput(
            f"{path} is of version {version}, and only {VERSION} is known",
            hint="use the pgdyno that wrote it, or a newer one",
        )
    try:
        return Document.model_validate(found)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg'].lower()}" for each in error.errors()
        )
        raise InvalidInput(f"{path} is damaged: {wrong}", hint=_HINT) from error
