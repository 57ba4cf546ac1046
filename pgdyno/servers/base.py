"""A server as the rest of the lab sees it: where to connect, what it is, where its files are.

`provision(SystemChoice) → Server` in `servers/provision.py` makes one; it is a context manager, so
that whatever was started is stopped. `Server` itself is a frozen value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running PostgreSQL.

    `conninfo` carries no password; `password` reaches processes by environment only. `data` and
    `postmaster_pid` are None for a server that is not ours or not on this host.
    """

    conninfo: str
    password: str | None = field(default=None, repr=False)
    version_num: int
    version: str
    host_name: str
    private: bool
    bin_dir: Path | None = None
    data: Path | None = None
    postmaster_pid: int | None = None
    log: Path | None = None
    initdb_options: tuple[str, ...] = ()
