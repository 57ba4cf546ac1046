"""What stood on the server and below it, as the page lists it: relations, settings, storage.

Much of what is recorded interests nobody at first: TOAST tables with nothing in them, settings that
the server derived by itself. It is set apart here, so that the page can fold it away; nothing is
dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model import SettingValue, StorageFacts, TableSize
from pgdyno.reports.documents import TrialDocuments

OWN_SCHEMA = "pgdyno"
"""Where the lab keeps account of loaded data."""
_EMPTY_TOAST_BYTES = 65536
_SET_BY_INITDB = frozenset({"wal_segment_size", "data_checksums", "block_size", "wal_block_size"})
# Differ on any server that initdb made and that somebody reaches.
_OF_EVERY_SERVER = frozenset(
    {
        *("listen_addresses", "port", "unix_socket_directories", "unix_socket_permissions"),
        *("lc_messages", "lc_monetary", "lc_numeric", "lc_time", "TimeZone", "log_timezone"),
        *("DateStyle", "default_text_search_config", "dynamic_shared_memory_type"),
    }
)
_SHOWN_MAX = 40
_PLACELESS = {"folder": "", "free_bytes": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """A table or index before and after the measurement; bytes None where it was not there."""

    table: TableSize
    before: int | None
    after: int | None

    @property
    def growth(self) -> int | None:
        """Bytes it grew by."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Relations largest first; settings by name; storage with the folders that lie on it.

    `side_sizes` and `derived_settings` are what the page folds away.
    """

    sizes: tuple[SizeRow, ...]
    side_sizes: tuple[SizeRow, ...]
    settings: tuple[SettingValue, ...]
    derived_settings: tuple[SettingValue, ...]
    storage: tuple[tuple[tuple[str, ...], StorageFacts], ...]


def inventory(documents: TrialDocuments) -> Inventory:
    """The inventory of a trial, empty where nothing was recorded."""
    sizes = _size_rows(documents)
    settings = documents.settings.non_default if documents.settings else ()
    return Inventory(
        sizes=tuple(row for row in sizes if not _aside(row.table)),
        side_sizes=tuple(row for row in sizes if _aside(row.table)),
        settings=tuple(one for one in settings if not _derived(one)),
        derived_settings=tuple(one for one in settings if _derived(one)),
        storage=_storage(documents),
    )


def _size_rows(documents: TrialDocuments) -> tuple[SizeRow, ...]:
    """Tables and indexes, largest first, those that came or went included."""
    if documents.sizes is None:
        return ()
    before = {(one.schema_name, one.name): one for one in documents.sizes.before}
    after = {(one.schema_name, one.name): one for one in documents.sizes.after}
    rows = []
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        table = new or old
        assert table is not None
        rows.append(
            SizeRow(
                table=table,
                before=old.bytes if old else None,
                after=new.bytes if new else None,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.table.bytes, row.table.name)))


def _aside(table: TableSize) -> bool:
    """Whether a relation is of no interest: our own books, or TOAST that is as good as empty."""
    toast = table.kind == "toast" or (table.table or "").startswith("pg_toast_")
    return table.schema_name == OWN_SCHEMA or (toast and table.bytes <= _EMPTY_TOAST_BYTES)


def _derived(setting: SettingValue) -> bool:
    """Whether nobody set it: the server derived it, or it names the server's own files."""
    return setting.source in {"default", "override"} and setting.name not in _SET_BY_INITDB


def _storage(documents: TrialDocuments) -> tuple[tuple[tuple[str, ...], StorageFacts], ...]:
    """Storage with the folders that lie on it: the same facts are told once."""
    found: list[tuple[StorageFacts, list[str]]] = []
    for one in documents.environment.storage if documents.environment else ():
        # Free space is read a moment apart; it is the same storage all the same.
        same = one.model_copy(update=_PLACELESS)
        known = [names for each, names in found if each.model_copy(update=_PLACELESS) == same]
        if known:
            known[0].append(one.folder)
        else:
            found.append((one, [one.folder]))
    return tuple((tuple(folders), storage) for storage, folders in found)


def settings_words(documents: TrialDocuments) -> str | None:
    """Settings that differ from what the server was compiled with, without those of every server.

    None where there are none. Beyond `_SHOWN_MAX` their number; `settings.json` has them all.
    """
    chosen = [one for one in inventory(documents).settings if one.name not in _OF_EVERY_SERVER]
    words = [f"{one.name} = {one.value or repr('')}" for one in chosen[:_SHOWN_MAX]]
    if len(chosen) > _SHOWN_MAX:
        words.append(f"and {len(chosen) - _SHOWN_MAX} more in settings.json")
    return ", ".join(words) or None
