"""Settings of the sessions that build indexes: memory shared out, workers for the large tables."""

from __future__ import annotations

import pytest

from pgdyno.workloads.loading import maintenance_settings

pytestmark = pytest.mark.unit
GIB = 1024**3


@pytest.mark.parametrize(
    ("memory_bytes", "connections", "cpus", "large_tables", "version_num", "expected"),
    [
        (24 * GIB, 2, 2, 1, 150018, ["1024MB", "1"]),
        (24 * GIB, 2, 2, 2, 150018, ["1024MB", "0"]),
        (8 * GIB, 4, 8, 2, 180004, ["256MB", "3"]),
        (1 * GIB, 4, 8, 0, 180004, ["64MB", "7"]),
        (None, 2, 2, 1, 150018, ["1"]),
        (8 * GIB, 1, 1, 1, 90610, ["1024MB"]),
    ],
)
def test_settings(  # noqa: PLR0917
    memory_bytes: int | None,
    connections: int,
    cpus: int,
    large_tables: int,
    version_num: int,
    expected: list[str],
) -> None:
    settings = maintenance_settings(
        memory_bytes,
        connections=connections,
        cpus=cpus,
        large_tables=large_tables,
        version_num=version_num,
    )
    assert [setting.split(" = ")[1].strip("'") for setting in settings] == expected
    assert not any("synchronous_commit" in setting or "fsync" in setting for setting in settings)
