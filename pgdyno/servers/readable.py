"""Binaries that the server's account can run, also when they lie in folders closed to it.

A checkout under /root or a home of mode 0700 hides its `.venv` from the account a server runs as.
Then the installation is copied once to a cache that everybody can read, its layout kept: programs
find their libraries and their `share` folder relative to themselves. A copy whose original is gone
or has changed is removed when the next one is made.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers import processes
from pgdyno.servers.binaries import Installation
from pgdyno.servers.cache import open_for_all

_CACHE = Path("/var/cache/pgdyno/binaries")
_ORIGIN_FILE = "original.json"
_ASK_DEADLINE_S = 20.0
# Between the choice of a copy and the start of its server nothing shows that it is wanted.
_WANTED_S = 3600.0
_UNNEEDED = shutil.ignore_patterns("*.a", "include", "__pycache__", "*.pyc")


def readable_by(
    installation: Installation, user: str | None, host: Host, *, cache: Path = _CACHE
) -> Installation:
    """The same installation where `user` can run it: itself, or a copy in the cache.

    Raises `PgdynoError` when even the copy does not run.
    """
    if user is None or _runs(host, installation.bin_dir, user):
        return installation
    prefix = installation.bin_dir.parent
    if len(prefix.parts) < 3 or installation.bin_dir.name != "bin":
        raise PgdynoError(
            f"user {user} cannot run the PostgreSQL in '{installation.bin_dir}'",
            hint="make the folder readable for all, or choose another with --pg",
        )
    libraries = _libraries_beside(prefix)
    copied = cache / _key(prefix)
    if not copied.is_dir():
        prune_copies(cache)
        _copy(prefix, libraries, copied)
    with contextlib.suppress(OSError):
        os.utime(copied)
    bin_dir = copied / prefix.parent.name / prefix.name / "bin"
    if not _runs(host, bin_dir, user):
        raise PgdynoError(
            f"the PostgreSQL in '{prefix}' cannot be read by user {user}, and a copy of it in "
            f"'{copied}' does not run",
            hint="make the folder readable for all, or choose another with --pg",
        )
    return replace(installation, bin_dir=bin_dir)


def prune_copies(cache: Path = _CACHE) -> tuple[Path, ...]:
    """Remove copies that nothing will ask for again; returns their folders.

    A copy stays while its original is as it was, while a process executes it, and for an hour after
    it was chosen last.
    """
    outdated = [
        copy
        for copy in (sorted(cache.iterdir()) if cache.is_dir() else [])
        if copy.name != _key_of_original(copy)
        and time.time() - copy.stat().st_mtime > _WANTED_S
        and not processes.executing_below(copy)
    ]
    for copy in outdated:
        shutil.rmtree(copy, ignore_errors=True)
    return tuple(copy for copy in outdated if not copy.exists())


def _key_of_original(copy: Path) -> str | None:
    """What a copy of the original would be called now; None where there is no original."""
    try:
        return _key(Path(json.loads((copy / _ORIGIN_FILE).read_text())["prefix"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _libraries_beside(prefix: Path) -> Path | None:
    """Where a wheel keeps the libraries of the programs in `prefix`: `<package>.libs` beside it."""
    libraries = prefix.parent.with_name(prefix.parent.name + ".libs")
    return libraries if libraries.is_dir() else None


def _key(prefix: Path) -> str:
    """Name of the copy: changes with the place and with the server program."""
    facts = (prefix / "bin" / "postgres").stat()
    text = f"{prefix.resolve()}:{facts.st_size}:{facts.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _copy(prefix: Path, libraries: Path | None, target: Path) -> None:
    """Copy to a name nobody sees yet, then give it its name: half a copy is never used."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.parent.chmod(0o755)
        target.parent.parent.chmod(0o755)
        building = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
        try:
            place = building / prefix.parent.name / prefix.name
            shutil.copytree(prefix, place, symlinks=True, ignore=_UNNEEDED)
            if libraries is not None:
                shutil.copytree(libraries, building / libraries.name, symlinks=True)
            (building / _ORIGIN_FILE).write_text(json.dumps({"prefix": str(prefix)}) + "\n")
            open_for_all(building)
            with contextlib.suppress(FileExistsError):  # Somebody else was faster.
                building.rename(target)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except (OSError, shutil.Error) as error:
        raise PgdynoError(
            f"cannot copy the PostgreSQL in '{prefix}' to '{target}': {error}",
            hint="the server's account cannot read it where it is",
        ) from error


def _runs(host: Host, bin_dir: Path, user: str) -> bool:
    """Whether `user` can execute the server there."""
    command = Command(words=[str(bin_dir / "postgres"), "--version"], user=user)
    try:
        return host.run(command, deadline_s=_ASK_DEADLINE_S).status == 0
    except PgdynoError:
        return False
