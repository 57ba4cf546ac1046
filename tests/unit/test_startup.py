"""What starting the command costs: libraries for numerics wait until they have to compute."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit


def test_the_command_starts_without_the_libraries_for_numerics() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import sys, pgdyno.cli; print(*sys.modules)"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    loaded = set(told.stdout.split())
    assert "pgdyno.cli" in loaded
    assert not loaded & {"numpy", "pandas", "pyarrow", "scipy", "statsmodels"}
