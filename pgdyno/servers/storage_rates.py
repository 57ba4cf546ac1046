"""How fast storage flushes and how long a reading of the clock takes, by PostgreSQL's own programs.

pg_test_fsync writes and flushes 8 kB in a file of its own with each wal_sync_method, a second each
and then some more (about 20 s in all); pg_test_timing reads the clock for a second. Both disturb
whatever else runs, so they run only when they are asked for, and before anything is measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.binaries import Installation, find_installations

_SECONDS: Final = 1
_DEADLINE_S: Final = 120.0
_FILE: Final = "pgdyno-flush-test"
_LINE: Final = re.compile(r"^\s+(\w+)\*?\s+([\d.]+) ops/sec", re.MULTILINE)
_LOOP: Final = re.compile(r"loop time including overhead:\s+([\d.]+) ns")


def parse_flushes(text: str) -> dict[str, float]:
    r"""Flushes a second of each method, from pg_test_fsync's first table: one write of 8 kB. Pure.

    >>> parse_flushes("using one 8kB write:\n   fdatasync   5000.5 ops/sec   200 usecs/op\n")
    {'fdatasync': 5000.5}
    """
    first = text.partition("using one 8kB write")[2].partition("using two")[0]
    return {method: float(rate) for method, rate in _LINE.findall(first)}


def parse_clock_ns(text: str) -> float | None:
    """Nanoseconds of a reading of the clock, from pg_test_timing; None where it says none. Pure.

    >>> parse_clock_ns("Per loop time including overhead: 30.40 ns")
    30.4
    """
    match = _LOOP.search(text)
    return None if match is None else float(match[1])


def flushes_per_s(host: Host, program: Path, folder: Path, user: str | None) -> dict[str, float]:
    """Flushes a second in a folder; `PgdynoError` where the program cannot write there."""
    file = folder / _FILE
    words = [str(program), "-f", str(file), "-s", str(_SECONDS)]
    command = Command(words=words, user=user, environment={"LC_ALL": "C"})
    try:
        done = host.run(command, deadline_s=_DEADLINE_S)
    finally:
        host.run(Command(words=["rm", "-f", "--", str(file)], user=user), deadline_s=10.0)
    found = parse_flushes(done.output)
    if done.status != 0 or not found:
        said = (done.error.strip().splitlines() or [f"status {done.status}"])[-1]
        raise PgdynoError(f"pg_test_fsync failed in '{folder}': {said}")
    return found


def clock_read_ns(host: Host, program: Path) -> float | None:
    """Nanoseconds that one reading of the clock takes; None where that was not said."""
    words = [str(program), "-d", str(_SECONDS)]
    command = Command(words=words, environment={"LC_ALL": "C"})
    return parse_clock_ns(host.run(command, deadline_s=_DEADLINE_S).output)


def program_of(
    name: str, host: Host, bin_dir: Path | None, found: Sequence[Installation] | None = None
) -> Path:
    """A program of this installation, or of any; `PgdynoError` where none has it."""
    folders = [] if bin_dir is None else [bin_dir]
    folders += [one.bin_dir for one in (find_installations(host) if found is None else found)]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise PgdynoError(
        f"no PostgreSQL here has the program {name}",
        hint="Debian has it in postgresql-15 and its like, others in postgresql-server or -contrib",
    )
