"""Rules of the whole test suite: every test has a speed, docstring examples are unit tests.

What was fetched or built by hand on this machine is hidden, since some tests run on every version
that they find; with PGDYNO_TEST_ALL=1 they see it.
"""

from __future__ import annotations

import os
import platform
import tempfile

import pytest

SPEEDS = {"unit", "pg", "slow"}


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests an empty cache of servers."""
    if not os.environ.get("PGDYNO_TEST_ALL"):
        cache = tempfile.TemporaryDirectory(prefix="pgdyno-test-cache-")
        config.add_cleanup(cache.cleanup)
        os.environ["XDG_CACHE_HOME"] = cache.name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Doctests are unit tests; any other test without a speed is a mistake."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.unit)
    nameless = [
        item.nodeid for item in items if not SPEEDS & {mark.name for mark in item.iter_markers()}
    ]
    if nameless:
        raise pytest.UsageError(f"tests without a speed ({', '.join(sorted(SPEEDS))}): {nameless}")


def pytest_report_header() -> str:
    """What the machine is, at the top of every test run."""
    return f"kernel {platform.release()}, {platform.machine()}"
