"""Following a process that prints lines while it works, without being stuck in waiting for one."""

from __future__ import annotations

import queue
import threading

from pgdyno.hosts.base import Process

NOTHING_YET = b""


class Lines:
    """The lines of a process's standard output, read by a thread of their own.

    A wait always ends within its timeout, so that Ctrl-C and deadlines are heard in between.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    def take(self, timeout_s: float) -> bytes | None:
        """The next line; `NOTHING_YET` when none came in time; None when there will be no more."""
        try:
            return self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return NOTHING_YET

    def _read(self) -> None:
        if self._process.output is not None:
            with self._process.output as output:
                for line in output:
                    self._lines.put(line)
        self._lines.put(None)


def engine_words(text: str) -> str:
    r"""What an engine said on standard error, without its name and level before each line.

    >>> engine_words("pgdyno-engine: error: no server\nhint: start it\n")
    'no server\nhint: start it'
    """
    lines = [
        line.removeprefix("pgdyno-engine: ").removeprefix("error: ") for line in text.splitlines()
    ]
    return "\n".join(line for line in lines if line.strip())
