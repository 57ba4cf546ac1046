"""Conducts one trial: provision → load → prewarm → warm-up → measure → check → collect → reset.

The one place where servers, workloads, engine, observers and store meet. Whatever happens, the
trial's documents say how far it came, and what was started is stopped: every phase writes what it
learnt when it learnt it, and the server is a context that always ends.
"""

from __future__ import annotations

import os
import shutil

from pgdyno.contract import Plan
from pgdyno.durability.classes import classify
from pgdyno.engine import EngineEnd, build_plan, find_engine
from pgdyno.errors import EXIT_INTERRUPTED, PgdynoError, Problems
from pgdyno.experiment.diary import Diary
from pgdyno.experiment.hope import no_commit_at_all
from pgdyno.experiment.measuring import EnginePid, measure, observer_connections, observers_of
from pgdyno.experiment.progress import Progress, Step
from pgdyno.experiment.store import StoredTrial
from pgdyno.hosts.base import Host
from pgdyno.model import (
    CheckResult,
    Checks,
    LoadReport,
    Placement,
    Sizes,
    StorageFacts,
    TrialOutcome,
    Variant,
)
from pgdyno.observers import durability_facts as facts
from pgdyno.observers.environment import environment
from pgdyno.observers.server_settings import read_settings
from pgdyno.observers.session import session
from pgdyno.observers.sizes import read_sizes, with_after
from pgdyno.servers import preflight
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision
from pgdyno.servers.trouble import server_trouble
from pgdyno.units import format_count
from pgdyno.workloads.checking import take_snapshot
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.judging import Snapshot, counts_of, judge_load, judge_measurement
from pgdyno.workloads.loading import LoadRequest, LoadStatus, load
from pgdyno.workloads.prewarming import prewarm
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.state import identify
from pgdyno.workloads.target import Target


