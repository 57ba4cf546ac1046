"""A person's dsn: read, stripped of its password, and explained when it fails."""

from __future__ import annotations

import os

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.servers.remote import explain, parse_dsn, take_password, without_password

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "dsn",
    ["postgresql://me:hush@db:6432/bench", "user=me password=hush host=db port=6432 dbname=bench"],
)
def test_the_password_is_taken_out(dsn: str) -> None:
    assert parse_dsn(dsn)["password"] == "hush"
    stripped = without_password(dsn)
    assert "hush" not in stripped
    assert parse_dsn(stripped) == {"user": "me", "host": "db", "port": "6432", "dbname": "bench"}


@pytest.mark.parametrize(
    "dsn",
    ["nonsense", "postgresql://me:hush@[db/bench", "host='db", "postgresql://me:p@hush@db/bench"],
)
def test_a_dsn_that_cannot_be_read_is_told_without_its_secret(dsn: str) -> None:
    with pytest.raises(InvalidInput, match="the dsn cannot be read") as caught:
        parse_dsn(dsn)
    assert "hush" not in str(caught.value)
    assert "postgresql://me@db" in str(caught.value.hint)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(InvalidInput, match='invalid connection option "hots"'):
        parse_dsn("hots=db")


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("could not translate host name", "the host of db:1 is unknown"),
        ("Connection refused", "nothing listens on db:1"),
        ('FATAL:  password authentication failed for user "x"', "db:1 refused the password"),
        ("fe_sendauth: no password supplied", "db:1 wants a password"),
        ("FATAL:  sorry, too many clients already", "db:1 has no connection left"),
        ('FATAL:  no pg_hba.conf entry for host "::1"', "db:1 has no rule that lets us in"),
    ],
)
def test_causes(said: str, meaning: str) -> None:
    explained = explain(said, "db:1")
    assert explained is not None
    assert explained[0] == meaning


def test_what_is_not_known_is_not_guessed() -> None:
    assert explain("the moon is full", "db:1") is None


def test_a_password_moves_to_the_environment_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "old")
    assert take_password("host=db dbname=bench") == "host=db dbname=bench"
    assert os.environ["PGPASSWORD"] == "old"
    assert "hush" not in take_password("postgresql://me:hush@db/bench")
    assert os.environ["PGPASSWORD"] == "hush"


def test_a_secret_that_no_variable_carries_is_refused() -> None:
    with pytest.raises(InvalidInput, match="sslpassword") as caught:
        take_password("host=db sslpassword=hush")
    assert "hush" not in str(caught.value)
