"""The durability class of a measurement, from facts, each with the sentence that is its evidence.

A throughput that writes is printed with its class (docs/glossary.md has the table), and compared
only with numbers of the same one. The class follows what was in force: `synchronous_commit` as a
session of the load saw it, the rest from the server and the storage below it. When a fact is
unknown the evidence says so; when two facts disagree the weaker class holds.

Where synchronous_commit can come from besides the session (tried on a PostgreSQL 15 server): the
SET clause of a function ends with the function, so it does not reach the commit that follows it;
SET LOCAL and set_config(…, true) in a function's body or in a script do reach it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pgdyno.model import Durability, DurabilityClass, StorageFacts
from pgdyno.units import format_counted

_MEMORY_FILESYSTEMS: Final = frozenset({"tmpfs", "ramfs"})
_ATOMIC_PAGE_FILESYSTEMS: Final = frozenset({"zfs"})
_NO_FLUSH_OPTIONS: Final = frozenset({"nobarrier", "barrier=0"})
_OFF: Final = frozenset({"off", "false", "no", "0"})
_BY_COMMIT: Final[dict[str, DurabilityClass]] = {
    "remote_write": "D3w",
    "on": "D3",
    "remote_apply": "D4",
}
# Read-only statements may take a few transaction ids on the side (autovacuum, ANALYZE).
_WRITING_SHARE: Final = 0.01
_COMMIT_SETTING: Final = re.compile(
    r"synchronous_commit(?:\s*=|\s+to\b|'\s*,)\s*'?(\w+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTable:
    """A table and the rows that the measurement inserted, updated and deleted in it."""

    name: str
    unlogged: bool
    rows_changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the measurement wrote. `transaction_ids`: those given out by the whole server."""

    tables: tuple[WrittenTable, ...]
    transaction_ids: int
    transactions: int

    @property
    def rows_changed(self) -> int:
        """Rows changed in all user tables."""
        return sum(table.rows_changed for table in self.tables)

    @property
    def anything(self) -> bool:
        """Whether it wrote; what changed no row of a table shows by transaction ids."""
        return self.rows_changed > 0 or (
            self.transaction_ids > max(10, _WRITING_SHARE * self.transactions)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOverride:
    """A place besides the server's configuration that sets synchronous_commit.

    `clause`: a function's SET clause; `body`: SET LOCAL or set_config in a function or script;
    `session`: a role's or database's default. `value` None: it names the setting, nobody knows how.
    `function_name` is for judging whether the load calls it.
    """

    place: str
    reach: str
    value: str | None
    function_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A managed service whose own storage keeps commits; its promise and where that stands."""

    name: str
    promise: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DurabilityFacts:
    """All that the class depends on. Storage is empty for a server whose host cannot be read.

    `settings` has the server's fsync, full_page_writes, synchronous_commit,
    synchronous_standby_names and wal_writer_delay. `load_commit` is synchronous_commit in a
    session of the load.
    """

    settings: dict[str, str]
    load_commit: str | None
    written: Written | None
    storage: tuple[StorageFacts, ...] = ()
    overrides: tuple[CommitOverride, ...] = ()
    synchronous_standbys: int | None = None
    provider: Provider | None = None


def classify(facts: DurabilityFacts) -> Durability:
    """The class with its evidence; `none` when nothing was written."""
    written = facts.written
    if written is not None and not written.anything:
        return Durability(
            durability_class="none",
            because=(
                "no row of a user table changed, and the whole server gave out "
                f"{format_counted(written.transaction_ids, 'transaction id')}",
            ),
        )
    unlogged = tuple(
        table.name
        for table in (written.tables if written is not None else ())
        if table.unlogged and table.rows_changed
    )
    durability_class, because = _class_and_evidence(facts)
    return Durability(
        durability_class=durability_class,
        because=(*because, *_writing_evidence(written, unlogged)),
        unlogged_tables=unlogged,
    )


def commit_values_in(text: str) -> tuple[str, ...]:
    """Values that SQL text gives to synchronous_commit, in lower case and order of appearance.

    >>> commit_values_in("SET LOCAL synchronous_commit TO OFF; SET synchronous_commit = 'on'")
    ('off', 'on')
    """
    return tuple(value.lower() for value in _COMMIT_SETTING.findall(text))


def _class_and_evidence(facts: DurabilityFacts) -> tuple[DurabilityClass, tuple[str, ...]]:
    if facts.provider is not None:
        provider = facts.provider
        return "D?", (
            f"{provider.name} keeps commits in its own storage and promises: {provider.promise} "
            f"({provider.source})",
        )
    unsafe = tuple(_unsafe(facts))
    if unsafe:
        return "D0", unsafe
    commit, evidence = _effective_commit(facts)
    because = (*evidence, *_storage_evidence(facts))
    if commit in _OFF:
        delay = facts.settings.get("wal_writer_delay", "an unknown delay")
        return "D1", (
            *because,
            f"a crash costs the commits of about the last 3 × wal_writer_delay = 3 × {delay}",
        )
    return _waiting_class(commit, facts, because)


def _waiting_class(
    commit: str, facts: DurabilityFacts, because: tuple[str, ...]
) -> tuple[DurabilityClass, tuple[str, ...]]:
    """The class of commits that wait: for the local disk, or for a standby as well."""
    names = facts.settings.get("synchronous_standby_names", "")
    if not names.strip():
        return "D2", (*because, "no synchronous standby is named")
    if commit == "local":
        return "D2", (*because, f"'local' does not wait for synchronous_standby_names = '{names}'")
    standbys = facts.synchronous_standbys
    seen = "an unknown number of" if standbys is None else str(standbys)
    return _BY_COMMIT.get(commit, "D3"), (
        *because,
        f"synchronous_standby_names = '{names}', {seen} synchronous standbys connected",
    )


def _unsafe(facts: DurabilityFacts) -> Iterator[str]:
    """Sentences for all that makes a crash able to corrupt the data."""
    if facts.settings.get("fsync") in _OFF:
        yield "fsync = off: nothing is ever flushed to disk"
    for storage in facts.storage:
        if storage.filesystem in _MEMORY_FILESYSTEMS:
            yield f"{storage.folder} is on {storage.filesystem}: it is gone with the power"
    if facts.settings.get("full_page_writes") in _OFF:
        # Without a view of the storage nobody can say that it writes pages in one piece.
        torn = [s for s in facts.storage if s.filesystem not in _ATOMIC_PAGE_FILESYSTEMS]
        if torn or not facts.storage:
            where = ", ".join(sorted({s.filesystem for s in torn})) or "storage that cannot be seen"
            yield f"full_page_writes = off on {where}: a page half written stays half written"
    for storage in facts.storage:
        refusing = _NO_FLUSH_OPTIONS & set((storage.mount_options or "").split(","))
        if refusing and storage.write_cache != "write through":
            yield (
                f"{storage.folder} is mounted with {', '.join(sorted(refusing))}: the disk's "
                "volatile cache is not flushed"
            )


def _effective_commit(facts: DurabilityFacts) -> tuple[str, tuple[str, ...]]:
    """synchronous_commit as it held at the load's commits, and how that is known."""
    session = facts.load_commit
    if session is None:
        commit = facts.settings.get("synchronous_commit", "on")
        evidence = [f"synchronous_commit = {commit} on the server; the load's session was not read"]
    else:
        commit = session
        evidence = [f"synchronous_commit = {commit} in a session of the load"]
    for override in facts.overrides:
        if override.reach == "session":
            # The session's own value already shows whether it applied.
            if session is None and override.value in _OFF:
                commit = "off"
            evidence.append(f"{override.place} sets synchronous_commit = {override.value}")
        elif override.reach == "clause":
            evidence.append(
                f"{override.place} sets synchronous_commit = {override.value} for itself only: "
                "the commit comes after it"
            )
        elif override.value is None:
            evidence.append(f"{override.place} mentions synchronous_commit; its effect is unknown")
        else:
            if override.value in _OFF:
                commit = "off"
            evidence.append(
                f"{override.place} sets synchronous_commit = {override.value} in the transaction"
            )
    return commit, tuple(evidence)


def _storage_evidence(facts: DurabilityFacts) -> Iterator[str]:
    if facts.settings.get("fsync") is not None:
        yield f"fsync = {facts.settings['fsync']}"
    if not facts.storage:
        yield "the server's storage cannot be seen from here; it is taken to honour flushes"
    folders: dict[str, list[str]] = {}
    for storage in facts.storage:
        known = (
            storage.device,
            f"write cache {storage.write_cache}" if storage.write_cache else None,
        )
        details = ", ".join(word for word in known if word)
        place = f"{storage.filesystem} ({details})" if details else storage.filesystem
        folders.setdefault(place, []).append(storage.folder)
    for place, names in folders.items():
        yield f"{' and '.join(names)} on {place}"


def _writing_evidence(written: Written | None, unlogged: tuple[str, ...]) -> Iterator[str]:
    if written is None:
        yield "whether anything was written is unknown"
        return
    tables = sum(1 for table in written.tables if table.rows_changed)
    rows = f"{format_counted(written.rows_changed, 'row')} of {format_counted(tables, 'table')}"
    yield f"changed: {rows}; given out: {format_counted(written.transaction_ids, 'transaction id')}"
    if unlogged:
        yield f"unlogged, and empty after a crash: {', '.join(unlogged)}"
