"""Settings as they are stored, and which file answers a question for which version."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pgdyno.observers.base import Row
from pgdyno.observers.server_settings import HIDDEN, settings_from, with_unit, without_secrets
from pgdyno.queries import catalogue, query_for, served_versions

pytestmark = pytest.mark.unit


def row(name: str, setting: str | None, compiled_in: str | None, **others: str | None) -> Row:
    """A row of the question `settings`; shown as it is set unless told otherwise."""
    defaults: Row = {
        "name": name, "setting": setting, "unit": None, "compiled_in": compiled_in,
        "source": "configuration file", "shown": setting,
    }  # fmt: skip
    return {**defaults, **others}


def test_only_what_differs_and_is_not_our_own_session() -> None:
    settings = settings_from(
        [
            row("fsync", "on", "on", source="default"),
            row("shared_buffers", "32768", "16384", unit="8kB", shown="256MB"),
            row("application_name", "pgdyno observer", "", source="client"),
            row("data_directory", "/data", None, source="override"),
            row("transaction_read_only", "on", "off", source="override"),
            row("server_version", "18.4", "18.4", source="default"),
        ],
        180004,
    )
    assert [(one.name, one.value, one.default) for one in settings.non_default] == [
        ("shared_buffers", "256MB", "128MB"),
        ("data_directory", "/data", None),
    ]
    assert settings.server_version == "18.4"
    assert set(settings.all) == {"fsync", "shared_buffers", "data_directory", "server_version"}


def test_secrets_are_stored_nowhere() -> None:
    settings = settings_from(
        [
            row("primary_conninfo", "host=p user=r password=hush port=1", ""),
            row("archive_command", "push https://me:hush@store/ %p", ""),
            row("ext.api_token", "hush", ""),
            row("ssl_passphrase_command", "echo hush", ""),
            row("password_encryption", "scram-sha-256", "md5"),
        ],
        150000,
    )
    assert "hush" not in settings.model_dump_json()
    shown = {one.name: one.value for one in settings.non_default}
    assert shown["primary_conninfo"] == f"host=p user=r password={HIDDEN} port=1"
    assert shown["archive_command"] == f"push https://me:{HIDDEN}@store/ %p"
    assert shown["ext.api_token"] == shown["ssl_passphrase_command"] == HIDDEN
    assert shown["password_encryption"] == "scram-sha-256"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("host=a password = 'it''s' user=d", "host=a password = (hidden) user=d"),
        ("password='a\\'b' user=d", "password=(hidden) user=d"),
        ("host=a", "host=a"),
    ],
)
def test_no_form_of_a_password_is_kept(value: str, kept: str) -> None:
    assert without_secrets("primary_conninfo", value) == kept


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        ("16384", "8kB", "128MB"), ("1", "8kB", "8kB"), ("1024", "MB", "1GB"), ("80", "MB", "80MB"),
        ("200", "ms", "200ms"), ("300", "s", "5min"), ("1440", "min", "1d"), ("90", "s", "90s"),
        ("0", "kB", "0"), ("-1", "kB", "-1"), ("1073741824", "B", "1GB"), ("on", None, "on"),
    ],
)  # fmt: skip
def test_a_value_is_shown_in_the_largest_unit_that_divides_it(
    value: str, unit: str | None, shown: str
) -> None:
    assert with_unit(value, unit) == shown


@pytest.mark.parametrize("question", sorted(catalogue()))
def test_files_of_a_question_neither_overlap_nor_leave_a_gap(question: str) -> None:
    served = sorted((versions for versions, _ in catalogue()[question]), key=lambda one: one.start)
    for older, newer in pairwise(served):
        # 9.6 is followed by 10; before that, nothing is asked here.
        assert older.stop == newer.start or (older.stop, newer.start) == (90700, 100000)
    assert served[-1].stop > 1_000_000


def test_the_version_chooses_the_file() -> None:
    assert "pg_stat_checkpointer" not in query_for("bgwriter", 160014)
    assert "pg_stat_checkpointer" in query_for("bgwriter", 170000)
    assert "pg_xlog_location_diff" in query_for("wal", 90624)
    assert served_versions("14", None).start == 140000
    with pytest.raises(LookupError, match="no query 'wal' for server version 90500"):
        query_for("wal", 90500)
    with pytest.raises(LookupError, match="no query 'weather'"):
        query_for("weather", 180000)
