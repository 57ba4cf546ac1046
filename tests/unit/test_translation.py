"""Old settings in the words of newer servers, each with a notice."""

from __future__ import annotations

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.servers.translation import comparable_locale, translate

pytestmark = pytest.mark.unit

HERE = frozenset({"C", "C.utf8", "en_US.utf8"})


@pytest.mark.parametrize(
    ("name", "value", "version_num", "expected"),
    [
        ("checkpoint_segments", "16", 90624, {"max_wal_size": "768MB"}),
        ("checkpoint_segments", "64", 180004, {"max_wal_size": "3072MB"}),
        ("wal_keep_segments", "32", 120022, {"wal_keep_segments": "32"}),
        ("wal_keep_segments", "32", 130000, {"wal_keep_size": "512MB"}),
        ("wal_keep_size", "512MB", 120022, {"wal_keep_segments": "32"}),
        ("wal_keep_size", "20", 90624, {"wal_keep_segments": "2"}),
        ("wal_level", "hot_standby", 150018, {"wal_level": "replica"}),
        ("WAL_LEVEL", "Archive", 150018, {"wal_level": "replica"}),
        ("wal_level", "minimal", 90624, {"wal_level": "minimal"}),
        ("wal_level", "minimal", 150018, {"wal_level": "minimal", "max_wal_senders": "0"}),
        ("force_parallel_mode", "on", 150018, {"force_parallel_mode": "on"}),
        ("force_parallel_mode", "on", 160000, {"debug_parallel_query": "on"}),
        ("default_with_oids", "off", 120000, {}),
        ("lc_messages", "en_US.UTF-8", 150018, {"lc_messages": "en_US.UTF-8"}),
        ("lc_messages", "de_DE.utf8", 150018, {}),
        ("lc_messages", "C", 150018, {"lc_messages": "C"}),
        ("fsync", "off", 150018, {"fsync": "off"}),
    ],
)
def test_a_setting(name: str, value: str, version_num: int, expected: dict[str, str]) -> None:
    found = translate({name: value}, version_num, HERE)
    assert found.settings == expected
    assert len(found.notices) == (expected != {name: value})


def test_the_new_name_wins_over_the_old_one() -> None:
    found = translate({"checkpoint_segments": "16", "max_wal_size": "4GB"}, 150018, HERE)
    assert found.settings == {"max_wal_size": "4GB"}
    assert found.notices == (
        "setting checkpoint_segments = '16' is dropped: max_wal_size is given as well",
    )


def test_wal_senders_are_the_persons_where_given() -> None:
    given = {"wal_level": "minimal", "max_wal_senders": "3"}
    assert translate(given, 150018, HERE).settings == given


def test_where_locales_are_not_listed_the_server_judges() -> None:
    given = {"lc_time": "xx_XX"}
    assert translate(given, 150018, None).settings == given


def test_an_old_number_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="it was a whole number"):
        translate({"checkpoint_segments": "many"}, 150018, HERE)


def test_notices_say_what_became_of_it() -> None:
    found = translate({"wal_level": "hot_standby", "checkpoint_segments": "16"}, 150018, HERE)
    assert found.notices == (
        "setting wal_level = 'hot_standby' is 'replica' here: one level since 9.6",
        "setting checkpoint_segments = '16' is max_wal_size = '768MB' here: the release notes of "
        "9.5 give 3 × checkpoint_segments × 16 MB",
    )


@pytest.mark.parametrize("name", ["de_DE.UTF-8", "de_DE.utf8", "de_DE.UTF8"])
def test_spellings_of_a_locale_are_one(name: str) -> None:
    assert comparable_locale(name) == "de_DE.utf8"
