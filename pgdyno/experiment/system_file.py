"""`--system FILE`: the system under test as TOML: server, standbys, pooler, who has which CPU.

    [server]
    pg = "15"
    cpus = "0"
    settings = { shared_buffers = "1GB" }

    [[standbys]]
    synchronous = true
    cpus = "1"

Its words are those of `pgdyno run`. Everything runs on this machine; folders that are not absolute
are beside the file. All that is wrong with a file is told at once, each with its line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from pgdyno.contract import Noun
from pgdyno.errors import InvalidInput, PgdynoError, Problems, nearest_hint
from pgdyno.experiment import levels
from pgdyno.experiment.factor_words import Names
from pgdyno.experiment.factors import with_level
from pgdyno.experiment.levels import Level, text_of
from pgdyno.experiment.toml_lines import KeyPath, key_lines
from pgdyno.experiment.toml_shape import line_of, not_toml, place_of, spelled, without
from pgdyno.model import Limits, PoolerChoice, StandbyChoice, StorageChoice, SystemChoice, Variant
from pgdyno.servers import replication
from pgdyno.servers.initdb_options import initdb_choice
from pgdyno.servers.poolers.settings_file import read_pooler_file
from pgdyno.servers.profiles import settings_from
from pgdyno.servers.settings_file import SettingsFile

HINT: Final = "docs/servers.md describes the file"


def _reads(parse: Callable[[Any], Any], *types: str) -> Any:
    """A field that is written as one of these types and read by one of our parsers."""

    def read(value: Any) -> Any:
        try:
            return parse(value)
        except InvalidInput as error:
            raise ValueError(error.message + (f"; {error.hint}" if error.hint else "")) from None

    return BeforeValidator(read), WithJsonSchema({"type": [*types]})


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidInput("must be a table of names and values")
    wrong = [name for name, each in value.items() if not isinstance(each, Level)]
    if wrong:
        raise InvalidInput(f"'{wrong[0]}' must be a text, a number, or true or false")
    return {name: text_of(each) for name, each in value.items()}


_Cpus = Annotated[tuple[int, ...], *_reads(levels.cpus, "string", "integer")]
_Texts = Annotated[dict[str, str], *_reads(_texts, "object")]
_CpuTime = Annotated[float | None, *_reads(levels.cpu_time, "number", "string")]
_Bytes = Annotated[int | None, *_reads(levels.size_bytes, "string", "integer")]
_Version = Annotated[str | None, *_reads(text_of, "string", "number")]


class _Placed(Noun):
    """What every process of the system may be given."""

    port: int | None = Field(default=None, ge=1, le=65535, description="with tcp; default: free")
    cpus: _Cpus = Field(default=(), description='the CPUs it may use: "0-3"; default: any')
    cpu_limit: _CpuTime = Field(default=None, description="CPU time at most: 0.5")
    memory_limit: _Bytes = Field(default=None, description='memory at most: "2GB"')
    settings: _Texts = Field(default={}, description="its own, in its own words")

    @property
    def limits(self) -> Limits:
        """Both limits as the model has them."""
        return Limits(cpu_share=self.cpu_limit, memory_bytes=self.memory_limit)


class ServerTable(_Placed):
    """`[server]`: the server that takes the writes."""

    pg: _Version = Field(default=None, description="as --pg; default: the newest")
    profile: str | None = Field(default=None, description="settings published under a name")
    settings_file: str | None = Field(default=None, description="settings as in postgresql.conf")
    initdb: _Texts = Field(default={}, description="checksums, wal_segment_size, locale …")
    data: str | None = Field(default=None, description="folder to keep; default: none is kept")
    wal_folder: str | None = None
    temporary_folder: str | None = None
    tablespaces: _Texts = Field(default={}, description="name → folder")
    storage_facts: bool = Field(default=False, description="flushes and the clock are measured")
    tcp: bool = Field(default=False, description="on loopback too, with a password; for all")


class StandbyTable(_Placed):
    """One of `[[standbys]]`; what is not said is as with the server."""

    name: str | None = Field(default=None, description="default: standby-1, standby-2 …")
    synchronous: bool = Field(default=False, description="commits wait for it")
    slot: bool = Field(default=False, description="the primary keeps its WAL in a slot")


class PoolerTable(_Placed):
    """`[pooler]`: what stands in front of the servers."""

    kind: Literal["pgpool", "pgbouncer", "haproxy"]
    mode: Literal["session", "transaction", "statement"] | None = None
    backends: list[str] = Field(default=[], description="roles of the servers it sends to")
    settings_file: str | None = Field(
        default=None, description="settings as in pgpool.conf or pgbouncer.ini"
    )


class EngineTable(Noun):
    """`[engine]`: the load generator."""

    cpus: _Cpus = Field(default=(), description="the CPUs it may use; default: any")


class SystemFile(Noun):
    """A system as a person writes it, in TOML."""

    server: ServerTable = ServerTable()
    standbys: list[StandbyTable] = Field(default=[], description="servers that stream from it")
    quorum: int | None = Field(
        default=None, ge=1, description="commits wait for any so many; default: all synchronous"
    )
    pooler: PoolerTable | None = None
    engine: EngineTable = EngineTable()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSystem:
    """What a file means. `notices`: a line for each setting that is left out."""

    system: SystemChoice
    engine_cpus: tuple[int, ...]
    notices: tuple[str, ...] = ()


def read_system_file(path: Path) -> WrittenSystem:
    """Read a file. Raises `Problems` with everything that is wrong with it, one line each."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        said = (error.strerror or "").lower() if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidInput(f"{path} cannot be read: {said}") from None
    except tomllib.TOMLDecodeError as error:
        raise Problems([not_toml(path, text, str(error))]) from None
    file, problems = _shaped(raw)
    try:
        found = _meant(file, path.parent)
        if not problems:  # What was taken out would be missed.
            problems += [((), line) for line in replication.problems_of(found.system)]
    except PgdynoError as error:
        problems += [(("server",), line) for line in error.message.splitlines()]
    if problems:
        lines = key_lines(text)
        told = sorted((line_of(lines, where), said) for where, said in problems)
        raise Problems([f"{path}:{line}: {said}" for line, said in told], hint=HINT)
    return found


