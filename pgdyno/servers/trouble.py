"""What a private server's log says when something is wrong: crashed, killed, would not start."""

from __future__ import annotations

import re
from pathlib import Path

from pgdyno.servers import processes
from pgdyno.servers.base import Server

_TAIL_BYTES = 64 * 1024
_SERIOUS = re.compile(r"\b(PANIC|FATAL|ERROR):\s")
_CRASH = re.compile(
    r"was terminated by signal|was terminated by exception|server process .* exited with exit code"
    r"|terminating any other active server processes|reinitializing|\bPANIC:\s"
)


def server_trouble(server: Server, *, from_byte: int = 0) -> str | None:
    """Whether a private server has died or crashed, and what its log says; None: it has not.

    `from_byte` skips what was in the log before. Of a server that is not ours nothing is known.
    """
    if server.postmaster_pid is None:
        return None
    gone = processes.identify(server.postmaster_pid) is None
    crashes, serious = read_log(server.log, from_byte=from_byte)
    if not gone and not crashes:
        return None
    what = f"the server (process {server.postmaster_pid}) " + (
        "is gone" if gone else "crashed and recovered"
    )
    said = list(dict.fromkeys([*crashes[-3:], *serious[-3:]]))
    return what + ("; its log: " + " · ".join(said) if said else "; its log does not say why")


def read_log(log: Path | None, *, from_byte: int = 0) -> tuple[list[str], list[str]]:
    """Lines that tell of a crash, and FATAL, PANIC and ERROR lines, of a log's last 64 kB."""
    lines = [one.strip() for one in _tail(log, from_byte).splitlines()]
    crashes = [one for one in lines if _CRASH.search(one)]
    # Many sessions that die of one cause say the same; it is told once, as said last.
    serious: dict[str, str] = {}
    for one in lines:
        if found := _SERIOUS.search(one):
            said = one[found.start() :]
            serious.pop(said, None)
            serious[said] = one
    return crashes, list(serious.values())


def last_lines(log: Path, *, count: int) -> tuple[str, ...]:
    """The last lines of a log, for the message of a server that did not start."""
    return tuple(_tail(log, 0).splitlines()[-count:])


def _tail(log: Path | None, from_byte: int) -> str:
    """The end of a log as text; empty where it cannot be read."""
    if log is None:
        return ""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(from_byte, size - _TAIL_BYTES, 0))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
