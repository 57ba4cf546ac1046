"""Runs statements on several connections at once, and cancels them all when one fails or on Ctrl-C.

Used for indexes and vacuum, where each statement occupies one core and the server can do several.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import psycopg

from pgdyno.errors import PgdynoError
from pgdyno.workloads.target import Target, connect, first_line

_POLL_S = 0.2
_CANCEL_DEADLINE_S = 5.0


def run_side_by_side(
    target: Target,
    statements: Sequence[str],
    connections: int,
    settings: Sequence[str],
    finished: Callable[[int], None],
) -> None:
    """Run each statement in autocommit on one of up to `connections` connections, in this order.

    `settings` are SET statements run first on each connection. `finished` hears how many statements
    are done. Raises `PgdynoError` with the statement that failed; the others are then cancelled.
    """
    crew = _Crew(target, settings)
    workers = max(1, min(connections, len(statements)))
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="statement") as pool:
        under_way = {pool.submit(crew.run, statement) for statement in statements}
        try:
            done = 0
            while under_way:
                ended, under_way = wait(under_way, timeout=_POLL_S, return_when=FIRST_EXCEPTION)
                for each in ended:
                    each.result()
                    done += 1
                finished(done)
        except BaseException:
            for each in under_way:
                each.cancel()
            crew.cancel()
            raise
        finally:
            crew.close()


class _Crew:
    """The connections, one a thread, made when first needed."""

    def __init__(self, target: Target, settings: Sequence[str]) -> None:
        self._target = target
        self._settings = settings
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: list[psycopg.Connection[Any]] = []
        self._ended = False

    def run(self, statement: str) -> None:
        try:
            connection = getattr(self._own, "connection", None) or self._opened()
            connection.execute(statement.encode())
        except psycopg.Error as error:
            words = " ".join(statement.split())
            shown = words if len(words) <= 80 else words[:79] + "…"
            raise PgdynoError(f"'{shown}' failed: {first_line(error)}") from error

    def _opened(self) -> psycopg.Connection[Any]:
        connection = connect(self._target)
        with self._lock:
            if self._ended:
                connection.close()
                raise PgdynoError("cancelled")
            self._all.append(connection)
        for setting in self._settings:
            connection.execute(setting.encode())
        self._own.connection = connection
        return connection

    def cancel(self) -> None:
        """Cancel whatever runs; statements that have not begun will not."""
        with self._lock:
            self._ended = True
            for connection in self._all:
                connection.cancel_safe(timeout=_CANCEL_DEADLINE_S)

    def close(self) -> None:
        """Close the connections; those still busy in a thread after a cancel end with it."""
        with self._lock:
            self._ended = True
            for connection in self._all:
                connection.close()
