"""One turn of one contestant: what it is asked, how its process is run, what is read from it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.errors import PgdynoError
from pgdyno.workloads.definition import ResolvedWorkload

_SPARE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What every contestant of a cell does. `threads` 0: by the contestant's own rule.

    `logged_share` above 0: percentiles are wanted, so a contestant that can only log its times logs
    this share of them. `cpus`: where the contestant may run; empty: anywhere.
    """

    workload: ResolvedWorkload
    conninfo: str
    password: str | None
    clients: int
    threads: int
    warmup_s: int
    duration_s: int
    logged_share: float = 0.0
    cpus: tuple[int, ...] = ()

    @property
    def deadline_s(self) -> float:
        """After this a contestant has hung."""
        return self.warmup_s + self.duration_s + _SPARE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a contestant did in one turn.

    `cpu_us` is user and kernel time of its whole process over all its transactions, warm-up and
    connecting included: the same for everybody. `wall_s` is how long that process ran.
    `measurement_cpu_us` is what only ours can tell, its own account of the measurement alone.
    """

    throughput_per_s: float
    transactions: int
    failed: int
    cpu_s: float
    wall_s: float
    threads: int
    p99_us: float | None = None
    measurement_cpu_us: float | None = None

    @property
    def cpu_us(self) -> float:
        """CPU microseconds for one transaction."""
        return self.cpu_s * 1e6 / self.transactions

    @property
    def per_core_per_s(self) -> float:
        """Transactions in one second of the contestant's CPU time."""
        return self.transactions / self.cpu_s

    @property
    def cores(self) -> float:
        """CPUs it used on average: near 1 on one CPU of its own, it was the limit."""
        return self.cpu_s / self.wall_s


class Contestant(Protocol):
    """A load generator."""

    @property
    def name(self) -> str:
        """As shown."""
        ...

    def missing(self) -> str | None:
        """Why it cannot take part; None: it can."""
        ...

    def version(self) -> str:
        """As it says itself."""
        ...

    def can_do(self, workload: ResolvedWorkload) -> bool:
        """Whether it has this workload."""
        ...

    def turn(self, task: Task) -> Turn:
        """Do it once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended, how long it ran, and its CPU time with that of its own children."""

    output: str
    error: str
    cpu_s: float
    wall_s: float


def run(words: Sequence[str], environment: Mapping[str, str], folder: Path, task: Task) -> Ended:
    """Run a task's process to its end; raises `PgdynoError` when it fails or takes too long."""
    pinned = ["taskset", "-c", ",".join(map(str, task.cpus))] if task.cpus else []
    return run_words([*pinned, *words], environment, folder, task.deadline_s)


def run_words(
    words: Sequence[str], environment: Mapping[str, str], folder: Path, deadline_s: float
) -> Ended:
    """Run a process to its end; raises `PgdynoError` when it fails or takes too long."""
    began_s = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as error:
        process = subprocess.Popen(
            words,
            stdout=output,
            stderr=error,
            env={**os.environ, **environment},
            cwd=folder,
            start_new_session=True,
        )
        killer = threading.Timer(deadline_s, process.kill)
        killer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        error.seek(0)
        told = Ended(
            output=output.read().decode(errors="replace"),
            error=error.read().decode(errors="replace"),
            cpu_s=usage.ru_utime + usage.ru_stime,
            wall_s=time.monotonic() - began_s,
        )
    if process.returncode != 0:
        lines = (told.error.strip() or told.output.strip()).splitlines()
        raise PgdynoError(
            f"'{Path(words[0]).name}' ended with status {process.returncode}: "
            + " / ".join(lines[-3:])
        )
    return told
