"""Stock pgbench and the engine called as `pgbench`, run with the same words, and what they did.

What differs from run to run by nature (times, rates, the version in brackets) is masked; all the
rest is compared to the letter.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.servers.binaries import Installation, find_installations

DEADLINE_S = 30.0
AGGREGATED_FIELDS = 15
# PostgreSQL 15 is the first whose pgbench draws these random numbers; 18 the last that is imitated.
VERSIONS = range(15, 19)
_NUMBER = r"-?\d+\.\d+(?:e[+-]\d+)?|-?nan|-?inf"
_MASKS = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"^pgbench \([^)]*(?:\([^)]*\))?[^)]*\)$", "pgbench (VERSION)"),
        (rf"^( ?-? ?(?:tps|latency average|latency stddev|\w+ connection time) = )({_NUMBER})",
         r"\1N"),
        (rf"(, tps = |\(tps = )({_NUMBER})", r"\1N"),
        (rf"^(rate limit schedule lag: avg )({_NUMBER}) \(max ({_NUMBER})\)", r"\1N (max N)"),
        (rf"^ +({_NUMBER}) ( *\d+ )", r"   N \2"),
        (rf"elapsed ({_NUMBER}) s, remaining ({_NUMBER}) s", "elapsed N s, remaining N s"),
        (rf"\b({_NUMBER}) s([,.) ])", r"N s\2"),
        (r"(?:^pgbench: client \d+ receiving\n)+", "pgbench: client receiving\n"),
        # Of a run by time; one by number has "/M" behind.
        (r"^(number of transactions actually processed: )\d+$", r"\1N"),
        # The system names the program by its path.
        (r"^\S*/pgbench: ", "pgbench: "),
        (r"\r", "\n"),
    )
)  # fmt: skip


_PROGRESS = re.compile(r"(?:^(progress: ).*\n)+", re.MULTILINE)
_MEASURED = re.compile(r"\d+(?:\.\d+)?")
# Of a line of the log the words decide client, number of its transaction, number of the script.
_DECIDED = (0, 1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Words for pgbench, the scripts they name, and what to look at afterwards.

    Scripts are files of these names; the word `{place}` in `words` becomes their folder, where logs
    are looked for under the prefix `log`. `rows` is a query; `before` is SQL that goes ahead of
    each of the two runs. Version numbers are majors.
    """

    name: str
    words: str
    scripts: Mapping[str, str] = field(default_factory=dict)
    rows: str | None = None
    before: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None
    since: int = VERSIONS[0]
    until: int = VERSIONS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run left: exit code, masked text, rows, masked lines of logs."""

    status: int
    stdout: str
    stderr: str
    rows: tuple[str, ...]
    logs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two programs at one database; `session` looks at it from outside and commits at once."""

    stock: Path
    major: int
    ours: Path
    database: str
    session: psycopg.Connection
    place: Path

    def differences(self, cases: Iterable[Case]) -> tuple[int, list[str]]:
        """How many cases were run, and one text for each that came out differently."""
        count, found = 0, []
        for case in cases:
            if case.since <= self.major <= case.until:
                count += 1
                stock, ours = self.run(case, self.stock), self.run(case, self.ours)
                if stock != ours:
                    found.append(_described(case, stock, ours))
        return count, found

    def run(self, case: Case, program: Path) -> Outcome:
        """One of the two programs, to its end."""
        for name, text in case.scripts.items():
            # Line ends and odd bytes are part of some scripts.
            (self.place / name).write_bytes(text.encode())
        if case.before is not None:
            self.session.execute(case.before.encode())
        done = subprocess.run(
            [program, *shlex.split(case.words.replace("{place}", str(self.place)))],
            cwd=self.place,
            env=self._environment(case),
            input=case.stdin or "",
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=DEADLINE_S,
            check=False,
        )
        return Outcome(
            status=done.returncode,
            stdout=_masked(done.stdout),
            stderr=_masked(done.stderr),
            rows=tuple(map(str, self.session.execute(case.rows.encode()).fetchall()))
            if case.rows is not None
            else (),
            logs=tuple(self._logs()),
        )

    def _logs(self) -> Iterator[str]:
        """Names and lines of the logs; aggregated lines only by their length, but how many."""
        for path in sorted(self.place.glob("log.*")):
            yield re.sub(r"^log\.\d+", "log.PID", path.name)
            for line in sorted(map(str.split, path.read_text().splitlines())):
                masked = [_MEASURED.sub("N", field) for field in line]
                aggregated = len(line) >= AGGREGATED_FIELDS
                for index in () if aggregated else _DECIDED:
                    masked[index] = line[index]
                yield " ".join(masked)
            path.unlink()

    def _environment(self, case: Case) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        words = conninfo_to_dict(self.database)
        names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
        place = {variable: str(words[word]) for word, variable in names.items() if word in words}
        emulated = {"PGDYNO_PGBENCH": str(self.major), "LC_ALL": "C"}
        return kept | place | emulated | dict(case.environment)


def stock_programs() -> dict[int, Path]:
    """The stock pgbench of each major version that is installed here and can be compared with."""
    found: dict[int, Path] = {}
    for one in find_installations(Local()):
        major = one.version_num // 10000
        if major in VERSIONS and _usable(one):
            found.setdefault(major, one.bin_dir / "pgbench")
    return found


def link_to_engine(folder: Path) -> Path:
    """The engine under the name `pgbench`, as it takes the place of the stock program."""
    link = folder / "pgbench"
    link.symlink_to(find_engine())
    return link


def _usable(one: Installation) -> bool:
    return one.problem is None and "pgbench" in one.client_programs


def _masked(text: str) -> str:
    # The last line is printed or not, as the end of the run and the end of the interval meet.
    text = _PROGRESS.sub(lambda lines: _MEASURED.sub("N", lines[0].splitlines()[0]) + "\n", text)
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text


def _described(case: Case, stock: Outcome, ours: Outcome) -> str:
    lines = [f"{case.name}: pgbench {case.words}"]
    lines += [f"  {name}: {text!r}" for name, text in case.scripts.items()]
    for part in ("status", "stdout", "stderr", "rows", "logs"):
        expected, found = getattr(stock, part), getattr(ours, part)
        if expected != found:
            lines += [f"  {part}, stock: {expected!r}", f"  {part}, ours:  {found!r}"]
    return "\n".join(lines)
