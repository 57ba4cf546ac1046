"""Brings a workload's data into a database: found and used again, or loaded in timed steps.

create → rows → indexes → vacuum. Rows come from the engine in parallel ranges, keys and indexes
after them on connections of their own, then every table is vacuumed and analysed. What was loaded
is recorded (`state.py`), first as incomplete, so that a broken-off load is never taken for data.

Tables that pgdyno did not make are used where the workload can adopt them and they fit, replaced
with `reload`, and otherwise refused: nobody's data are dropped silently.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import sql as composed

from pgdyno.contract import LoadPlan, LoadProgress
from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.model import LoadReport, LoadStep, StateIdentity
from pgdyno.workloads.checking import take_snapshot
from pgdyno.workloads.definition import RESET_FILE, ResolvedWorkload
from pgdyno.workloads.flushing import wal_kept_flushed
from pgdyno.workloads.judging import judge_load
from pgdyno.workloads.making import (
    execute_file,
    large_tables,
    make_extensions,
    make_functions,
    make_tables,
    table_bytes,
)
from pgdyno.workloads.rows import Loader, fill
from pgdyno.workloads.side_by_side import run_side_by_side
from pgdyno.workloads.state import (
    Decision,
    decide,
    existing_tables,
    identity_on,
    read_records,
    write_record,
)
from pgdyno.workloads.target import Target, connect, first_line

_StepName = Literal["create", "rows", "indexes", "vacuum"]
_MIB = 1024**2
_PARALLEL_INDEX_VERSION = 110000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStatus:
    """How far loading has come. `share` in [0, 1] and `left_s` belong to this step."""

    step: _StepName
    text: str
    rows_done: int = 0
    rows_total: int = 0
    rows_per_s: float | None = None
    share: float | None = None
    left_s: float | None = None


LoadListener = Callable[[LoadStatus], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Where to load and how. `memory_bytes` is the server's host's, None where it is not known."""

    target: Target
    loader: Loader
    reload: bool = False
    memory_bytes: int | None = None


def silent(status: LoadStatus) -> None:
    """A listener that does not listen."""


def load(
    workload: ResolvedWorkload, request: LoadRequest, listener: LoadListener = silent
) -> LoadReport:
    """See to it that the workload's data are there; says whether they were already.

    Raises `InvalidInput` for tables of somebody else that do not fit and `PgdynoError` for what the
    server refuses. Ctrl-C cancels what runs; the next load then begins anew.
    """
    try:
        with connect(request.target) as connection:
            loading = _Loading(workload, request, listener, connection)
            return loading.report()
    except psycopg.errors.InsufficientPrivilege as error:
        raise PgdynoError(
            f"loading '{workload.name}' failed: {first_line(error)}",
            hint="use a role that may create schemas and tables in this database",
        ) from error
    except psycopg.Error as error:
        raise PgdynoError(f"loading '{workload.name}' failed: {first_line(error)}") from error


