"""Where files outside the data folder lie: decided before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput, Problems
from pgdyno.model import StorageChoice
from pgdyno.servers.storage import check_storage, keeps_files_elsewhere, links_of, place_storage

pytestmark = pytest.mark.unit


def test_nothing_asked_for_is_nothing() -> None:
    folders = place_storage(StorageChoice(), "pgdyno-1", None)
    assert (folders.all, folders.roots, folders.initdb_words, folders.settings) == ((), (), (), {})


def test_each_place_gets_one_folder_with_the_uses_in_it(tmp_path: Path) -> None:
    fast = tmp_path / "fast"
    fast.mkdir()
    choice = StorageChoice(wal=str(tmp_path), temporary=str(fast), tablespaces={"hot": str(fast)})
    folders = place_storage(choice, "pgdyno-1", None)
    assert folders.roots == (tmp_path / "pgdyno-1", fast / "pgdyno-1")
    assert folders.wal == tmp_path / "pgdyno-1" / "wal"
    assert folders.tablespaces == {
        "hot": fast / "pgdyno-1" / "tablespace-hot",
        "pgdyno_temporary": fast / "pgdyno-1" / "temporary",
    }
    assert folders.initdb_words == ("-X", str(tmp_path / "pgdyno-1" / "wal"))
    assert folders.settings == {"temp_tablespaces": "pgdyno_temporary"}


def test_kept_data_have_their_folders_to_themselves(tmp_path: Path) -> None:
    choice = StorageChoice(wal=str(tmp_path))
    one, again, other = (
        place_storage(choice, name, Path(data))
        for name, data in (("pgdyno-1", "/a"), ("pgdyno-2", "/a"), ("pgdyno-3", "/b"))
    )
    assert one == again
    assert one != other


def test_names_and_places_that_cannot_be_are_told_together(tmp_path: Path) -> None:
    there = str(tmp_path)
    choice = StorageChoice(
        wal=str(tmp_path / "no"), tablespaces={"pg_mine": there, "Two Words": there}
    )
    with pytest.raises(Problems) as raised:
        place_storage(choice, "pgdyno-1", None)
    assert len(raised.value.problems) == 3


def test_links_tell_what_lies_elsewhere(tmp_path: Path) -> None:
    data, wal, place = tmp_path / "data", tmp_path / "wal", tmp_path / "place"
    (data / "pg_tblspc").mkdir(parents=True)
    (data / "pg_wal").symlink_to(wal)
    (data / "pg_tblspc" / "16384").symlink_to(place)
    assert [link.readlink() for link in links_of(data)] == [wal, place]
    assert keeps_files_elsewhere(data, {wal})
    assert not keeps_files_elsewhere(data, {wal, place})


def test_kept_wal_elsewhere_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "pg_wal").mkdir(parents=True)
    check_storage(place_storage(StorageChoice(), "pgdyno-1", data), data)
    with pytest.raises(InvalidInput, match="have their WAL in"):
        check_storage(place_storage(StorageChoice(wal=str(tmp_path)), "pgdyno-1", data), data)
