"""What can be built, judged before anything is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import Problems
from pgdyno.servers.build_options import BuildOptions, check_options

pytestmark = pytest.mark.unit


def test_all_that_is_wrong_with_options_is_told_at_once(tmp_path: Path) -> None:
    options = BuildOptions(
        block_kb=12,
        wal_block_kb=128,
        configure=("with-lz4", "--prefix=/opt"),
        patches=(tmp_path / "idea.patch",),
        name="a/b",
    )
    with pytest.raises(Problems) as caught:
        check_options(options)
    assert list(caught.value.problems) == [
        "a block size of 12 kB is impossible: there are 1, 2, 4, 8, 16, 32 kB",
        "a WAL block size of 128 kB is impossible: there are 1, 2, 4, 8, 16, 32, 64 kB",
        "'with-lz4' is not an option of configure (--with-…, CFLAGS=…)",
        "configure's --prefix is pgdyno's to choose",
        f"the patch '{tmp_path}/idea.patch' is not a file",
        "a server cannot be named 'a/b'",
    ]


def test_what_is_possible_passes(tmp_path: Path) -> None:
    patch = tmp_path / "idea.patch"
    patch.touch()
    given = ("--enable-cassert", "--with-lz4", "CFLAGS=-O3 -g", "--with-segsize=2")
    check_options(
        BuildOptions(block_kb=32, wal_block_kb=64, configure=given, patches=(patch,), name="pg-1.x")
    )
