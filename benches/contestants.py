"""The load generators that are compared: ours, pgbench and sysbench."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from turns import Task, Turn, run

from pgdyno.contract import Plan, Summary
from pgdyno.engine import find_engine
from pgdyno.errors import PgdynoError
from pgdyno.workloads.definition import ResolvedWorkload

_LOGGED_MIN = 1000
_PROGRESS = re.compile(r"^progress: ([\d.]+) s, ([\d.]+) tps", re.MULTILINE)
_seeds = itertools.count(20130101)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """pgdyno-engine with a plan. Its percentiles are those of service times, all of them."""

    name: str = "pgdyno"

    def missing(self) -> str | None:
        """The engine is always there: this is its bench."""
        return None

    def version(self) -> str:
        """As it says itself."""
        return _first_line([str(find_engine()), "--version"])

    def can_do(self, workload: ResolvedWorkload) -> bool:
        """Everything."""
        return True

    def turn(self, task: Task) -> Turn:
        """Warm-up and measurement in one process."""
        with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as folder:
            plan = Plan(
                name=task.workload.name,
                conninfo=task.conninfo,
                clients=task.clients,
                threads=task.threads,
                seed=next(_seeds),
                warmup_s=task.warmup_s,
                duration_s=task.duration_s,
                variables=task.workload.variables,
                transaction_types=task.workload.transaction_types,
                output_dir=folder,
            )
            file = Path(folder) / "plan.json"
            file.write_text(plan.model_dump_json())
            words = [str(find_engine()), "run", str(file)]
            ended = run(words, _secrets(task), Path(folder), task)
            summary = Summary.model_validate_json((Path(folder) / "summary.json").read_bytes())
        if summary.outcome != "completed" or not summary.throughput_per_s:
            raise PgdynoError(f"pgdyno-engine: {summary.outcome}: {summary.message}")
        counted, cost = summary.measurement, summary.own_cost
        own_ns = None if cost is None else cost.cpu_user_ns + cost.cpu_sys_ns
        return Turn(
            throughput_per_s=summary.throughput_per_s,
            transactions=counted.committed + summary.warmup.committed,
            failed=counted.failed.total + counted.unknown,
            cpu_s=ended.cpu_s,
            wall_s=ended.wall_s,
            threads=summary.engine.threads,
            p99_us=summary.times.service.p99_ns / 1e3,
            measurement_cpu_us=None if own_ns is None else own_ns / 1e3 / counted.committed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pgbench:
    """Stock pgbench with the same scripts.

    It has no warm-up: it runs for the whole time, and its throughput is that of its progress lines
    behind the warm-up's seconds; its p99 is that of its sampled log behind them.
    """

    program: Path | None
    name: str = "pgbench"

    def missing(self) -> str | None:
        """Whether it was found."""
        return None if self.program else "pgbench is not installed"

    def version(self) -> str:
        """As it says itself."""
        return _first_line([str(self.program), "--version"])

    def can_do(self, workload: ResolvedWorkload) -> bool:
        """Everything: workloads are written in its language."""
        return True

    def turn(self, task: Task) -> Turn:
        """Warm-up and measurement in one process."""
        threads = min(task.threads or 1, task.clients)
        with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as folder:
            words = [str(self.program), "-n", "-M", "prepared", "-P", "1"]
            words += ["-c", str(task.clients), "-j", str(threads)]
            words += ["-T", str(task.warmup_s + task.duration_s), *_script_words(task, folder)]
            logs = task.logged_share > 0
            if logs:
                words += ["-l", f"--sampling-rate={task.logged_share:g}"]
            ended = run([*words, task.conninfo], _secrets(task), Path(folder), task)
            p99_us = _logged_p99_us(Path(folder), task.warmup_s) if logs else None
        seconds = [
            float(tps)
            for at, tps in _PROGRESS.findall(ended.error)
            if float(at) > task.warmup_s + 0.5
        ]
        if not seconds:
            raise PgdynoError("pgbench printed no progress behind the warm-up")
        return Turn(
            throughput_per_s=sum(seconds) / len(seconds),
            transactions=_number(r"actually processed: (\d+)", ended.output),
            failed=_number(r"failed transactions: (\d+)", ended.output),
            cpu_s=ended.cpu_s,
            wall_s=ended.wall_s,
            threads=threads,
            p99_us=p99_us,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysbench:
    """sysbench with a script of the same statement; a thread for each client is its only way.

    It reports no throughput behind a warm-up, so it takes part where CPU time is compared.
    """

    accounts: int
    name: str = "sysbench"

    def missing(self) -> str | None:
        """Whether it is on PATH."""
        return None if shutil.which("sysbench") else "sysbench is not installed"

    def version(self) -> str:
        """As it says itself."""
        return _first_line(["sysbench", "--version"])

    def can_do(self, workload: ResolvedWorkload) -> bool:
        """Only select-only was written for it."""
        return workload.name == "select-only"

    def turn(self, task: Task) -> Turn:
        """The whole time in one process."""
        target = conninfo_to_dict(task.conninfo)
        script = Path(__file__).with_name("select_only.lua")
        total_s = task.warmup_s + task.duration_s
        words = ["sysbench", "--db-driver=pgsql", f"--pgsql-host={target['host']}"]
        words += [f"--pgsql-port={target.get('port', 5432)}", f"--pgsql-db={target['dbname']}"]
        words += [f"--pgsql-user={target.get('user', 'postgres')}", "--pgsql-password="]
        words += [f"--threads={task.clients}", f"--time={total_s}", f"--accounts={self.accounts}"]
        ended = run([*words, str(script), "run"], _secrets(task), script.parent, task)
        events = _number(r"total number of events:\s+(\d+)", ended.output)
        return Turn(
            throughput_per_s=events / total_s,
            transactions=events,
            failed=0,
            cpu_s=ended.cpu_s,
            wall_s=ended.wall_s,
            threads=task.clients,
        )


def _secrets(task: Task) -> dict[str, str]:
    return {} if task.password is None else {"PGPASSWORD": task.password}


def _script_words(task: Task, folder: str) -> list[str]:
    """Options of pgbench for the scripts of a workload, each a file with its weight."""
    words = []
    for number, kind in enumerate(task.workload.transaction_types):
        file = Path(folder) / f"script{number}.sql"
        file.write_text(kind.script)
        words += ["-f", f"{file}@{kind.weight}"]
    for name, value in task.workload.variables.items():
        words += ["-D", f"{name}={value}"]
    return words


def _logged_p99_us(folder: Path, warmup_s: float) -> float:
    """99th percentile of the transactions that ended behind the warm-up."""
    ended = []
    for file in folder.glob("pgbench_log.*"):
        for line in file.read_text().splitlines():
            fields = line.split()
            ended.append((int(fields[4]) + int(fields[5]) / 1e6, int(fields[2])))
    begin_s = min(at_s for at_s, _ in ended)
    times_us = sorted(time_us for at_s, time_us in ended if at_s > begin_s + warmup_s)
    if len(times_us) < _LOGGED_MIN:
        raise PgdynoError(f"pgbench logged {len(times_us)} transactions: too few for a p99")
    return float(times_us[int(len(times_us) * 0.99)])


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise PgdynoError(f"no '{pattern}' in the output of a contestant")
    return int(found.group(1))


def _first_line(words: list[str]) -> str:
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=30)
    return done.stdout.strip().splitlines()[0]
