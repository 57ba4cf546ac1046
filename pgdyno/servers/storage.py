"""Folders of a private server beside its data folder: WAL, temporary files, tablespaces.

In each place that the person names lies one folder of ours, with a folder for each use in it:
`DIR/pgdyno-1a2b3c4d/wal`. It is removed with the server; that of kept data is named after them and
stays. Tables go to a tablespace where the person says so: `default_tablespace`, or their own SQL.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from pgdyno.errors import InvalidInput, PgdynoError, Problems
from pgdyno.hosts.base import Command, Host
from pgdyno.model import StorageChoice
from pgdyno.servers.base import Server
from pgdyno.servers.privileges import can

TEMPORARY_TABLESPACE: Final = "pgdyno_temporary"
_NAME: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_DEADLINE_S: Final = 20.0
_COPY_DEADLINE_S: Final = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFolders:
    """Where a cluster's files outside its data folder lie. `wal` None: inside.

    `tablespaces`: name → folder. `roots` are ours alone and hold the others.
    """

    roots: tuple[Path, ...] = ()
    wal: Path | None = None
    tablespaces: Mapping[str, Path] = field(default_factory=dict)

    @property
    def initdb_words(self) -> tuple[str, ...]:
        """What initdb has to be told; the option's name has changed in 10, its letter has not."""
        return () if self.wal is None else ("-X", str(self.wal))

    @property
    def all(self) -> tuple[Path, ...]:
        """Every folder that the cluster has links to."""
        return (*(() if self.wal is None else (self.wal,)), *self.tablespaces.values())

    @property
    def settings(self) -> dict[str, str]:
        """Settings without which the folders would not be used."""
        is_there = TEMPORARY_TABLESPACE in self.tablespaces
        return {"temp_tablespaces": TEMPORARY_TABLESPACE} if is_there else {}


def place_storage(choice: StorageChoice, name: str, kept: Path | None) -> StorageFolders:
    """Decide on folders; nothing is made. `kept`: the data folder that is to be kept.

    Raises `Problems` for names and places that cannot be.
    """
    problems = [
        f"tablespace '{one}' cannot be called that: small letters, digits and _, not beginning pg_"
        for one in choice.tablespaces
        if not _NAME.fullmatch(one) or one == TEMPORARY_TABLESPACE
    ]
    given = [choice.wal, choice.temporary, *choice.tablespaces.values()]
    places = [Path(one).expanduser().absolute() for one in given if one is not None]
    problems += [f"'{one}' is not a folder" for one in dict.fromkeys(places) if not one.is_dir()]
    if problems:
        raise Problems(problems, hint="the folder must exist; pgdyno makes one of its own in it")
    if kept is not None:
        name = "pgdyno-data-" + hashlib.sha256(str(kept).encode()).hexdigest()[:8]

    def ours(place: str, use: str) -> Path:
        return Path(place).expanduser().absolute() / name / use

    tablespaces = {
        one: ours(place, f"tablespace-{one}") for one, place in choice.tablespaces.items()
    }
    if choice.temporary is not None:
        tablespaces[TEMPORARY_TABLESPACE] = ours(choice.temporary, "temporary")
    return StorageFolders(
        roots=tuple(dict.fromkeys(place / name for place in places)),
        wal=None if choice.wal is None else ours(choice.wal, "wal"),
        tablespaces=tablespaces,
    )


def make_storage(folders: StorageFolders, host: Host, user: str | None) -> None:
    """Make the folders, mode 0700, for the account; `PgdynoError` where it cannot work there."""
    for folder in (*folders.roots, *folders.tablespaces.values()):
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise PgdynoError(f"cannot make the folder '{folder}': {error.strerror}") from error
        if user is not None:
            given = host.run(Command(words=["chown", user, str(folder)]), deadline_s=_DEADLINE_S)
            if given.status != 0:
                raise PgdynoError(f"cannot give '{folder}' to user {user}: {given.error.strip()}")
        if not can(host, user, "-w", folder) or not can(host, user, "-x", folder):
            raise PgdynoError(
                f"'{folder}' lies where " + (f"user {user}" if user else "we") + " cannot write",
                hint="the folders above it must be open to that account (mode o+x)",
            )


def check_storage(folders: StorageFolders, data: Path) -> None:
    """Raise `InvalidInput` where kept data have their WAL elsewhere than is asked for."""
    link = next((data / name for name in ("pg_wal", "pg_xlog") if (data / name).exists()), None)
    there = link.readlink() if link is not None and link.is_symlink() else None
    if there != folders.wal:
        raise InvalidInput(
            f"the data in '{data}' have their WAL in '{there or link}'",
            hint="give the --wal-folder they were made with, or another --data folder",
        )


def create_tablespaces(folders: StorageFolders, server: Server) -> None:
    """Make the tablespaces that the server does not have yet; `PgdynoError` where it refuses."""
    if not folders.tablespaces:
        return
    try:
        with psycopg.connect(
            server.conninfo, password=server.password, autocommit=True
        ) as connection:
            there = {row[0] for row in connection.execute("SELECT spcname FROM pg_tablespace")}
            for name, folder in folders.tablespaces.items():
                if name not in there:
                    words = sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(
                        sql.Identifier(name), sql.Literal(str(folder))
                    )
                    connection.execute(words)
    except psycopg.Error as error:
        raise PgdynoError(f"cannot make the tablespaces: {error}") from error


def links_of(data: Path) -> Iterator[Path]:
    """Links of a cluster to files outside its folder: WAL and tablespaces."""
    for name in ("pg_wal", "pg_xlog"):
        if (data / name).is_symlink():
            yield data / name
    tablespaces = data / "pg_tblspc"
    if tablespaces.is_dir():
        yield from (link for link in sorted(tablespaces.iterdir()) if link.is_symlink())


def keeps_files_elsewhere(data: Path, known: Collection[Path]) -> bool:
    """Whether a cluster has files elsewhere than in known folders; its copies would share them."""
    return any(link.readlink() not in known for link in links_of(data))


def copy_outside(data: Path, folders: StorageFolders, host: Host, user: str | None) -> None:
    """Give a copied cluster its own copies of what its links lead to, in its own folders."""
    ours = {folder.name: folder for folder in folders.tablespaces.values()}
    if folders.wal is not None:
        ours["wal"] = folders.wal
    for link in links_of(data):
        origin = link.readlink()
        target = ours[origin.name]
        for words in (
            ["cp", "--archive", "--reflink=auto", "--", f"{origin}/.", str(target)],
            ["ln", "-sfn", "--", str(target), str(link)],
            ["sync", "--file-system", str(target)],
        ):
            done = host.run(Command(words=words, user=user), deadline_s=_COPY_DEADLINE_S)
            if done.status != 0:
                raise PgdynoError(f"'{origin}' could not be copied: {done.error.strip()}")
