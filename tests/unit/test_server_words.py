"""Words of an experiment for how a private server is made, where its files lie, what it may use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.experiment.factors import conflicts, with_level
from pgdyno.experiment.system_file import with_word
from pgdyno.model import (
    InitdbChoice,
    Limits,
    LoadChoice,
    StorageChoice,
    SystemChoice,
    Variant,
    WorkloadChoice,
)

pytestmark = pytest.mark.unit

PLAIN = Variant(
    name="plain", workload=WorkloadChoice(name="noop"), system=SystemChoice(), load=LoadChoice()
)


@pytest.mark.parametrize(
    ("word", "level", "expected"),
    [
        ("checksums", True, {"initdb": InitdbChoice(checksums=True)}),
        ("wal_segment_size", "64MB", {"initdb": InitdbChoice(wal_segment_bytes=64 * 1024**2)}),
        ("locale", "en_US.UTF-8", {"initdb": InitdbChoice(locale="en_US.UTF-8")}),
        ("encoding", "LATIN1", {"initdb": InitdbChoice(encoding="LATIN1")}),
        ("wal_folder", "/srv/wal", {"storage": StorageChoice(wal="/srv/wal")}),
        ("temporary_folder", "/srv/t", {"storage": StorageChoice(temporary="/srv/t")}),
        ("cpu_limit", 0.5, {"limits": Limits(cpu_share=0.5)}),
        ("memory_limit", "2GB", {"limits": Limits(memory_bytes=2 * 1024**3)}),
    ],
)
def test_a_word(word: str, level: Any, expected: dict[str, Any]) -> None:
    found = with_level(PLAIN, word, level, {})
    assert found.system == SystemChoice(**expected)
    assert conflicts(found) == ()


def test_words_of_one_part_add_up() -> None:
    both = with_level(with_level(PLAIN, "cpu_limit", 2, {}), "memory_limit", "1GB", {})
    assert both.system.limits == Limits(cpu_share=2, memory_bytes=1024**3)


@pytest.mark.parametrize(
    ("word", "level", "told"),
    [
        ("cpu_limit", "all", "not a number of CPUs"),
        ("cpu_limit", 0, "not a number of CPUs"),
        ("memory_limit", "much", "not a size"),
        ("memory_limit", "0MB", "not above zero"),
        ("checksums", "maybe", "checksums"),
    ],
)
def test_a_level_that_cannot_be(word: str, level: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        with_level(PLAIN, word, level, {})


def test_none_of_them_goes_with_a_dsn() -> None:
    theirs = PLAIN.model_copy(update={"system": SystemChoice(dsn="host=x")})
    for word, level in (("checksums", True), ("wal_folder", "/srv"), ("cpu_limit", 1)):
        (line,) = conflicts(with_level(theirs, word, level, {}))
        assert "cannot be used with dsn" in line


def test_a_profile_stands_below_single_settings(tmp_path: Path) -> None:
    mine = with_level(PLAIN, "set:max_connections", 50, {})
    found = with_word(mine, "profile", "web-2016", {}, folder=tmp_path)
    assert found.system.settings["max_connections"] == "50"
    assert found.system.settings["shared_buffers"] == "2GB"
    with pytest.raises(InvalidInput, match="profile 'web' does not exist"):
        with_word(PLAIN, "profile", "web", {}, folder=tmp_path)
