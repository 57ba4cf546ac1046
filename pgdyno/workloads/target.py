"""The database that a workload is loaded into and checked in, and connections to it.

A plain value rather than a `Server`, since data do not care how their server was started.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import psycopg

APPLICATION_NAME = "pgdyno"
_CONNECT_DEADLINE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A database. `conninfo` has no password; `initdb_options` are part of a state's identity."""

    conninfo: str
    password: str | None = None
    initdb_options: tuple[str, ...] = ()


def connect(target: Target) -> psycopg.Connection[Any]:
    """A connection in autocommit mode; raises `psycopg.Error`. Closed at the end of a `with`."""
    extra: dict[str, Any] = {} if target.password is None else {"password": target.password}
    if "connect_timeout" not in psycopg.conninfo.conninfo_to_dict(target.conninfo):
        extra["connect_timeout"] = int(os.environ.get("PGCONNECT_TIMEOUT", _CONNECT_DEADLINE_S))
    return psycopg.connect(
        target.conninfo, autocommit=True, application_name=APPLICATION_NAME, **extra
    )


def first_line(error: Exception) -> str:
    """What an error says first."""
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
