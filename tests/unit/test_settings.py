"""Refused settings in a person's words, and settings as lines of a configuration file."""

from __future__ import annotations

import pytest

from pgdyno.servers.settings import KnownSetting, explain, parse_description, render_settings

pytestmark = pytest.mark.unit

DESCRIPTION = (
    "fsync\tsighup\tWAL\tBOOLEAN\tFALSE\t\t\tForces synchronization.\t\n"
    "max_connections\tpostmaster\tConnections\tINTEGER\t0\t1\t262143\tSets the maximum.\t\n"
    "work_mem\tuser\tMemory\tINTEGER\t0\t64\t2147483647\tSets the maximum memory.\tLong.\n"
    "not a setting\n"
)
KNOWN = parse_description(DESCRIPTION)


def test_description_gives_names_types_and_limits() -> None:
    assert list(KNOWN) == ["fsync", "max_connections", "work_mem"]
    assert KNOWN["work_mem"] == KnownSetting(
        name="work_mem", type="INTEGER", lowest="64", highest="2147483647", context="user"
    )


@pytest.mark.parametrize(
    ("name", "value", "said", "told"),
    [
        (
            "max_conections",
            "9",
            '2026 [1] FATAL:  unrecognized configuration parameter "max_conections"',
            "setting 'max_conections' does not exist; did you mean 'max_connections'?",
        ),
        (
            "max_connections",
            "abc",
            'FATAL:  invalid value for parameter "max_connections": "abc"',
            "setting 'max_connections' cannot be 'abc': invalid value for parameter "
            '"max_connections": "abc"; allowed: a whole number from 1 to 262143, with a unit '
            "where the setting has one",
        ),
        (
            "work_mem",
            "1kB",
            'FATAL:  1 kB is outside the valid range for parameter "work_mem" (64 kB .. 9 kB)',
            "setting 'work_mem' cannot be '1kB': 1 kB is outside the valid range for parameter "
            '"work_mem" (64 kB .. 9 kB)',
        ),
        (
            "fsync",
            "maybe",
            'FATAL:  parameter "fsync" requires a Boolean value',
            "setting 'fsync' cannot be 'maybe': parameter \"fsync\" requires a Boolean value; "
            "allowed: on or off",
        ),
        (
            "wal_level",
            "x",
            'FATAL:  invalid value for parameter "wal_level": "x"\n'
            "HINT:  Available values: minimal, replica, logical.",
            "setting 'wal_level' cannot be 'x': invalid value for parameter \"wal_level\": \"x\"; "
            "Available values: minimal, replica, logical.",
        ),
    ],
)
def test_refusals_say_what_is_allowed(name: str, value: str, said: str, told: str) -> None:
    assert explain(name, value, said, KNOWN) == told


def test_a_configuration_file_gives_back_what_was_written() -> None:
    assert render_settings({"a": "it's", "b.c": r"\x", "d": ""}) == (
        "a = 'it''s'\nb.c = '\\\\x'\nd = ''\n"
    )
