"""The engine as the lab sees it: build its plan, check it, run it, read what it wrote.

The engine is a process of its own (`pgdyno-engine`). Its files are the result; the events on its
standard output are a lossy copy for whoever watches, so nothing here can slow it down.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pgdyno.contract import (
    ClosedLoop,
    Interval,
    Load,
    OpenLoop,
    PartlyOpenLoop,
    Plan,
    Reconnect,
    Summary,
    TransactionType,
)
from pgdyno.errors import PgdynoError, Problems
from pgdyno.hosts.base import Command, Host, Process
from pgdyno.hosts.following import NOTHING_YET, Lines, engine_words
from pgdyno.model import LoadChoice
from pgdyno.servers.base import Server

EngineState = Literal["connecting", "warmup", "measuring", "draining", "done"]
_STATUS_INVALID = 2

# Beyond its own deadlines the engine gets this long to write its files before it is killed.
_GRACE_S = 20.0
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEnd:
    """How the engine ended. `error` holds its own words where it could not do its work."""

    status: int
    summary: Summary | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who hears the events while the engine runs. `started` is told the engine's process number.

    `hopeless` and `warmed_up` are asked after every event; once they say yes, the engine is told to
    end, or to end the warm-up.
    """

    started: Callable[[int], None]
    state: Callable[[EngineState], None]
    interval: Callable[[Interval], None]
    hopeless: Callable[[], bool]
    warmed_up: Callable[[], bool] = lambda: False


def find_engine() -> Path:
    """The engine's executable: PGDYNO_ENGINE, beside this Python's own commands, or on PATH."""
    named = os.environ.get("PGDYNO_ENGINE")
    candidates = [Path(named)] if named else []
    candidates.append(Path(sysconfig.get_path("scripts")) / "pgdyno-engine")
    on_path = shutil.which("pgdyno-engine")
    candidates += [Path(on_path)] if on_path else []
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise PgdynoError(
        "pgdyno-engine is not installed",
        hint="install the package again (pip install .) or name the file with PGDYNO_ENGINE",
    )


def build_plan(
    name: str,
    load: LoadChoice,
    workload: tuple[tuple[TransactionType, ...], Mapping[str, str]],
    target: tuple[str, Path],
) -> Plan:
    """The plan of one trial.

    `workload` is its transaction types and variables, `target` the conninfo (without password) and
    the trial's folder.
    """
    transaction_types, variables = workload
    conninfo, folder = target
    return Plan(
        name=name,
        conninfo=conninfo,
        protocol=load.protocol,
        clients=load.clients,
        threads=load.threads,
        cpus=load.cpus,
        seed=load.seed,
        load=_shape(load),
        response_time_limit_s=load.response_time_limit_s,
        warmup_s=load.warmup_s,
        warmup_ends="told" if load.steady_warmup and load.warmup_s > 0 else "time",
        duration_s=load.duration_s,
        transactions_per_client=load.transactions_per_client,
        interval_s=load.interval_s,
        min_clients=load.min_clients,
        statement_timeout_s=load.statement_timeout_s,
        retry=load.retry,
        on_connection_loss="abort" if load.reconnect is None else "reconnect",
        reconnect=load.reconnect or Reconnect(),
        transaction_log=load.transaction_log,
        history=load.history,
        variables=dict(variables),
        transaction_types=transaction_types,
        output_dir=str(folder.absolute()),
    )


