"""Versions that are not on this machine: fetched with mvn, chosen, run, and copied where needed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers import readable
from pgdyno.servers.binaries import Installation, find_installations
from pgdyno.servers.cache import Cache
from pgdyno.servers.clients import client_program
from pgdyno.servers.fetching import fetch
from pgdyno.servers.obtaining import obtain
from pgdyno.servers.privileges import server_user
from pgdyno.servers.provision import provision

# What asks the registry is slow, and not for every change.
registry = pytest.mark.skipif(shutil.which("mvn") is None, reason="there is no mvn")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    """An empty cache that the server's account can read."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-cache-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("XDG_CACHE_HOME", folder)
        yield Cache()


@pytest.mark.slow
@registry
def test_a_version_that_is_named_and_not_there_is_fetched_once(cache: Cache) -> None:
    told: list[str] = []
    choice = SystemChoice(pg="9.6.24")
    with provision(choice, Local(), notice=told.append) as server:
        assert server.version_num == 90624
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
    assert told == ["fetching postgresql 9.6.24 with mvn"]
    (kept,) = cache.kept()
    assert (kept.kind, kept.folder.name, len(kept.facts["sha256"])) == ("fetched", "9.6.24", 64)
    again = obtain("9.6", Local(), told.append)
    assert (again.bin_dir, len(told)) == (kept.bin_dir, 1)
    # It came without client programs; a newer installation's serve.
    assert again.client_programs == ()
    found = find_installations(Local())
    assert client_program("psql", again, found).parent != again.bin_dir
    assert not list((cache.root / "work").glob("*/"))


@pytest.mark.slow
@registry
def test_a_version_that_nobody_has_is_refused(cache: Cache) -> None:
    with pytest.raises(
        InvalidInput, match=r"9\.6\.99 is not on this machine, and .* that can be fetched"
    ) as caught:
        obtain("9.6.99", Local(), lambda _: None)
    assert str(caught.value.hint).startswith("pgdyno servers fetch 9.6 takes the newest")


@pytest.mark.pg
def test_without_mvn_it_says_which_package_gives_it(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(cache.root))
    with pytest.raises(PgdynoError, match="fetching postgresql 12 needs mvn") as caught:
        fetch("12", Local(), cache=cache, notice=lambda _: None)
    assert str(caught.value.hint).startswith("apt-get install maven")
    with pytest.raises(InvalidInput, match=r"'9\.5' is not a version that can be fetched"):
        fetch("9.5", Local(), cache=cache, notice=lambda _: None)


@pytest.mark.pg
def test_client_programs_come_from_the_nearest_version_that_is_not_older() -> None:
    def one(version_num: int, *programs: str) -> Installation:
        return Installation(
            version=str(version_num),
            version_num=version_num,
            origin="folder",
            bin_dir=Path(f"/pg/{version_num}"),
            client_programs=programs,
        )

    found = (one(180001, "psql", "pg_dump"), one(160002, "psql"), one(120003, "pg_dump"))
    fetched = one(140001)
    assert client_program("psql", fetched, found) == Path("/pg/160002/psql")
    assert client_program("pg_dump", fetched, found) == Path("/pg/180001/pg_dump")
    assert client_program("psql", one(140001, "psql"), found) == Path("/pg/140001/psql")
    with pytest.raises(PgdynoError, match="no psql on this machine is as new as the server"):
        client_program("psql", one(190001), found)


@pytest.mark.pg
@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another account")
def test_copies_whose_original_is_gone_are_removed(tmp_path: Path) -> None:
    wheel = next(one for one in find_installations(Local()) if one.origin == "wheel")
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-copies-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        copies = Path(folder) / "pgdyno/binaries"
        hidden = []
        for name in ("first", "second"):
            closed = tmp_path / name
            closed.mkdir(mode=0o700)
            package = wheel.bin_dir.parent.parent
            shutil.copytree(package, closed / package.name, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            shutil.copytree(libraries, closed / libraries.name)
            place = closed / package.name / wheel.bin_dir.parent.name / "bin"
            hidden.append(replace(wheel, bin_dir=place))
        first, second = (
            readable.readable_by(one, server_user(), Local(), cache=copies) for one in hidden
        )
        shutil.rmtree(tmp_path / "first")
        assert readable.prune_copies(copies) == ()  # Somebody may just be about to start it.
        for copy in copies.iterdir():
            os.utime(copy, times=(0, 0))
        (gone,) = readable.prune_copies(copies)
        assert first.bin_dir.is_relative_to(gone)
        assert not first.bin_dir.exists()
        assert second.bin_dir.exists()