def with_word(variant: Variant, name: str, level: Level, names: Names, *, folder: Path) -> Variant:
    """The variant with one word set, as `with_level`; `system` is a file, beside `folder`."""
    if name == "profile":
        return _with_profile(variant, text_of(level))
    if name != "system":
        return with_level(variant, name, level, names)
    found = read_system_file(folder / levels.text(level))
    load = variant.load.model_copy(update={"cpus": found.engine_cpus or variant.load.cpus})
    return variant.model_copy(update={"system": found.system, "load": load})


def _with_profile(variant: Variant, name: str) -> Variant:
    """The variant with a profile below the settings it has: single ones win, in any order."""
    settings = settings_from(name, None, variant.system.settings).settings
    system = variant.system.model_copy(update={"settings": settings})
    return variant.model_copy(update={"system": system})


def _shaped(raw: dict[str, Any]) -> tuple[SystemFile, list[tuple[KeyPath, str]]]:
    """The file without what is wrong, and what that is."""
    try:
        return SystemFile.model_validate(raw), []
    except ValidationError as error:
        wrong = [(place_of(each["loc"]), _told(each)) for each in error.errors()]
    problems = [(where, f"{spelled(where)}{said}") for where, said in wrong]
    raw = without(raw, [where for where, _ in wrong])
    try:
        return SystemFile.model_validate(raw), problems
    except ValidationError:
        return SystemFile(), problems


def _told(error: Any) -> str:
    """One of pydantic's errors in our words."""
    match error["type"]:
        case "extra_forbidden":
            tables: dict[str, type[Noun]] = {
                "server": ServerTable, "standbys": StandbyTable, "pooler": PoolerTable,
                "engine": EngineTable,
            }  # fmt: skip
            shape = tables.get(str(error["loc"][0]), SystemFile)
            known = SystemFile if len(error["loc"]) == 1 else shape
            return f"unknown key; {nearest_hint(str(error['loc'][-1]), known.model_fields)}"
        case "missing":
            return "missing"
        case _:
            said = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
            return said[:1].lower() + said[1:]


def _meant(file: SystemFile, folder: Path) -> WrittenSystem:
    server = file.server
    settings_file = None if server.settings_file is None else folder / server.settings_file
    settings = settings_from(server.profile, settings_file, server.settings)
    pooler, notices = _pooler(file.pooler, folder)
    system = SystemChoice(
        pg=server.pg,
        settings=settings.settings,
        initdb=initdb_choice(server.initdb),
        data=_beside(folder, server.data),
        storage=StorageChoice(
            wal=_beside(folder, server.wal_folder),
            temporary=_beside(folder, server.temporary_folder),
            tablespaces={
                name: str(_beside(folder, place)) for name, place in server.tablespaces.items()
            },
            measure=server.storage_facts,
        ),
        tcp=server.tcp,
        port=server.port,
        cpus=server.cpus,
        limits=server.limits,
        standbys=tuple(_standbys(file.standbys)),
        quorum=file.quorum,
        pooler=pooler,
    )
    return WrittenSystem(
        system=system, engine_cpus=file.engine.cpus, notices=(*settings.notices, *notices)
    )


def _standbys(tables: list[StandbyTable]) -> Iterator[StandbyChoice]:
    for number, table in enumerate(tables, start=1):
        yield StandbyChoice(
            name=table.name or f"standby-{number}",
            synchronous=table.synchronous,
            slot=table.slot,
            **_common(table),
        )


def _pooler(table: PoolerTable | None, folder: Path) -> tuple[PoolerChoice | None, tuple[str, ...]]:
    """The pooler, and a line for each setting of its own file that is left out."""
    if table is None:
        return None, ()
    read = SettingsFile(settings={})
    if table.settings_file is not None:
        read = read_pooler_file(table.kind, folder / table.settings_file)
    choice = PoolerChoice(
        kind=table.kind, mode=table.mode, backends=tuple(table.backends), **_common(table)
    )
    return choice.model_copy(update={"settings": read.settings | table.settings}), read.notices


def _common(table: _Placed) -> Mapping[str, Any]:
    return {
        "settings": table.settings,
        "port": table.port,
        "cpus": table.cpus,
        "limits": table.limits,
    }


def _beside(folder: Path, place: str | None) -> str | None:
    """A folder as written, or beside the file where it is not absolute."""
    return None if place is None else str((folder / Path(place).expanduser()).absolute())