def check_plan(plan: Plan, host: Host) -> None:
    """Let the engine read plan and scripts without running them; raises `Problems` it finds."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-check-") as folder:
        path = Path(folder) / "plan.json"
        path.write_text(plan.model_dump_json())
        completed = host.run(
            Command(words=[str(find_engine()), "check", str(path)]), deadline_s=30.0
        )
    if completed.status == _STATUS_INVALID:
        text = engine_words(completed.error)
        raise Problems(text.splitlines(), hint=None)
    if completed.status != 0:
        raise PgdynoError(f"the engine could not check its plan: {engine_words(completed.error)}")


def run_engine(plan: Plan, server: Server, host: Host, listener: Listener) -> EngineEnd:
    """Run the engine to its end and read its summary.

    Ctrl-C (KeyboardInterrupt) is passed on: the engine finishes what is in flight and writes its
    files, then the interrupt is visible as outcome `interrupted`. A second one kills it.
    """
    folder = Path(plan.output_dir)
    (folder / "plan.json").write_text(plan.model_dump_json(indent=2) + "\n")
    log = folder / "logs" / "engine.log"
    environment = {"PGPASSWORD": server.password} if server.password else {}
    command = Command(
        words=[str(find_engine()), "run", str(folder / "plan.json"), "--events", "1"],
        environment=environment,
    )
    process = host.start(command, log=log, pipe=True)
    listener.started(process.pid)
    try:
        status = _follow(process, _deadline_s(plan), listener)
    except BaseException:
        process.send(signal.SIGKILL)
        process.wait(deadline_s=10.0)
        raise
    summary_file = folder / "summary.json"
    summary = (
        Summary.model_validate_json(summary_file.read_bytes()) if summary_file.exists() else None
    )
    error = engine_words(log.read_text(errors="replace")) if log.exists() else ""
    return EngineEnd(status=status, summary=summary, error=error or None)


def _follow(process: Process, deadline_s: float | None, listener: Listener) -> int:
    """Pass events on until the engine has ended; enforce the deadline."""
    lines = Lines(process)
    end = None if deadline_s is None else time.monotonic() + deadline_s
    interrupted = given_up = told = False
    while True:
        try:
            line = lines.take(_POLL_S)
            if line is None:
                return process.wait(deadline_s=_GRACE_S)
            if line != NOTHING_YET:
                _tell(line, listener)
                if not given_up and not interrupted and listener.hopeless():
                    given_up = True
                    process.send(signal.SIGINT)
                if not told and listener.warmed_up():
                    told = True
                    process.send(signal.SIGUSR1)
            elif end is not None and time.monotonic() > end:
                process.send(signal.SIGKILL)
                raise PgdynoError(
                    f"the engine did not end within {deadline_s:.0f} s and was killed",
                    hint="what it measured until then is in intervals.jsonl of the trial's folder",
                )
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            process.send(signal.SIGINT)


def _tell(line: bytes, listener: Listener) -> None:
    try:
        event: Any = json.loads(line)
        if event["event"] == "state":
            listener.state(event["state"])
        elif event["event"] == "interval":
            listener.interval(Interval.model_validate(event["interval"]))
    except (ValueError, KeyError, TypeError, ValidationError):
        # The copy on the pipe is lossy by design: half a line is skipped, the file has it whole.
        return


def _deadline_s(plan: Plan) -> float | None:
    """Seconds after which an engine with this plan has hung for certain; None without a length."""
    if plan.duration_s is None:
        return None
    own_s = plan.connect_deadline_s + plan.warmup_s + plan.duration_s + plan.drain_deadline_s
    return own_s + _GRACE_S


def _shape(load: LoadChoice) -> Load:
    if load.sessions is not None:
        return PartlyOpenLoop(
            sessions_per_s=load.sessions.rate_per_s,
            transactions_per_session=load.sessions.transactions,
            arrival=load.arrival,
            backlog_limit_s=load.backlog_limit_s,
            think_time_s=load.think_time_s,
            think_time=load.think_time,
        )
    if load.rate_per_s is not None or load.stages:
        return OpenLoop(
            rate_per_s=load.rate_per_s,
            stages=load.stages,
            arrival=load.arrival,
            schedule=load.schedule,
            backlog_limit_s=load.backlog_limit_s,
        )
    return ClosedLoop(think_time_s=load.think_time_s, think_time=load.think_time)
