"""New settings for a server that runs: read again where that is enough, and whether it was."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import psycopg

from pgdyno.hosts.base import Host
from pgdyno.queries import query_for
from pgdyno.servers.base import Server
from pgdyno.servers.cluster import Cluster
from pgdyno.servers.postmaster import write_settings

_RELOAD_DEADLINE_S = 10.0
_POLL_S = 0.02


def apply_settings(
    cluster: Cluster, server: Server, settings: Mapping[str, str], host: Host
) -> bool:
    """Put these settings in force without a restart; False where some of them need one.

    Also False where the server does not read them: its next start then says what is wrong.
    """
    try:
        _, before = _state(server)
        write_settings(cluster, settings, host)
        with _connect(server) as connection:
            connection.execute("select pg_reload_conf()")
        end_s = time.monotonic() + _RELOAD_DEADLINE_S
        while time.monotonic() < end_s:
            # A new session has what the postmaster has; one that is there may be behind it.
            waiting, loaded = _state(server)
            if loaded != before:
                return waiting == 0
            time.sleep(_POLL_S)
    except psycopg.Error:
        return False
    return False


def _state(server: Server) -> tuple[int, object]:
    """Settings that wait for a restart, and when the configuration was read."""
    query = query_for("pending_restarts", server.version_num).encode()
    with _connect(server) as connection:
        row = connection.execute(query).fetchone()
    return (0, None) if row is None else (int(row[0]), row[1])


def _connect(server: Server) -> psycopg.Connection[Any]:
    return psycopg.connect(
        server.conninfo, password=server.password, autocommit=True, connect_timeout=5
    )
