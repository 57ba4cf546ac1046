"""Fills tables: hands a workload's sections to `pgdyno-engine load` and follows its progress.

The engine makes rows in parallel ranges faster than a server takes them; here only its plan is
written and its lines are read. Ctrl-C reaches it as SIGINT, whereupon it cancels its statements.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from pgdyno.contract import LoadPlan, LoadProgress
from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host, Process
from pgdyno.hosts.following import NOTHING_YET, Lines, engine_words
from pgdyno.workloads.target import Target

_POLL_S = 0.25
_END_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """The program that makes rows, where it runs, and over how many connections."""

    engine: Path
    host: Host
    connections: int


def fill(
    plan: LoadPlan, target: Target, loader: Loader, progress: Callable[[LoadProgress], None]
) -> None:
    """Load every section of `plan`; raises `PgdynoError` with the engine's own words."""
    if not any(section.rows for section in plan.sections):
        return
    with tempfile.TemporaryDirectory(prefix="pgdyno-load-") as folder:
        path, log = Path(folder) / "load.json", Path(folder) / "load.log"
        path.write_text(plan.model_dump_json(), encoding="utf-8")
        command = Command(
            words=[str(loader.engine), "load", str(path)],
            environment={"PGPASSWORD": target.password} if target.password else {},
        )
        process = loader.host.start(command, log=log, pipe=True)
        try:
            status = _follow(process, progress)
        except BaseException:
            _interrupt(process)
            raise
        if status != 0:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            raise PgdynoError(engine_words(said) or f"loading rows ended with status {status}")


def _follow(process: Process, progress: Callable[[LoadProgress], None]) -> int:
    """Pass progress on until the engine has ended; its status."""
    lines = Lines(process)
    while (line := lines.take(_POLL_S)) is not None:
        if line == NOTHING_YET:
            continue
        try:
            progress(LoadProgress.model_validate_json(line))
        except ValidationError:
            # A line of another kind is for people who run the engine by hand.
            continue
    return process.wait(deadline_s=_END_DEADLINE_S)


def _interrupt(process: Process) -> None:
    """Let the engine cancel its statements; end it for certain when it takes too long."""
    process.send(signal.SIGINT)
    end = time.monotonic() + _END_DEADLINE_S
    while process.status() is None and time.monotonic() < end:
        time.sleep(0.05)
    if process.status() is None:
        process.send(signal.SIGKILL)
        process.wait(deadline_s=_END_DEADLINE_S)
