"""A connection that asks the server's questions by name and notices its version by itself.

Used by the observers and for facts before and after a measurement. It reads only, gives up on a
statement after five seconds, and shows up in pg_stat_activity as `pgdyno observer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from pgdyno.errors import PgdynoError
from pgdyno.observers.base import Row
from pgdyno.queries import query_for

APPLICATION_NAME = "pgdyno observer"
_CONNECT_DEADLINE_S = 5
_STATEMENT_DEADLINE_MS = 5000


class Session:
    """An open connection. Every failure to answer is a `PgdynoError`."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self.version_num: int = connection.info.server_version

    def ask(self, question: str) -> list[Row]:
        """Rows of the question's query for this server's version."""
        try:
            # The driver wants literal text; ours comes from the package's own files.
            sql = query_for(question, self.version_num).encode()
            return self._connection.execute(sql).fetchall()
        except (psycopg.Error, LookupError) as error:
            raise PgdynoError(f"query '{question}' failed: {one_line(error)}") from error

    def ask_one(self, question: str) -> Row:
        """The one row of a question that always has one."""
        rows = self.ask(question)
        if len(rows) != 1:
            raise PgdynoError(f"query '{question}' returned {len(rows)} rows instead of one")
        return rows[0]

    @property
    def lost(self) -> bool:
        """Whether the connection is gone, so that a new one is needed."""
        return self._connection.closed or self._connection.broken

    def close(self) -> None:
        """Close the connection; nothing happens when it is gone."""
        self._connection.close()


def open_session(conninfo: str, password: str | None = None) -> Session:
    """Connect; `PgdynoError` when the server does not let us in within five seconds."""
    limits = f"-c statement_timeout={_STATEMENT_DEADLINE_MS} -c default_transaction_read_only=on"
    try:
        try:
            connection = _connect(conninfo, password, {"options": limits})
        except psycopg.OperationalError as error:
            # A pooler passes no options on, and may give each statement to another server process.
            if "startup parameter" not in str(error):
                raise
            connection = _connect(conninfo, password, {"prepare_threshold": None})
    except psycopg.Error as error:
        raise PgdynoError(f"cannot connect to observe the server: {one_line(error)}") from error
    return Session(connection)


def _connect(conninfo: str, password: str | None, extra: dict[str, Any]) -> psycopg.Connection[Row]:
    # A password of None would hide the one that PGPASSWORD or a password file holds.
    secret: dict[str, Any] = {} if password is None else {"password": password}
    return psycopg.connect(
        conninfo,
        autocommit=True,
        row_factory=dict_row,
        connect_timeout=_CONNECT_DEADLINE_S,
        application_name=APPLICATION_NAME,
        **secret,
        **extra,
    )


@contextmanager
def session(conninfo: str, password: str | None = None) -> Iterator[Session]:
    """A session for a few questions, closed at the end."""
    opened = open_session(conninfo, password)
    try:
        yield opened
    finally:
        opened.close()


def one_line(error: BaseException) -> str:
    """The first line of an error's text, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
