"""Sees to it that a workload's data are in a database and right, as phases of a trial."""

from __future__ import annotations

import os

from pgdyno.engine import find_engine
from pgdyno.errors import Problems
from pgdyno.experiment.context import Context, target_of
from pgdyno.experiment.progress import Step
from pgdyno.model import LoadReport
from pgdyno.servers.base import Server
from pgdyno.units import format_count
from pgdyno.workloads.checking import take_snapshot
from pgdyno.workloads.judging import Snapshot, judge_load
from pgdyno.workloads.loading import LoadRequest, LoadStatus, load
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.state import identify


def load_data(context: Context, server: Server, *, reload: bool) -> LoadReport:
    """Load the data, or use again what is there and fits. The checks after load must hold.

    Raises `Problems` where they do not: a measurement on wrong data would be worth nothing.
    """
    target, diary = target_of(server), context.diary
    with diary.phase("load"):
        loader = Loader(
            engine=find_engine(), host=context.host, connections=len(os.sched_getaffinity(0))
        )
        request = LoadRequest(
            target=target,
            loader=loader,
            reload=reload,
            memory_bytes=_server_memory_bytes(context),
        )
        report = load(context.workload, request, lambda status: _heard(context, status))
        diary.learn(load=report, state=identify(context.workload, target))
    with diary.phase("check", "checking the loaded data"):
        context.snapshot = snapshot_of(context, server)
        results = judge_load(context.workload, context.snapshot, reused=report.reused)
        diary.checked(results)
    broken = [result for result in results if result.verdict == "broken"]
    if broken:
        raise Problems(
            [f"loaded data are not as they should be: {each.detail}" for each in broken],
            hint="load them again with --reload",
        )
    return report


def snapshot_of(context: Context, server: Server) -> Snapshot:
    """What the workload's checks find in the data now."""

    def listener(name: str, share: float) -> None:
        context.diary.progress.step(Step(text=f"check {name}", share=share))

    return take_snapshot(context.workload, target_of(server), listener)


def _heard(context: Context, status: LoadStatus) -> None:
    text = status.text
    if status.rows_total and status.share is not None:
        rate = f", {format_count(status.rows_per_s)}/s" if status.rows_per_s else ""
        text = f"{text}: {status.share:.0%} of {format_count(status.rows_total)}{rate}"
    context.diary.progress.step(Step(text=text, share=status.share, left_s=status.left_s))


def _server_memory_bytes(context: Context) -> int | None:
    """Memory of the server's host; None for one that cannot be seen from here."""
    stored, place = context.stored.environment, context.diary.trial.server_place
    if stored is None or place is None or place.host != context.host.name:
        return None
    return stored.hosts[0].memory_bytes
