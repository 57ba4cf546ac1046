"""From what `--pg` says to an installation: found on this machine, else fetched or built now.

Nothing is fetched but a version that is named and not there, and nothing is built but a revision
that is named and was not built before; each is told before it begins.
"""

from __future__ import annotations

from collections.abc import Callable

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.servers.binaries import Installation, choose, find_installations, of_cache
from pgdyno.servers.build_options import BuildOptions
from pgdyno.servers.building import build
from pgdyno.servers.cache import Cache
from pgdyno.servers.fetching import fetch, is_version

_GIT_PREFIX = "git:"


def obtain(pg: str | None, host: Host, notice: Callable[[str], None]) -> Installation:
    """The installation asked for, made available where that is possible.

    `pg`: as `choose` takes it, or `git:REF` as `source_of` does, built with PostgreSQL's own
    defaults. Raises `InvalidInput` for what cannot be meant, `PgdynoError` for
    what cannot be had.
    """
    if pg is not None and pg.startswith(_GIT_PREFIX):
        return of_cache(host, build(pg, BuildOptions(), host, cache=Cache(), notice=notice))
    found = find_installations(host)
    try:
        return choose(pg, found, host)
    except PgdynoError as absent:
        if pg is None or not is_version(pg):
            raise
        return _fetched(pg, absent, host, notice)


def _fetched(
    version: str, absent: PgdynoError, host: Host, notice: Callable[[str], None]
) -> Installation:  # fmt: skip
    """A version that is not there; where it cannot be fetched either, both are told."""
    try:
        return of_cache(host, fetch(version, host, cache=Cache(), notice=notice))
    except PgdynoError as error:
        hint = "; ".join(one for one in (error.hint, absent.hint) if one)
        raise type(error)(f"{absent.message}, and {error.message}", hint=hint) from error
