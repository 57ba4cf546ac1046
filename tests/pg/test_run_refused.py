"""Bad input: told at once, in one line with a hint, with the right exit code and nothing left."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.pg.commands import Place

pytestmark = pytest.mark.pg


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("tpbc",), 2, "did you mean 'tpcb'"),
        (("tpcb", "--scale", "0"), 2, "scale"),
        (("tpcb", "--scael", "5"), 2, "did you mean 'scale'"),
        (("tpcb", "--scale"), 2, "has no value"),
        (("noop", "--clients", "zero"), 2, "'zero' is not a whole number"),
        (("noop", "--clients", "0"), 2, "--clients must be above zero"),
        (("noop", "--time", "fast"), 2, "'fast' is not a duration"),
        (("noop", "--time", "5s", "--transactions-per-client", "5"), 2, "cannot be used together"),
        (("noop", "--mix", "nope=1"), 2, "nope"),
        (("noop", "--pg", "7.4"), 2, "7.4"),
        (("noop", "--set", "shared_bufers=1GB"), 2, "shared_buffers"),
        (("noop", "--set", "shared_buffers=-5"), 2, "shared_buffers"),
        (("noop", "--port", "5"), 2, "--port needs --tcp"),
        (("noop", "--dsn", "host=/nowhere", "--pg", "15"), 2, "--dsn"),
        (("noop", "--dsn", "host=/nowhere dbname=x"), 1, "/nowhere"),
        (("noop", "--clients", "500"), 2, "max_connections"),
        (("tpcb", "--scale", "20_000"), 2, "disk"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_refused(place: Place, words: tuple[str, ...], status: int, said: str) -> None:
    ended = place.pgdyno("run", *words)
    assert ended.status == status, ended.error
    assert said in ended.error
    assert "Traceback" not in ended.error
    assert "hint:" in ended.error or ended.error.count("\n") >= 1
    # What was refused before anything was touched leaves no run behind.
    kept = list(place.runs.glob("*")) if place.runs.exists() else []
    assert len(kept) == (1 if status == 1 else 0)


def test_a_syntax_error_shows_its_place(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "broken.sql"
    script.write_text("\\set a 1\n\\set b random(1, \nselect 1;\n")
    ended = place.pgdyno("run", str(script))
    assert ended.status == 2, ended.error
    assert "broken.sql:2" in ended.error and "^" in ended.error


def test_a_script_that_only_fails_is_ended_early(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "nowhere.sql"
    script.write_text("select * from no_such_table;\n")
    ended = place.pgdyno("run", str(script), "--warmup", "10s", "--time", "60s", deadline_s=40)
    assert ended.status == 1, ended.error
    assert 'relation "no_such_table" does not exist' in ended.output


def test_a_taken_port(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = place.pgdyno("run", "noop", "--tcp", "--port", str(port))
    assert ended.status in (1, 2) and str(port) in ended.error
    assert "hint:" in ended.error


def test_a_server_that_cannot_start_shows_its_log(place: Place) -> None:
    ended = place.pgdyno("run", "noop", "--set", "shared_buffers=900GB")
    assert ended.status in (1, 2), ended.error
    assert "memory" in ended.error or "shared_buffers" in ended.error
