"""The engine's null server as a process: a PostgreSQL that answers at once, or a bad one for tests.

    with null_server(NullServerChoice(), Local()) as server:
        psycopg.connect(server.conninfo)

It listens on a private socket folder (mode 0700) or on a free port of loopback, lets everybody in,
and ends with the context.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from pgdyno.calibration.store import Answer
from pgdyno.engine import find_engine
from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host, Process
from pgdyno.servers.base import Server

_START_DEADLINE_S = 10.0
_REPORT_DEADLINE_S = 10.0
_STOP_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NullServerChoice:
    """What kind of null server. `misbehave` as the engine's option; None: a good server.

    `spins`: its threads never sleep, so that no client pays for waking them; each takes a CPU.
    """

    tcp: bool = False
    threads: int = 1
    answer: Answer = field(default_factory=Answer)
    misbehave: str | None = None
    reactor: Literal["auto", "io_uring", "epoll"] = "auto"
    spins: bool = False
    cpus: tuple[int, ...] = ()


class NullServerReport(BaseModel):
    """What a null server has done so far, and what it cost."""

    connections_accepted: int
    connections_open: int
    statements: int
    ready_for_query: int
    received_bytes: int
    sent_bytes: int
    cpu_user_ns: int
    cpu_sys_ns: int
    max_rss_bytes: int

    @property
    def cpu_ns(self) -> int:
        """CPU time of all its threads."""
        return self.cpu_user_ns + self.cpu_sys_ns


class NullServer:
    """A running null server."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="null-server", daemon=True)
        self._reader.start()
        self.conninfo = ""

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def as_server(self, host: Host) -> Server:
        """As the rest of the lab sees a server."""
        return Server(
            conninfo=self.conninfo,
            version_num=150000,
            version="15.0 (pgdyno null server)",
            host_name=host.name,
            private=True,
        )

    def wait_until_listening(self) -> None:
        """Learn where it listens; raises `PgdynoError` when it does not."""
        told = self._next("listening", _START_DEADLINE_S)
        self.conninfo = told["conninfo"] + " user=pgdyno dbname=pgdyno sslmode=disable"

    def stop(self) -> None:
        """End the process and stop hearing it."""
        self._process.send(signal.SIGTERM)
        try:
            self._process.wait(deadline_s=_STOP_DEADLINE_S)
        except PgdynoError:
            self._process.send(signal.SIGKILL)
            self._process.wait(deadline_s=_STOP_DEADLINE_S)
        self._reader.join(_STOP_DEADLINE_S)

    def report(self) -> NullServerReport:
        """What it has done and cost until now."""
        self._process.send(signal.SIGUSR1)
        try:
            return NullServerReport.model_validate(self._next("report", _REPORT_DEADLINE_S))
        except ValidationError as error:
            raise PgdynoError(f"the null server's report is not one: {error}") from error

    def _read(self) -> None:
        output = self._process.output
        if output is not None:
            with output:
                for line in output:
                    self._lines.put(line)
        self._lines.put(None)

    def _next(self, event: str, deadline_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=deadline_s)
        except queue.Empty:
            raise PgdynoError(
                f"the null server did not say '{event}' within {deadline_s:g} s"
            ) from None
        if line is None:
            raise PgdynoError("the null server has ended")
        told: dict[str, Any] = json.loads(line)
        if told.get("event") != event:
            raise PgdynoError(f"the null server said '{told.get('event')}' instead of '{event}'")
        return told


@contextlib.contextmanager
def null_server(choice: NullServerChoice, host: Host) -> Iterator[NullServer]:
    """A null server for as long as the context lasts; raises `PgdynoError` when it cannot start."""
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-null-"))
    log = folder / "null-server.log"
    try:
        server = NullServer(host.start(_command(choice, folder), log=log, pipe=True))
        try:
            try:
                server.wait_until_listening()
            except PgdynoError as error:
                words = log.read_text(errors="replace").strip() if log.exists() else ""
                raise PgdynoError(words or error.message) from error
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(choice: NullServerChoice, folder: Path) -> Command:
    words = [str(find_engine()), "null-server", "--json"]
    words += ["--listen", "127.0.0.1:0" if choice.tcp else str(folder)]
    words += ["--threads", str(choice.threads)]
    words += [] if choice.reactor == "auto" else ["--reactor", choice.reactor]
    words += ["--spin"] if choice.spins else []
    words += ["--rows", str(choice.answer.rows), "--row-bytes", str(choice.answer.row_bytes)]
    if choice.misbehave is not None:
        words += ["--misbehave", choice.misbehave]
    return Command(words=words, cpus=choice.cpus, death_signal=signal.SIGTERM)
