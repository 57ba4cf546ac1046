"""Running `pgdyno` as a person would: a process of its own, in its own place, and what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEADLINE_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    status: int
    output: str
    error: str

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that holds runs, the ledger and temporary clusters of one test, and nothing else."""

    folder: Path

    @property
    def runs(self) -> Path:
        """Where run folders go."""
        return self.folder / "runs"

    def environment(self) -> dict[str, str]:
        """The environment of commands here."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        if "PGDYNO_ENGINE" in os.environ:
            kept["PGDYNO_ENGINE"] = os.environ["PGDYNO_ENGINE"]
        own = {"TMPDIR": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}
        return kept | own | {"PGDYNO_OUTPUT": str(self.runs), "COLUMNS": "100"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `pgdyno WORDS…` here."""
        return subprocess.Popen(
            [sys.executable, "-m", "pgdyno", *words],
            cwd=Path(__file__).resolve().parents[2],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def pgdyno(self, *words: str, deadline_s: float = DEADLINE_S) -> Ended:
        """Run `pgdyno WORDS…` here to its end."""
        return finish(self.start(*words), deadline_s=deadline_s)

    def left_running(self) -> list[str]:
        """Command lines of processes that name this place and are not ours to expect."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.folder) in words:
                found.append(words)
        return found

    def left_behind(self) -> list[str]:
        """Folders and ledger entries that a private server should have taken with it."""
        clusters = [path.name for path in self.folder.glob("pgdyno-*")]
        entries = [path.name for path in (self.folder / "state").rglob("*") if path.is_file()]
        kept = ("noise.json", "calibration.json")
        return clusters + [n for n in entries if n.endswith(".json") and n not in kept]


def finish(process: subprocess.Popen[str], *, deadline_s: float = DEADLINE_S) -> Ended:
    """Wait for a command; one that misses the deadline is killed and fails the test."""
    try:
        output, error = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, error = process.communicate()
        raise AssertionError(f"no end within {deadline_s} s; it said:\n{error}") from None
    return Ended(status=process.returncode, output=output, error=error)
