"""Client programs of another installation, where a server came without them.

Fetched servers have none. A newer `pg_basebackup`, `pg_dump` or `psql` understands an older server;
the other way round the first two refuse. Source: PostgreSQL's reference pages of these programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgdyno.errors import PgdynoError
from pgdyno.servers.binaries import Installation


def client_program(name: str, server: Installation, found: Sequence[Installation]) -> Path:
    """A client program for a server: its own, else that of the nearest version not older. Pure.

    Raises `PgdynoError` where there is none.
    """
    if name in server.client_programs:
        return server.bin_dir / name
    fitting = [
        one
        for one in found
        if one.problem is None and name in one.client_programs and _major(one) >= _major(server)
    ]
    if not fitting:
        raise PgdynoError(
            f"no {name} on this machine is as new as the server, postgresql {server.version}",
            hint=f"install the client programs of postgresql {server.major} or newer",
        )
    # The wheel's may lie where a server's account cannot read them.
    return min(fitting, key=lambda one: (_major(one), one.origin == "wheel")).bin_dir / name


def _major(one: Installation) -> float:
    return float(one.major)
