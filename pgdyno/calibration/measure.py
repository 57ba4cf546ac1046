"""Measures the engine's ceiling: the plan's own load against a null server for a few seconds.

Statements, protocol, clients and threads are the plan's; the loop is closed and nobody thinks,
because the question is how much the engine can do. Results of a null server mean nothing, so no
result column is judged, and variables that a script would take from a result get a constant.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.calibration.null_server import NullServerChoice, null_server
from pgdyno.calibration.store import Answer, Calibration, Generator, key_of
from pgdyno.contract import ClosedLoop, Interval, Plan, Summary
from pgdyno.engine import EngineState, Listener, run_engine
from pgdyno.errors import Interrupted, PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.stats.ceiling import Ceiling

_TAKES_RESULTS = re.compile(r"\\(?:gset|aset)\b")
_VARIABLE = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrating:
    """How long, over what, against which answers. `answer`: a query's constant result."""

    warmup_s: float = 0.5
    duration_s: float = 3.0
    tcp: bool = False
    answer: Answer = field(default_factory=Answer)


def calibrate(plan: Plan, generator: Generator, how: Calibrating, host: Host) -> Calibration:
    """Run the plan's load against a null server and say what the engine can do.

    `generator` is what the result is kept under. Raises `PgdynoError` when the engine could not do
    its work or a statement failed, `Interrupted` after Ctrl-C.
    """
    with tempfile.TemporaryDirectory(prefix="pgdyno-calibrate-") as folder:
        (Path(folder) / "logs").mkdir()
        choice = NullServerChoice(tcp=how.tcp, answer=how.answer)
        with null_server(choice, host) as server:
            load = load_of(plan, how)
            load = load.model_copy(update={"conninfo": server.conninfo, "output_dir": folder})
            end = run_engine(load, server.as_server(host), host, _SILENT)
            server_cpu_ns = server.report().cpu_ns
    summary = end.summary
    if summary is not None and summary.outcome == "interrupted":
        raise Interrupted("the calibration was interrupted")
    if summary is None or summary.outcome != "completed":
        words = end.error or (summary.message if summary else None) or f"status {end.status}"
        raise PgdynoError(f"the engine could not be calibrated: {words}")
    return Calibration(
        key=key_of(plan, generator, how.answer),
        name=plan.name,
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        generator=generator,
        protocol=plan.protocol,
        answer=how.answer,
        ceiling=ceiling_in(summary, server_cpu_ns),
    )


def load_of(plan: Plan, how: Calibrating) -> Plan:
    r"""The plan's load as it is put on a null server.

    >>> from pgdyno.contract import TransactionType
    >>> kind = TransactionType(name="a", weight=1, source="a.sql",
    ...     script="SELECT x FROM t \\gset\nSELECT :x, :y;")
    >>> plan = Plan(name="n", conninfo="", clients=1, seed=1, output_dir="", duration_s=1.0,
    ...     variables={"y": "2"}, transaction_types=(kind,))
    >>> load_of(plan, Calibrating()).variables
    {'x': '1', 'y': '2'}
    """
    kinds = tuple(each.model_copy(update={"failure": None}) for each in plan.transaction_types)
    taken = {
        name: "1"
        for kind in kinds
        if _TAKES_RESULTS.search(kind.script)
        for name in _VARIABLE.findall(kind.script)
    }
    return plan.model_copy(
        update={
            "load": ClosedLoop(),
            "warmup_s": how.warmup_s,
            "duration_s": how.duration_s,
            "transactions_per_client": None,
            "variables": taken | plan.variables,
            "transaction_types": kinds,
        }
    )


def ceiling_in(summary: Summary, server_cpu_ns: int) -> Ceiling:
    """What a measurement against a null server says about the engine."""
    counters, cost = summary.measurement, summary.own_cost
    if counters.failed.total or counters.unknown:
        told = f": {summary.errors[0].message}" if summary.errors else ""
        raise PgdynoError(
            f"{counters.failed.total + counters.unknown} transactions failed "
            f"on the null server{told}",
            hint="it has no tables and no COPY: a script that needs them cannot be calibrated",
        )
    throughput_per_s, measured_s = summary.throughput_per_s, summary.measured_s
    if not throughput_per_s or not measured_s or cost is None:
        raise PgdynoError("the engine finished no transaction in the time given")
    return Ceiling(
        throughput_per_s=throughput_per_s,
        transactions=counters.committed,
        cpu_ns=cost.cpu_user_ns + cost.cpu_sys_ns,
        server_cpu_ns=server_cpu_ns,
        clients=summary.clients_asked,
        threads=summary.engine.threads,
        reactor=summary.engine.reactor,
        measured_s=measured_s,
    )


def _ignore_pid(_pid: int) -> None: ...


def _ignore_state(_state: EngineState) -> None: ...


def _ignore_interval(_interval: Interval) -> None: ...


def _never() -> bool:
    return False


_SILENT = Listener(
    started=_ignore_pid, state=_ignore_state, interval=_ignore_interval, hopeless=_never
)
