"""The protocol of a host: a place where commands run and files lie. Five verbs.

Everything the lab does outside its own process goes through a `Host`, so that a remote one can
stand where the local one does. Commands are lists of words, never shell text. Every call has a
deadline.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. `user` None: as ourselves; `cpus` empty: anywhere.

    `cgroups` are folders of control groups that exist; it enters them before it is executed.
    `death_signal` is what the process gets when the lab dies, however it dies.
    """

    words: Sequence[str]
    user: str | None = None
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()
    cgroups: tuple[Path, ...] = ()
    input_text: str | None = None
    death_signal: signal.Signals = signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended. `status` is negative for a signal, as in `subprocess`."""

    status: int
    output: str
    error: str


class Process(Protocol):
    """A process under way. It dies with the lab, even when the lab is killed."""

    @property
    def pid(self) -> int:
        """Process number on its host."""
        ...

    @property
    def output(self) -> IO[bytes] | None:
        """Its standard output where that was asked for."""
        ...

    def status(self) -> int | None:
        """Exit status, or None while it runs."""
        ...

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal; nothing happens when it is gone."""
        ...

    def wait(self, *, deadline_s: float) -> int:
        """Exit status; raises `PgdynoError` when it still runs after `deadline_s`."""
        ...


class Host(Protocol):
    """A machine. `name` is what a placement says."""

    @property
    def name(self) -> str:
        """Name in placements and reports."""
        ...

    def run(self, command: Command, *, deadline_s: float) -> Completed:
        """Run to its end. A non-zero status is returned, a missed deadline is raised."""
        ...

    def start(self, command: Command, *, log: Path | None, pipe: bool) -> Process:
        """Start and return at once. Standard error goes to `log`; output to a pipe when asked."""
        ...

    def read_text(self, path: Path) -> str | None:
        """A file's text, or None where it is missing or unreadable."""
        ...

    def put(self, source: Path, target: Path) -> None:
        """Copy a file onto the host."""
        ...

    def get(self, source: Path, target: Path) -> None:
        """Copy a file from the host."""
        ...


class NoopProcess:
    """A process that has ended well before it began."""

    pid = 0
    output: IO[bytes] | None = None

    def status(self) -> int | None:
        """Always 0."""
        return 0

    def send(self, signal_number: signal.Signals) -> None:
        """Nobody is there to hear it."""

    def wait(self, *, deadline_s: float) -> int:
        """At once 0."""
        return 0


class Noop:
    """A machine on which every command succeeds, nothing happens and no file exists.

    >>> Noop().run(Command(words=["true"]), deadline_s=1.0)
    Completed(status=0, output='', error='')
    """

    name = "noop"

    def run(self, command: Command, *, deadline_s: float) -> Completed:
        """Success, without output."""
        return Completed(status=0, output="", error="")

    def start(self, command: Command, *, log: Path | None, pipe: bool) -> Process:
        """A process that has ended already."""
        return NoopProcess()

    def read_text(self, path: Path) -> str | None:
        """No file exists."""
        return None

    def put(self, source: Path, target: Path) -> None:
        """Copies nothing."""

    def get(self, source: Path, target: Path) -> None:
        """Copies nothing."""
