"""Conducts one trial: its server with the loaded data → command before → prewarm → checkpoint →
warm-up → measure → check → collect.

The one place where servers, workloads, engine, observers and store meet. Whatever happens, the
trial's documents say how far it came, and what was started is stopped: every phase writes what it
learnt when it learnt it, and the server is a context that always ends.
"""

from __future__ import annotations

import shutil

from pgdyno.contract import Plan
from pgdyno.durability.classes import classify
from pgdyno.engine import EngineEnd, build_plan
from pgdyno.errors import EXIT_INTERRUPTED, PgdynoError
from pgdyno.experiment.before import run_before
from pgdyno.experiment.context import Context, target_of
from pgdyno.experiment.generator_use import generator_use
from pgdyno.experiment.hope import no_commit_at_all
from pgdyno.experiment.measuring import measure
from pgdyno.experiment.preparing import snapshot_of
from pgdyno.experiment.settling import settle
from pgdyno.experiment.staging import Staging
from pgdyno.experiment.surroundings import catch_up, prewarm_standbys
from pgdyno.model import Sizes, TrialOutcome
from pgdyno.observers import durability_facts as facts
from pgdyno.observers.session import session
from pgdyno.observers.sizes import read_sizes, with_after
from pgdyno.servers.base import Server, System
from pgdyno.servers.trouble import server_trouble
from pgdyno.units import format_count
from pgdyno.workloads.judging import Snapshot, counts_of, judge_measurement
from pgdyno.workloads.prewarming import prewarm


class Conduct:
    """One trial under way. `run` does it all; the methods are its phases, in their order."""

    def __init__(self, context: Context, staging: Staging) -> None:
        self.context = context
        self.stored = context.stored
        self.variant = context.variant
        self.workload = context.workload
        self.diary = context.diary
        self.staging = staging
        self._sizes: Sizes | None = None
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
        with self.staging.ready(self.context) as system:
            server = system.primary
            if self.variant.before is not None:
                run_before(self.context, self.variant.before, server)
            if self.variant.load.prewarm:
                self._prewarm(server)
                prewarm_standbys(self.context, system)
            before = self._snapshot(server)
            settle(self.context, server)
            catch_up(self.context, system)
            plan = self._plan(system.entry)
            end = self._measure(plan, system)
            outcome, reason = _outcome(end, system)
            self._check(server, before, end, skip=outcome == "interrupted")
            self._keep_logs(system)
            self._collect(server, plan, end)
            self._judge_generator(plan, end)
            # From here on the trial is whole, whatever happens to what is left of its server.
            self._close(outcome, reason)
            self.diary.begin("reset", "stopping the server" if server.private else "cleaning up")
        self.diary.end()

    def _prewarm(self, server: Server) -> None:
        with self.diary.phase("prewarm"):
            self.diary.learn(prewarm=prewarm(self.workload, target_of(server)))

    def _snapshot(self, server: Server) -> Snapshot:
        """What the checks find in the data before the measurement."""
        if self.context.snapshot is not None:
            return self.context.snapshot
        with self.diary.phase("check", "looking at the data before the measurement"):
            return snapshot_of(self.context, server)

    def _plan(self, server: Server) -> Plan:
        return build_plan(
            self.stored.folder.name,
            self.variant.load,
            (self.workload.transaction_types, self.workload.variables),
            (server.conninfo, self.stored.folder),
        )

    def _measure(self, plan: Plan, system: System) -> EngineEnd:
        with session(system.primary.conninfo, system.primary.password) as asked:
            self._sizes = read_sizes(asked)
            self._writes = facts.read_settled_writes(asked)
        self.stored.write("sizes.json", self._sizes)
        return measure(plan, system, self.context.host, self.diary)

    def _check(self, server: Server, before: Snapshot, end: EngineEnd, *, skip: bool) -> None:
        """Judge the data after the measurement; after an interrupt nobody wants to wait for it."""
        if skip:
            return
        with self.diary.phase("check", "checking the data after the measurement"):
            now = snapshot_of(self.context, server)
            counts = None if end.summary is None else counts_of(end.summary)
            self.diary.checked(judge_measurement(self.workload, before, now, counts))

    def _keep_logs(self, system: System) -> None:
        """What every server and pooler said: `server.log` is the one's that takes the writes."""
        logs = {role: server.log for role, server in system.standbys.items()}
        logs |= {role: pooler.log for role, pooler in system.poolers.items()}
        with self.diary.phase("collect"):
            for name, log in {"server": system.primary.log, **logs}.items():
                if log is not None:
                    shutil.copyfile(log, self.stored.folder / "logs" / f"{name}.log")

    def _collect(self, server: Server, plan: Plan, end: EngineEnd) -> None:
        """What can still be learnt from the server; one that has died has nothing to say."""
        with self.diary.phase("collect"):
            try:
                with session(server.conninfo, server.password) as asked:
                    if self._sizes is not None:
                        self.stored.write("sizes.json", with_after(self._sizes, asked))
                    if self._writes is not None:
                        load = facts.LoadFacts.of(plan, end.summary)
                        known = facts.gather(asked, self._writes, load, self.context.storage)
                        self.diary.learn(durability=classify(known))
            except PgdynoError as error:
                self.diary.notice(f"not collected: {error.message}")

    def _judge_generator(self, plan: Plan, end: EngineEnd) -> None:
        """What the measurement took of the generator; the server has no part in that."""
        if end.summary is not None:
            use = generator_use(plan, end.summary, self.variant, self.context.host)
            self.diary.learn(generator=use)

    def _close(self, outcome: TrialOutcome, reason: str | None) -> None:
        """Write down how the trial ended, once."""
        self.diary.end()
        if self.diary.trial.outcome is None:
            self.diary.learn(outcome=outcome, reason=reason)


def _outcome(end: EngineEnd, system: System) -> tuple[TrialOutcome, str | None]:
    """How the measurement ended, and why where it was not completed."""
    summary = end.summary
    if summary is not None and no_commit_at_all(summary):
        failed = format_count(summary.warmup.failed.other + summary.measurement.failed.other)
        return "failed", f"all {failed} transactions failed: {summary.errors[0].message}"
    if end.status == EXIT_INTERRUPTED or (summary and summary.outcome == "interrupted"):
        return "interrupted", "interrupted; what was measured until then is kept"
    troubles = [server_trouble(server) for server in system.servers.values()]
    trouble = "; ".join(one for one in troubles if one) or None
    if summary is None or summary.outcome != "completed":
        said = (summary.message if summary else None) or end.error or "the engine did not say why"
        return "failed", f"{said}; {trouble}" if trouble else said
    if summary.measurement.committed == 0:
        first = summary.errors[0].message if summary.errors else "no error was seen"
        return "failed", f"no transaction was committed: {first}"
    return "completed", trouble
