"""The durability class by the glossary's table, each with its evidence."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.durability.classes import (
    CommitOverride,
    DurabilityFacts,
    Provider,
    Written,
    WrittenTable,
    classify,
    commit_values_in,
)
from pgdyno.model import Durability, StorageFacts
from pgdyno.observers.durability_facts import TableWrites, Writes, written_between

pytestmark = pytest.mark.unit

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "wal_writer_delay": "200ms",
}
EXT4 = StorageFacts(
    folder="/data", filesystem="ext4", device="/dev/vda", mount_options="rw,relatime",
    write_cache="write back",
)  # fmt: skip
WROTE = Written(
    tables=(WrittenTable(name="public.accounts", unlogged=False, rows_changed=500),),
    transaction_ids=500,
    transactions=500,
)


def judged(*, settings: dict[str, str] | None = None, **facts: Any) -> Durability:
    """Class of a load that writes to a logged table on ext4, changed as told."""
    given = {"load_commit": "on", "written": WROTE, "storage": (EXT4,), **facts}
    return classify(DurabilityFacts(settings={**SETTINGS, **(settings or {})}, **given))


def says(found: Durability, text: str) -> bool:
    return any(text in sentence for sentence in found.because)


def test_out_of_the_box_is_local() -> None:
    found = judged()
    assert found.label == "D2"
    assert found.because == (
        "synchronous_commit = on in a session of the load",
        "fsync = on",
        "/data on ext4 (/dev/vda, write cache write back)",
        "no synchronous standby is named",
        "changed: 500 rows of 1 table; given out: 500 transaction ids",
    )


@pytest.mark.parametrize(
    ("settings", "storage", "sentence"),
    [
        ({"fsync": "off"}, EXT4, "fsync = off"),
        ({"full_page_writes": "off"}, EXT4, "full_page_writes = off on ext4"),
        ({}, EXT4.model_copy(update={"filesystem": "tmpfs"}), "/data is on tmpfs"),
        ({}, EXT4.model_copy(update={"mount_options": "rw,nobarrier"}), "with nobarrier"),
    ],
)
def test_what_can_corrupt_data_is_unsafe(
    settings: dict[str, str], storage: StorageFacts, sentence: str
) -> None:
    found = judged(settings=settings, storage=(EXT4, storage), load_commit="remote_apply")
    assert found.label == "D0"
    assert says(found, sentence)


def test_everything_unsafe_is_told() -> None:
    found = judged(settings={"fsync": "off", "full_page_writes": "off"})
    assert sum("= off" in text for text in found.because) == 2


def test_storage_that_writes_pages_atomically_needs_no_full_page_writes() -> None:
    zfs = EXT4.model_copy(update={"filesystem": "zfs"})
    assert judged(settings={"full_page_writes": "off"}, storage=(zfs,)).label == "D2"


def test_full_page_writes_off_on_unseen_storage_is_unsafe() -> None:
    found = judged(settings={"full_page_writes": "off"}, storage=())
    assert found.label == "D0"
    assert says(found, "cannot be seen")


def test_no_barrier_with_a_cache_that_keeps_nothing_is_safe() -> None:
    through = EXT4.model_copy(
        update={"mount_options": "rw,barrier=0", "write_cache": "write through"}
    )
    assert judged(storage=(through,)).label == "D2"


def test_asynchronous_commit_is_delayed_and_says_how_much_is_lost() -> None:
    found = judged(load_commit="off")
    assert found.label == "D1"
    assert says(found, "3 × 200ms")


def test_the_load_session_counts_and_not_the_server() -> None:
    assert judged(settings={"synchronous_commit": "off"}, load_commit="on").label == "D2"
    assert judged(settings={"synchronous_commit": "on"}, load_commit="off").label == "D1"


def test_without_the_load_session_the_server_and_defaults_of_roles_count() -> None:
    found = judged(settings={"synchronous_commit": "off"}, load_commit=None)
    assert found.label == "D1"
    assert says(found, "the load's session was not read")
    role = CommitOverride(place="role app", reach="session", value="off")
    assert judged(load_commit=None, overrides=(role,)).label == "D1"
    assert judged(load_commit="on", overrides=(role,)).label == "D2"


@pytest.mark.parametrize(
    ("commit", "label"),
    [("on", "D3"), ("remote_write", "D3w"), ("remote_apply", "D4"), ("local", "D2"), ("off", "D1")],
)
def test_synchronous_standby(commit: str, label: str) -> None:
    names = {"synchronous_standby_names": "FIRST 1 (a)"}
    found = judged(settings=names, load_commit=commit, synchronous_standbys=1)
    assert found.label == label
    assert says(found, "FIRST 1 (a)") == (commit != "off")


@pytest.mark.parametrize("commit", ["on", "local", "remote_write", "remote_apply"])
def test_without_a_named_standby_all_that_wait_are_local(commit: str) -> None:
    assert judged(load_commit=commit, synchronous_standbys=0).label == "D2"


def test_set_local_in_a_body_reaches_the_commit_and_a_clause_does_not() -> None:
    body = CommitOverride(place="function f", reach="body", value="off")
    clause = CommitOverride(place="function f", reach="clause", value="off")
    assert judged(overrides=(body,)).label == "D1"
    assert judged(overrides=(clause,)).label == "D2"
    assert says(judged(overrides=(clause,)), "for itself only")


def test_the_weaker_of_two_facts_holds() -> None:
    stronger = CommitOverride(place="script a", reach="body", value="on")
    assert judged(load_commit="off", overrides=(stronger,)).label == "D1"


def test_an_override_that_cannot_be_read_is_told() -> None:
    unreadable = CommitOverride(place="function f", reach="body", value=None)
    found = judged(overrides=(unreadable,))
    assert found.label == "D2"
    assert says(found, "effect is unknown")


def test_a_provider_promises_and_nothing_is_derived() -> None:
    provider = Provider(name="Neon", promise="a quorum keeps it", source="https://example.org")
    found = judged(settings={"fsync": "off"}, provider=provider)
    assert found.label == "D?"
    assert says(found, "a quorum keeps it")


def test_reading_carries_no_class_whatever_the_settings() -> None:
    nothing = Written(tables=(), transaction_ids=3, transactions=100_000)
    assert judged(settings={"fsync": "off"}, written=nothing).label == "none"


def test_writing_that_changes_no_user_table_shows_by_transaction_ids() -> None:
    locked = Written(tables=(), transaction_ids=100_000, transactions=100_000)
    assert judged(written=locked).label == "D2"


def test_unlogged_tables_that_were_written_are_named() -> None:
    written = Written(
        tables=(
            WrittenTable(name="s.log", unlogged=True, rows_changed=9),
            WrittenTable(name="s.old", unlogged=True, rows_changed=0),
            WrittenTable(name="s.users", unlogged=False, rows_changed=9),
        ),
        transaction_ids=9,
        transactions=9,
    )
    found = judged(written=written, load_commit="off")
    assert (found.label, found.unlogged_tables) == ("D1 +unlogged", ("s.log",))


def test_unknown_writing_is_told() -> None:
    found = judged(written=None)
    assert found.label == "D2"
    assert says(found, "whether anything was written is unknown")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SET synchronous_commit = off", ("off",)),
        ("set local SYNCHRONOUS_COMMIT to 'Local';", ("local",)),
        ("SELECT set_config('synchronous_commit', 'off', true)", ("off",)),
        ("SHOW synchronous_commit; SELECT 1", ()),
        ("SHOW synchronous_commit", ()),
    ],
)
def test_values_given_in_sql(text: str, values: tuple[str, ...]) -> None:
    assert commit_values_in(text) == values


def test_what_was_written_between_two_readings() -> None:
    def table(rows: int) -> TableWrites:
        return TableWrites(unlogged=False, rows_changed=rows)

    before = Writes(tables={"a": table(10), "b": table(10), "gone": table(5)}, transaction_ids=100)
    after = Writes(tables={"a": table(15), "b": table(3), "new": table(7)}, transaction_ids=130)
    written = written_between(before, after, transactions=30)
    # b's statistics were reset in between: what is known was written since.
    assert [(one.name, one.rows_changed) for one in written.tables] == [
        ("a", 5),
        ("b", 3),
        ("new", 7),
    ]
    assert written.transaction_ids == 30
