"""Gathers what a durability class is derived from: settings, storage, and what was written.

    before = read_settled_writes(session)           # before the measurement
    …
    facts = gather(session, before, load, storage)  # after it, when the load's sessions have ended
    durability = classify(facts)                    # pgdyno.durability.classes, pure

Functions that set synchronous_commit count when a script names them; a function that only other
functions call is not found.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from pgdyno.contract import Plan, Summary
from pgdyno.durability.classes import (
    CommitOverride,
    DurabilityFacts,
    Provider,
    Written,
    WrittenTable,
    commit_values_in,
)
from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.model import StorageFacts
from pgdyno.observers.environment import storage_facts
from pgdyno.observers.session import Session

_SETTINGS: Final = (
    *("fsync", "full_page_writes", "synchronous_commit"),
    *("synchronous_standby_names", "wal_writer_delay"),
)
_SETTLED_AFTER_S: Final = 0.2
# Before 15 a collector process published counters, twice a second at most.
_SETTLED_AFTER_OF_COLLECTOR_S: Final = 1.2
_SETTLE_DEADLINE_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWrites:
    """A user table's counter of changed rows, since its statistics were last reset."""

    unlogged: bool
    rows_changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Counters of what was ever written: by table, and transaction ids of the whole server."""

    tables: dict[str, TableWrites]
    transaction_ids: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFacts:
    """What the load ran, and how. `committed` counts warm-up and measurement.

    `commit` is synchronous_commit in a session of the load; None where it was not read.
    """

    scripts: dict[str, str]
    committed: int
    commit: str | None

    @staticmethod
    def of(plan: Plan, summary: Summary | None) -> LoadFacts:
        """From what the engine was told and what it found."""
        return LoadFacts(
            scripts={kind.source: kind.script for kind in plan.transaction_types},
            committed=summary.measurement.committed + summary.warmup.committed if summary else 0,
            commit=summary.session_settings.get("synchronous_commit") if summary else None,
        )


def read_writes(session: Session) -> Writes:
    """The counters as they are now."""
    return Writes(
        tables={
            f"{row['schema_name']}.{row['name']}": TableWrites(
                unlogged=bool(row["unlogged"]), rows_changed=int(str(row["rows_changed"]))
            )
            for row in session.ask("table_writes")
        },
        transaction_ids=int(str(session.ask_one("transaction_ids")["transaction_ids"])),
    )


def read_settled_writes(session: Session) -> Writes:
    """The counters once they stand still, or after five seconds.

    A session hands its counters in when it ends, which is a moment after its client has gone.
    """
    deadline_s = time.monotonic() + _SETTLE_DEADLINE_S
    by_collector = session.version_num < 150000
    settled_after_s = _SETTLED_AFTER_OF_COLLECTOR_S if by_collector else _SETTLED_AFTER_S
    writes = read_writes(session)
    while time.monotonic() < deadline_s:
        time.sleep(settled_after_s)
        again = read_writes(session)
        if again.tables == writes.tables:
            return again
        writes = again
    return writes


def written_between(before: Writes, after: Writes, *, transactions: int) -> Written:
    """What was written between two readings; a new or reset table counts from zero."""
    tables = []
    for name, now in sorted(after.tables.items()):
        then = before.tables.get(name)
        known = then.rows_changed if then and then.rows_changed <= now.rows_changed else 0
        tables.append(
            WrittenTable(name=name, unlogged=now.unlogged, rows_changed=now.rows_changed - known)
        )
    return Written(
        tables=tuple(tables),
        transaction_ids=after.transaction_ids - before.transaction_ids,
        transactions=transactions,
    )


def gather(
    session: Session, before: Writes, load: LoadFacts, storage: Sequence[StorageFacts]
) -> DurabilityFacts:
    """All facts, read after the measurement; `storage` is empty when the host cannot be read."""
    settings = {str(row["name"]): str(row["shown"]) for row in session.ask("settings")}
    return DurabilityFacts(
        settings={name: settings[name] for name in _SETTINGS if name in settings},
        load_commit=load.commit,
        written=written_between(before, read_settled_writes(session), transactions=load.committed),
        storage=tuple(storage),
        overrides=(*_function_and_role_overrides(session, load), *_script_overrides(load)),
        synchronous_standbys=int(str(session.ask_one("synchronous_standbys")["standbys"])),
        provider=_provider(session, settings),
    )


def server_storage(session: Session, host: Host, data: Path) -> tuple[StorageFacts, ...]:
    """The storage below a server's data folder, its WAL and its tablespaces."""
    folders = [data, data / "pg_wal", data / "pg_xlog"]
    folders.extend(Path(str(row["folder"])) for row in session.ask("tablespaces"))
    found = []
    for folder in folders:
        try:
            found.append(storage_facts(host, folder))
        except PgdynoError:
            # WAL has one of two names, by version; only the data folder must be there.
            if folder == data:
                raise
    return tuple(found)


def _function_and_role_overrides(session: Session, load: LoadFacts) -> list[CommitOverride]:
    """Overrides that can reach the load: functions only where a script names them."""
    texts = "\n".join(load.scripts.values())
    found = []
    for row in session.ask("commit_overrides"):
        function_name = row["function_name"]
        if function_name is not None and not _names(texts, str(function_name)):
            continue
        place, reach = str(row["place"]), str(row["reach"])
        if reach == "body":
            found.extend(_overrides_in(place, str(row["body"])))
        else:
            found.append(CommitOverride(place=place, reach=reach, value=str(row["value"])))
    return found


def _names(text: str, function_name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(function_name)}(?!\w)", text) is not None


def _script_overrides(load: LoadFacts) -> list[CommitOverride]:
    return [
        override
        for source, script in load.scripts.items()
        if "synchronous_commit" in script.lower()
        for override in _overrides_in(f"script {source}", script)
    ]


def _overrides_in(place: str, text: str) -> list[CommitOverride]:
    """What a text does to synchronous_commit; value None where that cannot be read."""
    values: tuple[str | None, ...] = commit_values_in(text) or (None,)
    return [CommitOverride(place=place, reach="body", value=value) for value in values]


def _provider(session: Session, settings: dict[str, str]) -> Provider | None:
    """The managed service behind a server, by a setting or a function of its own."""
    functions = {str(row["name"]) for row in session.ask("function_names")}
    text = (files("pgdyno.observers") / "managed_services.toml").read_text(encoding="utf-8")
    for service in tomllib.loads(text)["service"]:
        prefix = service.get("setting_prefix")
        if (prefix and any(name.startswith(prefix) for name in settings)) or (
            service.get("function") in functions
        ):
            return Provider(
                name=service["name"], promise=service["promise"], source=service["source"]
            )
    return None
