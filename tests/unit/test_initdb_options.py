"""What is fixed when a cluster is made: words, options by version, and what cannot be."""

from __future__ import annotations

import pytest

from pgdyno.errors import Problems
from pgdyno.model import InitdbChoice
from pgdyno.servers.initdb_options import (
    DEFAULT_OPTIONS,
    check_initdb,
    initdb_choice,
    initdb_options,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("given", "version_num", "added"),
    [
        ({}, 90624, ()),
        ({"checksums": "on"}, 90624, ("--data-checksums",)),
        ({"checksums": "off"}, 170000, ()),
        ({"checksums": "off"}, 180000, ("--no-data-checksums",)),
        ({"wal_segment_size": "64MB"}, 110000, ("--wal-segsize=64",)),
        ({"wal_segment_size": "16"}, 90624, ()),
        ({"locale_provider": "builtin"}, 170000, ("--locale-provider=builtin",)),
        (
            {"locale-provider": "icu", "icu-locale": "en-US"},
            150018,
            ("--locale-provider=icu", "--icu-locale=en-US"),
        ),
    ],
)
def test_options(given: dict[str, str], version_num: int, added: tuple[str, ...]) -> None:
    assert initdb_options(initdb_choice(given), version_num) == (*DEFAULT_OPTIONS, *added)


def test_locale_and_encoding_replace_the_default() -> None:
    choice = initdb_choice({"locale": "en_US.utf8", "encoding": "LATIN1"})
    assert initdb_options(choice, 150018) == ("--encoding=LATIN1", "--locale=en_US.utf8")


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Problems) as raised:
        initdb_choice({"checksum": "on", "checksums": "maybe", "locale_provider": "mine"})
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [
        "initdb option 'checksum' is not known",
        "initdb option 'checksums'",
        "initdb option 'locale_provider' cannot be 'mine'",
    ]


@pytest.mark.parametrize(
    ("choice", "version_num", "told"),
    [
        (InitdbChoice(wal_segment_bytes=3 * 1024**2), 150018, "power of two"),
        (InitdbChoice(wal_segment_bytes=32 * 1024**2), 90624, "before PostgreSQL 11"),
        (InitdbChoice(locale_provider="icu", icu_locale="en"), 140000, "there since 15"),
        (InitdbChoice(locale_provider="builtin"), 160000, "there since 17"),
        (InitdbChoice(locale_provider="icu"), 150018, "needs an icu_locale"),
        (InitdbChoice(icu_locale="en"), 150018, "needs locale_provider=icu"),
    ],
)
def test_what_a_version_cannot_do(choice: InitdbChoice, version_num: int, told: str) -> None:
    with pytest.raises(Problems, match=told):
        initdb_options(choice, version_num)


def test_a_locale_that_is_not_installed_is_told_before_anything_is_made() -> None:
    here = frozenset({"C.utf8", "en_US.utf8"})
    for name in ("C", "C.UTF-8", "en_US.utf8"):
        check_initdb(InitdbChoice(locale=name), 150018, here)
    with pytest.raises(Problems, match="locale 'de_DE' is not installed"):
        check_initdb(InitdbChoice(locale="de_DE"), 150018, here)
    check_initdb(InitdbChoice(locale="de_DE"), 150018, None)
    check_initdb(InitdbChoice(locale="de", locale_provider="icu", icu_locale="de"), 150018, here)
