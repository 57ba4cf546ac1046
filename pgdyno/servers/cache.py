"""Where servers lie that pgdyno brought to this machine itself: fetched or built.

`$XDG_CACHE_HOME/pgdyno`, by default `~/.cache/pgdyno`; root's in `/var/cache/pgdyno`, because the
account that root's servers run as cannot read root's home. A server appears there whole or not at
all: it is made in a work folder and then given its name. A work folder is locked for as long as
its maker lives; the next maker removes those whose lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pgdyno.errors import InvalidInput, PgdynoError

Kind = Literal["fetched", "built"]

FACTS_FILE = "pgdyno-server.json"
_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LOCK = ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One server in the cache. `names`: those a person gave it; `facts`: how it was made."""

    kind: Kind
    folder: Path
    names: tuple[str, ...]
    facts: Mapping[str, Any]

    @property
    def bin_dir(self) -> Path:
        """The folder of its programs."""
        return self.folder / "bin"


def cache_folder() -> Path:
    """Where everything of this person lies that can be made again."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if home.startswith("/"):
        return Path(home) / "pgdyno"
    return Path("/var/cache/pgdyno") if os.geteuid() == 0 else Path.home() / ".cache/pgdyno"


def made_as(bin_dir: Path | None) -> dict[str, str] | None:
    """How pgdyno fetched or built the server whose programs lie there; None: it did not."""
    try:
        facts = json.loads(((bin_dir or Path()).parent / FACTS_FILE).read_text())
    except (OSError, ValueError):
        return None
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in facts.items()
        if name not in ("format", "wish", "log")
    }


def check_name(name: str) -> str:
    """The name, where a server may be called so; raises `InvalidInput`."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"a server cannot be named '{name}'",
            hint="letters, digits, '.', '_' and '-', at most 63, beginning with a letter or digit",
        )
    return name


class Cache:
    """The servers of one cache folder: `fetched/VERSION`, `built/VERSION-DIGEST`, `names/NAME`."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_folder()

    def place(self, kind: Kind, name: str) -> Path:
        """Where a server of that name lies or will lie."""
        return self.root / kind / name

    def log(self, name: str) -> Path:
        """Where the making of a server is written to; its folder exists."""
        return self._open_folder(self.root / "logs") / f"{name}.log"

    def downloads(self) -> Path:
        """Where sources lie that were downloaded; it exists."""
        return self._open_folder(self.root / "sources")

    def kept(self) -> tuple[Kept, ...]:
        """Every whole server, by kind and name of its folder."""
        names = self.names()
        kinds: tuple[Kind, ...] = ("fetched", "built")
        found = []
        for kind in kinds:
            for file in sorted((self.root / kind).glob(f"*/{FACTS_FILE}")):
                try:
                    facts = json.loads(file.read_text())
                except (OSError, ValueError):
                    continue  # Half removed: not a server any more.
                own = tuple(sorted(name for name, to in names.items() if to == file.parent.name))
                found.append(Kept(kind=kind, folder=file.parent, names=own, facts=facts))
        return tuple(found)

    def names(self) -> dict[str, str]:
        """Name → folder name of the build that it stands for."""
        folder = self.root / "names"
        links = sorted(folder.iterdir()) if folder.is_dir() else []
        return {one.name: one.readlink().name for one in links if one.is_symlink()}

    def find(self, kind: Kind, name: str) -> Kept | None:
        """The server whose folder is called so, or so behind its version."""
        same = (one for one in self.kept() if one.kind == kind)
        return next((one for one in same if f"-{one.folder.name}".endswith(f"-{name}")), None)

    def give_name(self, name: str, build: Kept) -> Kept:
        """Let `name` stand for a build; raises `InvalidInput` where it stands for another."""
        known = self.names().get(check_name(name))
        if known not in (None, build.folder.name) and self.place("built", str(known)).is_dir():
            raise InvalidInput(
                f"the name '{name}' stands for the build {known} already",
                hint=f"take another --name, or remove that first: pgdyno servers remove {name}",
            )
        link = self._open_folder(self.root / "names") / name
        unfinished = link.with_name(f".new-{os.getpid()}")
        unfinished.symlink_to(Path("../built") / build.folder.name)
        unfinished.replace(link)
        return replace(build, names=tuple(sorted({*build.names, name})))

    @contextlib.contextmanager
    def making(self, name: str) -> Iterator[Path]:
        """A work folder, gone at the end. Another maker of the same name is waited for."""
        work = self._open_folder(self.root / "work")
        try:
            with (work / f"{name}{_LOCK}").open("w") as one_maker:
                fcntl.flock(one_maker, fcntl.LOCK_EX)
                _remove_abandoned(work)
                folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work))
                with (folder / _LOCK).open("w") as in_use:
                    fcntl.flock(in_use, fcntl.LOCK_EX)
                    try:
                        yield folder
                    finally:
                        shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            raise PgdynoError(
                f"cannot work in '{work}': {error.strerror or error}",
                hint="XDG_CACHE_HOME moves the place",
            ) from error

    def publish(self, made: Path, kind: Kind, name: str, facts: Mapping[str, Any]) -> Path:
        """Give a finished server its place; of two that were made at once the first one stays."""
        (made / FACTS_FILE).write_text(json.dumps({"format": _FORMAT, **facts}, indent=1) + "\n")
        open_for_all(made)
        target = self._open_folder(self.root / kind) / name
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            made.rename(target)
        return target

    def remove(self, kept: Kept) -> None:
        """Remove a server with its names and its log."""
        for name in kept.names:
            (self.root / "names" / name).unlink(missing_ok=True)
        self.log(kept.folder.name).unlink(missing_ok=True)
        # Without its facts it is no server any more, however far the rest comes.
        (kept.folder / FACTS_FILE).unlink(missing_ok=True)
        shutil.rmtree(kept.folder, ignore_errors=True)
        if kept.folder.exists():
            raise PgdynoError(f"cannot remove '{kept.folder}' whole")

    def _open_folder(self, folder: Path) -> Path:
        """Make a folder of the cache; root's are for all to read, whatever the umask says."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.geteuid() == 0:
                folder.chmod(0o755)
                self.root.chmod(0o755)
        except OSError as error:
            raise PgdynoError(
                f"cannot make '{folder}': {error.strerror}", hint="XDG_CACHE_HOME moves the place"
            ) from error
        return folder


def open_for_all(folder: Path) -> None:
    """Let everybody read all files and run those that somebody may run."""
    folder.chmod(0o755)
    for parent, folders, files in os.walk(folder):
        for name in folders:
            if not (Path(parent) / name).is_symlink():
                (Path(parent) / name).chmod(0o755)
        for name in files:
            file = Path(parent) / name
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o111 else 0o644)


def _remove_abandoned(work: Path) -> None:
    """Remove work folders whose makers are gone: the kernel let go of their locks."""
    for folder in work.iterdir():
        if not folder.is_dir():
            continue
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except OSError:
            # Between mkdtemp and its lock: whoever makes it holds another name's lock.
            continue
        shutil.rmtree(folder, ignore_errors=True)
