"""Which installation is chosen, and what is said when none fits."""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Noop
from pgdyno.hosts.local import Local
from pgdyno.servers.binaries import Installation, Origin, choose, parse_version

pytestmark = pytest.mark.unit


def installation(version: str, origin: Origin, problem: str | None = None) -> Installation:
    parsed = parse_version(f"postgres (PostgreSQL) {version}")
    assert parsed is not None
    return Installation(
        version=parsed[0],
        version_num=parsed[1],
        origin=origin,
        bin_dir=Path(f"/somewhere/{origin}/{version}/bin"),
        client_programs=("psql",),
        problem=problem,
    )


FOUND = (
    installation("18.4", "wheel"),
    installation("16.14", "wheel"),
    installation("15.18", "folder"),
    installation("15.2", "wheel"),
    installation("9.6.24", "folder"),
    installation("17.1", "folder", problem="cannot execute"),
)


@pytest.mark.parametrize(
    ("pg", "version"),
    [
        (None, "15.18"),
        ("18", "18.4"),
        ("15", "15.18"),
        ("15.2", "15.2"),
        ("16.14", "16.14"),
        ("9.6", "9.6.24"),
        ("9.6.24", "9.6.24"),
    ],
)
def test_choice_by_version(pg: str | None, version: str) -> None:
    assert choose(pg, FOUND, Noop()).version == version


def test_the_wheel_is_taken_unasked_only_where_the_machine_has_none() -> None:
    wheel = [one for one in FOUND if one.origin == "wheel"]
    assert choose(None, wheel, Noop()).label == "18.4 (wheel)"


def test_of_one_version_the_machines_own_is_taken() -> None:
    both = [installation("16.14", "wheel"), installation("16.14", "folder")]
    assert choose("16", both, Noop()).origin == "folder"


def built(name: str, version: str = "19.1") -> Installation:
    return replace(installation(version, "built"), names=(name, f"{version}-{name[::-1]}0123"))


def test_what_was_brought_along_or_built_is_not_taken_unasked() -> None:
    brought = [installation("18.6", "fetched"), built("idea")]
    assert choose(None, [*FOUND, *brought], Noop()).version == "15.18"
    assert choose("18", [*FOUND, *brought], Noop()).label == "18.6 (fetched)"
    assert choose(None, brought, Noop()).origin == "fetched"
    for pg in (None, "19"):
        with pytest.raises(PgdynoError):
            choose(pg, [built("idea")], Noop())


def test_a_build_is_chosen_by_its_name_or_the_beginning_of_its_digest() -> None:
    several = [*FOUND, built("idea"), built("ideas"), built("other")]
    assert choose("build:idea", several, Noop()).label == "19.1 (build:idea)"
    assert choose("build:reht", several, Noop()).names[0] == "other"
    with pytest.raises(InvalidInput, match="--pg build:ida is not built") as caught:
        choose("build:ida", several, Noop())
    assert caught.value.hint == "did you mean 'idea' or 'ideas'?"
    with pytest.raises(InvalidInput, match="build:idea is not built") as caught:
        choose("build:idea", FOUND, Noop())
    assert str(caught.value.hint).startswith("build it: pgdyno servers build SOURCE --name idea")


@pytest.mark.parametrize("pg", ["17", "1", "15.1", "9.5"])
def test_a_version_that_is_not_there_names_those_that_are(pg: str) -> None:
    with pytest.raises(InvalidInput, match=f"postgresql {pg} is not on this machine") as caught:
        choose(pg, FOUND, Noop())
    assert "18.4 (wheel)" in str(caught.value.hint)
    assert "17.1" not in str(caught.value.hint)


def test_nothing_found_says_how_to_get_one() -> None:
    for pg in (None, "18"):
        with pytest.raises(PgdynoError, match="no PostgreSQL is on this machine") as caught:
            choose(pg, (), Noop())
        assert "--dsn" in str(caught.value.hint)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A folder that looks like an installation of PostgreSQL 17.2."""
    bin_dir = tmp_path / "pg" / "bin"
    bin_dir.mkdir(parents=True)
    for name, answer in (
        ("postgres", "postgres (PostgreSQL) 17.2"),
        ("initdb", "initdb (PostgreSQL) 17.2"),
        ("pg_config", str(bin_dir)),
    ):
        (bin_dir / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
        (bin_dir / name).chmod(0o755)
    (tmp_path / "pg" / "share" / "extension").mkdir(parents=True)
    (tmp_path / "pg" / "share" / "extension" / "citext.control").touch()
    return tmp_path / "pg"


@pytest.mark.parametrize("below", [".", "bin", "bin/pg_config", "bin/postgres"])
def test_a_path_may_be_a_prefix_a_folder_of_programs_or_pg_config(prefix: Path, below: str) -> None:
    chosen = choose(str(prefix / below), FOUND, Local())
    assert chosen == Installation(
        version="17.2",
        version_num=170002,
        origin="given",
        bin_dir=prefix / "bin",
        client_programs=(),
        extensions=("citext",),
    )


def test_paths_that_hold_no_server_are_refused(prefix: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no PostgreSQL server in"):
        choose(str(tmp_path), FOUND, Local())
    with pytest.raises(InvalidInput, match="neither a version nor a path") as caught:
        choose(str(tmp_path / "pgg"), FOUND, Local())
    assert caught.value.hint == "did you mean 'pg'?"
    (prefix / "bin" / "initdb").unlink()
    with pytest.raises(InvalidInput, match="has postgres but no initdb"):
        choose(str(prefix), FOUND, Local())


def test_an_installation_that_does_not_run_is_told(prefix: Path) -> None:
    (prefix / "bin" / "postgres").write_text("#!/bin/sh\necho 'libfoo.so missing' >&2; exit 127\n")
    with pytest.raises(PgdynoError, match=r"does not run: libfoo\.so missing"):
        choose(str(prefix), FOUND, Local())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_path_closed_to_us_is_refused_and_not_a_crash(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "postgres").touch()
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        with pytest.raises(PermissionError):
            (closed / "postgres").is_file()
        with pytest.raises(InvalidInput, match="neither a version nor a path"):
            choose(str(closed / "postgres"), FOUND, Noop())
    finally:
        os.seteuid(0)