class _Loading:
    """One load of one workload over one controlling connection; collects the timed steps."""

    def __init__(
        self,
        workload: ResolvedWorkload,
        request: LoadRequest,
        listener: LoadListener,
        connection: psycopg.Connection[Any],
    ) -> None:
        self.workload = workload
        self.request = request
        self.listener = listener
        self.connection = connection
        self.steps: list[LoadStep] = []
        self.tables = [table.name for table in workload.tables]

    def report(self) -> LoadReport:
        """Decide, act, and report."""
        make_extensions(self.connection, self.workload)
        if not self.tables:
            make_functions(self.connection, self.workload)
            return LoadReport(reused=False, reason="the workload has no data of its own")
        identity = identity_on(self.connection, self.workload, self.request.target.initdb_options)
        decision = self._decision(identity)
        if decision.action == "load":
            self._load(identity, decision)
        else:
            self._use_again(decision)
        heap_bytes, index_bytes = table_bytes(self.connection, self.tables)
        return LoadReport(
            reused=decision.action != "load",
            reason=decision.reason,
            adopted=decision.action == "adopt",
            steps=tuple(self.steps),
            data_bytes=heap_bytes + index_bytes,
            memory_bytes=self.request.memory_bytes,
        )

    def _decision(self, identity: StateIdentity) -> Decision:
        records = read_records(self.connection)
        names = [*self.tables, *(name for record in records for name in record.tables)]
        existing = existing_tables(self.connection, names)
        decision = decide(identity, self.workload, records, existing, reload=self.request.reload)
        listed = ", ".join(decision.foreign)
        if decision.action == "refuse":
            raise InvalidInput(
                f"{_tables_are(listed)} in this database already and not made by pgdyno",
                hint="use another database, or --reload to replace them",
            )
        if decision.action == "adopt":
            self._insist_on_fit(listed)
            return Decision(action="adopt", reason="tables made by someone else fit and are used")
        return decision

    def _insist_on_fit(self, listed: str) -> None:
        """Raise `InvalidInput` where tables of somebody else are not what the workload needs."""
        snapshot = take_snapshot(self.workload, self.request.target)
        results = judge_load(self.workload, snapshot, reused=True)
        unfit = [result for result in results if result.verdict != "held"]
        if unfit:
            reason = f"{unfit[0].rule}: {unfit[0].detail}"
            raise InvalidInput(
                f"{_tables_are(listed)} not made by pgdyno and not fit: {reason}",
                hint="give parameters that fit, use another database, or --reload to replace them",
            )

    def _load(self, identity: StateIdentity, decision: Decision) -> None:
        with self._step("create"):
            self._create(identity, decision)
        with wal_kept_flushed(self.request.target):
            self._rows_and_indexes()
        with self._step("vacuum"):
            self._vacuum()
            write_record(self.connection, self.workload, identity, complete=True)

    def _rows_and_indexes(self) -> None:
        rows = self.workload.rows
        began_s = time.monotonic()
        self.listener(LoadStatus(step="rows", text="rows", rows_total=rows, share=0.0))
        self._fill()
        duration_s = time.monotonic() - began_s
        filled_bytes, _ = table_bytes(self.connection, self.tables)
        self.steps.append(
            LoadStep(name="rows", duration_s=duration_s, rows=rows, bytes=filled_bytes)
        )
        began_s = time.monotonic()
        self._side_by_side("indexes", self.workload.index_statements)
        duration_s = time.monotonic() - began_s
        _, index_bytes = table_bytes(self.connection, self.tables)
        self.steps.append(LoadStep(name="indexes", duration_s=duration_s, bytes=index_bytes))

    def _create(self, identity: StateIdentity, decision: Decision) -> None:
        """Tables with their record, then functions."""
        self.listener(LoadStatus(step="create", text="creating tables"))
        make_tables(self.connection, self.workload, identity, decision.drop)
        make_functions(self.connection, self.workload)

    def _use_again(self, decision: Decision) -> None:
        """Make data that are there already fit for a measurement, as far as they are ours."""
        with self._step("vacuum"):
            if decision.action == "reuse":
                execute_file(self.connection, self.workload, RESET_FILE, self.workload.reset_sql)
            self._vacuum()
        make_functions(self.connection, self.workload)

    def _fill(self) -> None:
        plan = LoadPlan(
            conninfo=self.request.target.conninfo,
            connections=self.request.loader.connections,
            variables=self.workload.variables,
            sections=self.workload.sections,
        )
        follower = _RowsFollower(self.workload, self.listener)
        fill(plan, self.request.target, self.request.loader, follower.hear)

    def _vacuum(self) -> None:
        names = [composed.Identifier(name) for name in self.tables]
        form = composed.SQL("vacuum analyze {}")
        statements = [form.format(name).as_string(self.connection) for name in names]
        self._side_by_side("vacuum", statements)

    def _side_by_side(self, step: _StepName, statements: tuple[str, ...] | list[str]) -> None:
        if not statements:
            return
        count = len(statements)
        words = {"indexes": "building indexes", "vacuum": "vacuuming and analysing"}[step]

        def finished(done: int) -> None:
            text = f"{words}: {done} of {count}"
            self.listener(LoadStatus(step=step, text=text, share=done / count))

        finished(0)
        connections = self.request.loader.connections
        settings = maintenance_settings(
            self.request.memory_bytes,
            connections=min(connections, count),
            cpus=connections,
            large_tables=large_tables(self.connection, self.tables),
            version_num=self.connection.info.server_version,
        )
        run_side_by_side(self.request.target, statements, connections, settings, finished)

    @contextmanager
    def _step(self, name: _StepName) -> Iterator[None]:
        began_s = time.monotonic()
        yield
        self.steps.append(LoadStep(name=name, duration_s=time.monotonic() - began_s))


def maintenance_settings(
    memory_bytes: int | None,
    *,
    connections: int,
    cpus: int,
    large_tables: int,
    version_num: int,
) -> list[str]:
    """Settings of the sessions that build indexes and vacuum, for these sessions only. Pure.

    An eighth of the host's memory is shared out for sorting, where it is known, and no more
    parallel workers are asked for than there are CPUs for the large tables: on two CPUs the key of
    one large table took 1.05 s with one worker, and 1.24 to 1.5 s with the server's default of two.
    """
    settings = []
    if memory_bytes is not None:
        share_mib = memory_bytes // 8 // connections // _MIB
        settings.append(f"set maintenance_work_mem = '{max(64, min(1024, share_mib))}MB'")
    if version_num >= _PARALLEL_INDEX_VERSION:
        workers = max(0, cpus // max(1, large_tables) - 1)
        settings.append(f"set max_parallel_maintenance_workers = {workers}")
    return settings


class _RowsFollower:
    """Turns the engine's lines, one section at a time, into how far all rows have come."""

    def __init__(self, workload: ResolvedWorkload, listener: LoadListener) -> None:
        self._done = {section.name: 0 for section in workload.sections}
        self._total = workload.rows
        self._began_s = time.monotonic()
        self._listener = listener

    def hear(self, line: LoadProgress) -> None:
        """One line of the engine."""
        self._done[line.section] = line.rows_done
        done, elapsed_s = sum(self._done.values()), time.monotonic() - self._began_s
        per_s = done / elapsed_s if elapsed_s > 0 and done else None
        self._listener(
            LoadStatus(
                step="rows",
                text=f"rows of {line.section}",
                rows_done=done,
                rows_total=self._total,
                rows_per_s=per_s,
                share=done / self._total if self._total else None,
                left_s=(self._total - done) / per_s if per_s else None,
            )
        )


def _tables_are(listed: str) -> str:
    return f"tables {listed} are" if "," in listed else f"table {listed} is"