class Conduct:
    """One trial under way. `run` does it all; the methods are its phases, in their order."""

    def __init__(
        self,
        stored: StoredTrial,
        variant: Variant,
        workload: ResolvedWorkload,
        host: Host,
        progress: Progress,
    ) -> None:
        self.stored = stored
        self.variant = variant
        self.workload = workload
        self.host = host
        self.diary = Diary(stored, progress)
        self.progress = progress
        self._results: list[CheckResult] = []
        self._sizes: Sizes | None = None
        self._storage: tuple[StorageFacts, ...] = ()
        self._writes: facts.Writes | None = None

    def run(self) -> None:
        """Conduct the trial. Raises what made it impossible, after writing it down."""
        try:
            self._run()
        except KeyboardInterrupt:
            self._close("interrupted", "interrupted before the measurement had ended")
            raise
        except PgdynoError as error:
            self._close("failed", error.message)
            raise

    def _run(self) -> None:
        self.diary.begin("provision")
        with provision(self.variant.system, self.host, notice=self.diary.notice) as server:
            self._describe(server)
            self._preflight(server)
            target = _target(server)
            self._load(target)
            if self.variant.load.prewarm:
                self._prewarm(target)
            before = take_snapshot(self.workload, target)
            plan = self._plan(server)
            end = self._measure(plan, server)
            outcome, reason = _outcome(end, server)
            self._check(target, before, end, skip=outcome == "interrupted")
            self._collect(server, plan, end)
            self.diary.begin("reset", "stopping the server" if server.private else "")
        self._close(outcome, reason)

    def _describe(self, server: Server) -> None:
        """Write down what the trial runs on."""
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        here = Placement(host=self.host.name, cpus=cpus)
        roles = {"engine": here, "observers": here}
        if server.host_name == self.host.name:
            roles["server"] = here
        else:
            roles["server"] = Placement(host=server.host_name, cpus=())
        self.diary.learn(placement=roles)
        with session(server.conninfo, server.password) as asked:
            if server.data is not None:
                self._storage = facts.server_storage(asked, self.host, server.data)
            self.stored.write("environment.json", environment((self.host,), self._storage))
            self.stored.write("settings.json", read_settings(asked))

    def _preflight(self, server: Server) -> None:
        """Refuse what could not work, before anything slow."""
        observers = observers_of(server, self.host, EnginePid())
        needed = self.variant.load.clients + observer_connections(observers)
        limits = preflight.gather(server.conninfo, server.password, private=server.private)
        problems = preflight.check_connections(needed, limits)
        if server.data is not None:
            # What lies there already is either used again or replaced.
            there = _database_bytes(server)
            room = preflight.free_bytes(server.data) + there
            problems += preflight.check_disk(self.workload.expected_bytes, room)
        if problems:
            raise Problems(problems)

    def _load(self, target: Target) -> None:
        """See to it that the data are there and right."""
        with self.diary.phase("load"):
            loader = Loader(
                engine=find_engine(), host=self.host, connections=len(os.sched_getaffinity(0))
            )
            request = LoadRequest(
                target=target,
                loader=loader,
                reload=self.variant.load.reload,
                memory_bytes=self._server_memory_bytes(),
            )
            report = load(self.workload, request, self._heard)
            self.diary.learn(load=report, state=identify(self.workload, target))
        self._insist_on_data(target, report)

    def _insist_on_data(self, target: Target, report: LoadReport) -> None:
        """The checks after load must hold: a measurement on wrong data would be worth nothing."""
        with self.diary.phase("check", "checking the loaded data"):
            now = take_snapshot(self.workload, target, self._checking)
            self._learn_checks(judge_load(self.workload, now, reused=report.reused))
        broken = [result for result in self._results if result.verdict == "broken"]
        if broken:
            raise Problems(
                [f"loaded data are not as they should be: {each.detail}" for each in broken],
                hint="load them again with --reload",
            )

    def _prewarm(self, target: Target) -> None:
        with self.diary.phase("prewarm"):
            self.diary.learn(prewarm=prewarm(self.workload, target))

    def _plan(self, server: Server) -> Plan:
        return build_plan(
            self.stored.folder.name,
            self.variant.load,
            (self.workload.transaction_types, self.workload.variables),
            (server.conninfo, self.stored.folder),
        )

    def _measure(self, plan: Plan, server: Server) -> EngineEnd:
        with session(server.conninfo, server.password) as asked:
            self._sizes = read_sizes(asked)
            self._writes = facts.read_settled_writes(asked)
        self.stored.write("sizes.json", self._sizes)
        return measure(plan, server, self.host, self.diary)

    def _check(self, target: Target, before: Snapshot, end: EngineEnd, *, skip: bool) -> None:
        """Judge the data after the measurement; after an interrupt nobody wants to wait for it."""
        if skip:
            return
        with self.diary.phase("check", "checking the data after the measurement"):
            now = take_snapshot(self.workload, target, self._checking)
            counts = None if end.summary is None else counts_of(end.summary)
            self._learn_checks(judge_measurement(self.workload, before, now, counts))

    def _collect(self, server: Server, plan: Plan, end: EngineEnd) -> None:
        """What can still be learnt from the server; one that has died has nothing to say."""
        with self.diary.phase("collect"):
            if server.log is not None:
                shutil.copyfile(server.log, self.stored.folder / "logs" / "server.log")
            try:
                with session(server.conninfo, server.password) as asked:
                    if self._sizes is not None:
                        self.stored.write("sizes.json", with_after(self._sizes, asked))
                    if self._writes is not None:
                        load = facts.LoadFacts.of(plan, end.summary)
                        known = facts.gather(asked, self._writes, load, self._storage)
                        self.diary.learn(durability=classify(known))
            except PgdynoError as error:
                self.diary.notice(f"not collected: {error.message}")

    def _learn_checks(self, results: tuple[CheckResult, ...]) -> None:
        self._results.extend(results)
        self.stored.write("checks.json", Checks(results=tuple(self._results)))

    def _close(self, outcome: TrialOutcome, reason: str | None) -> None:
        self.diary.end()
        self.diary.learn(outcome=outcome, reason=reason)

    def _heard(self, status: LoadStatus) -> None:
        text = status.text
        if status.rows_total and status.share is not None:
            rate = f", {format_count(status.rows_per_s)}/s" if status.rows_per_s else ""
            text = f"{text}: {status.share:.0%} of {format_count(status.rows_total)}{rate}"
        self.progress.step(Step(text=text, share=status.share, left_s=status.left_s))

    def _checking(self, name: str, share: float) -> None:
        self.progress.step(Step(text=f"check {name}", share=share))

    def _server_memory_bytes(self) -> int | None:
        """Memory of the server's host; None for one that cannot be seen from here."""
        stored, placement = self.stored.environment, self.diary.trial.placement
        if stored is None or placement["server"].host != self.host.name:
            return None
        return stored.hosts[0].memory_bytes


def _database_bytes(server: Server) -> int:
    with session(server.conninfo, server.password) as asked:
        return read_sizes(asked).database_bytes_before


def _target(server: Server) -> Target:
    return Target(
        conninfo=server.conninfo,
        password=server.password,
        initdb_options=server.initdb_options,
    )


def _outcome(end: EngineEnd, server: Server) -> tuple[TrialOutcome, str | None]:
    """How the measurement ended, and why where it was not completed."""
    summary = end.summary
    if summary is not None and no_commit_at_all(summary):
        failed = format_count(summary.warmup.failed.other + summary.measurement.failed.other)
        return "failed", f"all {failed} transactions failed: {summary.errors[0].message}"
    if end.status == EXIT_INTERRUPTED or (summary and summary.outcome == "interrupted"):
        return "interrupted", "interrupted; what was measured until then is kept"
    trouble = server_trouble(server)
    if summary is None or summary.outcome != "completed":
        said = (summary.message if summary else None) or end.error or "the engine did not say why"
        return "failed", f"{said}; {trouble}" if trouble else said
    if summary.measurement.committed == 0:
        first = summary.errors[0].message if summary.errors else "no error was seen"
        return "failed", f"no transaction was committed: {first}"
    return "completed", trouble
