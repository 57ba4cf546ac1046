"""The end of what pgdyno brought to this machine: fetched and built servers.

Nothing that a process executes is removed.
"""

from __future__ import annotations

from pgdyno.errors import PgdynoError
from pgdyno.servers import processes
from pgdyno.servers.cache import Cache, Kept
from pgdyno.servers.fetching import postgres_version


def names_of(kept: Kept) -> tuple[str, ...]:
    """What a person may call it: of a build its names and its digest, else the version."""
    folder = kept.folder.name
    if kept.kind == "fetched":
        return (postgres_version(folder),)
    return (*kept.names, folder.rpartition("-")[2])


def find(cache: Cache, name: str) -> Kept | None:
    """The server that is called so; `build:` before it, as --pg writes it, is no part of it."""
    wanted = name.removeprefix("build:")
    for kept in cache.kept():
        if wanted in (*names_of(kept), kept.folder.name):
            return kept
    return None


def remove(cache: Cache, kept: Kept) -> None:
    """Remove a server from the cache; raises `PgdynoError` where it runs."""
    running = processes.executing_below(kept.folder)
    if running:
        raise PgdynoError(
            f"'{kept.folder}' is in use by process {running[0]}", hint="stop that server first"
        )
    cache.remove(kept)
