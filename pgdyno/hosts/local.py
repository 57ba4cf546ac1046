"""The machine itself as a host: processes of their own session that die with the lab.

Every process is forked by one thread that lives as long as the lab: Linux sends the death signal
when the *thread* that forked ends, so forking from a passing thread would end a server too early.
Each process leads its own session, so Ctrl-C at the terminal reaches the lab alone and the lab
decides what is stopped, and when.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pgdyno.errors import PgdynoError
from pgdyno.hosts import launch
from pgdyno.hosts.base import Command, Completed

_Popen = subprocess.Popen[bytes]
_LAUNCHER = (sys.executable, "-I", "-S", launch.__file__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """One process to start, with the files it is given."""

    words: tuple[str, ...]
    environment: dict[str, str]
    input_fd: int
    output_fd: int
    error_fd: int
    report_fd: int


class _Forker:
    """The one long-lived thread that starts processes."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[_Order, Future[_Popen]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, order: _Order) -> _Popen:
        """Fork on that thread; a caller interrupted meanwhile leaves no process behind."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._serve, name="forker", daemon=True)
                self._thread.start()
        started: Future[_Popen] = Future()
        self._orders.put((order, started))
        try:
            return started.result()
        except BaseException:
            started.add_done_callback(_kill_started)
            raise

    def _serve(self) -> None:
        while True:
            order, started = self._orders.get()
            try:
                process = subprocess.Popen(
                    order.words,
                    env=order.environment,
                    stdin=order.input_fd,
                    stdout=order.output_fd,
                    stderr=order.error_fd,
                    pass_fds=(order.report_fd,),
                    start_new_session=True,
                )
            except OSError as error:
                started.set_exception(error)
            else:
                started.set_result(process)
                del process
            del order, started  # The next order may be long in coming.


_forker = _Forker()


def _kill_started(started: Future[_Popen]) -> None:
    """End a process whose starter went away while it was being started."""
    if started.exception() is None:
        _kill_session(started.result())


def _kill_session(process: _Popen) -> None:
    """Kill a process and whatever it started in its own session, and wait for it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _abandon(process: _Popen) -> None:
    """Kill it with its children and close its pipes."""
    _kill_session(process)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _spawn(command: Command, *, input_fd: int, output_fd: int, error_fd: int) -> _Popen:
    """Start through the launcher; raises `PgdynoError` when the command could not be executed."""
    folder = command.folder
    if folder is None and command.user is not None:
        folder = Path("/")  # Another user may not be able to stand where we stand.
    spec = {
        "words": [str(word) for word in command.words],
        "user": command.user,
        "folder": None if folder is None else str(folder),
        # Names only: the values may be secret, and everybody sees arguments.
        "given_names": list(command.environment),
        "cpus": list(command.cpus),
        "cgroups": [str(folder) for folder in command.cgroups],
        "death_signal": int(command.death_signal),
        "parent_pid": os.getpid(),
    }
    report_read, report_write = os.pipe()
    try:
        order = _Order(
            words=(*_LAUNCHER, str(report_write), json.dumps(spec)),
            environment={**os.environ, **command.environment},
            input_fd=input_fd,
            output_fd=output_fd,
            error_fd=error_fd,
            report_fd=report_write,
        )
        process = _forker.start(order)
    except OSError as error:
        os.close(report_read)
        raise PgdynoError(f"cannot start a process: {error.strerror or error}") from error
    except BaseException:
        os.close(report_read)
        raise
    finally:
        os.close(report_write)
    try:
        with os.fdopen(report_read, "rb") as report:
            refusal = report.read().decode(errors="replace")
    except BaseException:
        _abandon(process)
        raise
    if refusal:
        _abandon(process)
        as_whom = f" as user {command.user}" if command.user else ""
        raise PgdynoError(f"cannot run '{command.words[0]}'{as_whom}: {refusal}")
    return process


class LocalProcess:
    """A process on this machine."""

    def __init__(self, process: _Popen, words: str, output: IO[bytes] | None) -> None:
        self._process = process
        self._words = words
        self._output = output

    @property
    def pid(self) -> int:
        """Process number; it also leads its own session."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes] | None:
        """Reading end of its standard output where a pipe was asked for."""
        return self._output

    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def send(self, signal_number: signal.Signals) -> None:
        """Signal this process alone, not its children."""
        self._process.send_signal(signal_number)

    def wait(self, *, deadline_s: float) -> int:
        """Wait for its end; raises `PgdynoError` when it still runs after `deadline_s`."""
        try:
            return self._process.wait(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise PgdynoError(
                f"'{self._words}' (pid {self.pid}) still runs after {deadline_s:g} s"
            ) from None


class Local:
    """The machine the lab runs on."""

    name = "local"

    def run(self, command: Command, *, deadline_s: float) -> Completed:
        """Run to its end; killed with its children when the deadline passes or we are stopped."""
        process = _spawn(
            command,
            input_fd=subprocess.DEVNULL if command.input_text is None else subprocess.PIPE,
            output_fd=subprocess.PIPE,
            error_fd=subprocess.PIPE,
        )
        given = None if command.input_text is None else command.input_text.encode()
        try:
            output, error = process.communicate(given, timeout=deadline_s)
        except subprocess.TimeoutExpired:
            _abandon(process)
            raise PgdynoError(
                f"'{command.words[0]}' did not end within {deadline_s:g} s and was killed"
            ) from None
        except BaseException:
            _abandon(process)
            raise
        return Completed(
            status=process.returncode,
            output=output.decode(errors="replace"),
            error=error.decode(errors="replace"),
        )

    def start(self, command: Command, *, log: Path | None, pipe: bool) -> LocalProcess:
        """Start and return; without a pipe its output goes to `log` too. It gets no input."""
        if command.input_text is not None:
            raise ValueError("a started process gets no input")
        log_fd = subprocess.DEVNULL
        try:
            if log is not None:
                log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            process = _spawn(
                command,
                input_fd=subprocess.DEVNULL,
                output_fd=subprocess.PIPE if pipe else log_fd,
                error_fd=log_fd,
            )
        except OSError as error:
            raise PgdynoError(f"cannot write the log '{log}': {error.strerror}") from error
        finally:
            if log_fd >= 0:
                os.close(log_fd)
        return LocalProcess(process, command.words[0], process.stdout)

    def read_text(self, path: Path) -> str | None:
        """A file's text, or None where it is missing or unreadable."""
        try:
            return path.read_text(errors="replace")
        except OSError:
            return None

    def put(self, source: Path, target: Path) -> None:
        """Copy a file, with its mode and times."""
        _copy(source, target)

    def get(self, source: Path, target: Path) -> None:
        """Copy a file, with its mode and times."""
        _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    """Copy one file; raises `PgdynoError` naming both."""
    try:
        shutil.copy2(source, target)
    except OSError as error:
        raise PgdynoError(f"cannot copy '{source}' to '{target}': {error.strerror}") from error
