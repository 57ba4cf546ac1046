"""The measurement itself: engine and observers side by side, phases as the engine names them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pgdyno.contract import Interval, Plan
from pgdyno.engine import EngineEnd, EngineState, Listener, run_engine
from pgdyno.experiment.diary import Diary
from pgdyno.experiment.hope import Hope
from pgdyno.experiment.progress import Step
from pgdyno.hosts.base import Host
from pgdyno.observers.base import Observer
from pgdyno.observers.host import host_observers
from pgdyno.observers.poolers import pooler_observers
from pgdyno.observers.postgres import postgres_observers
from pgdyno.observers.process import ProcessGroup, ProcessObserver
from pgdyno.observers.replication import primary_observers, standby_observers
from pgdyno.observers.watch import Watching, collect, watch
from pgdyno.servers.base import ENGINE, System
from pgdyno.stats.steady_state import FEWEST_KEPT, Steadiness, steadiness
from pgdyno.units import format_counted

# The rate of what is left of an interval when a phase ends tells nothing below this share of one.
_TELLING = 0.5


@dataclass(slots=True)
class EnginePid:
    """The engine's process number, once it runs: observers are made before it is started."""

    pid: int | None = None


def observers_of(system: System, host: Host, engine: EnginePid) -> tuple[Observer, ...]:
    """Everything that watches a trial: the host, every server, the processes of all roles."""
    groups = [ProcessGroup(role=ENGINE, root=lambda: engine.pid)]
    groups += [
        ProcessGroup(role=role, root=partial(int, pid)) for role, pid in system.processes.items()
    ]
    primary = system.primary
    found = [*host_observers(host), *postgres_observers(primary.conninfo, primary.password)]
    if system.standbys:
        found += primary_observers(primary.conninfo, primary.password)
    for role, standby in system.standbys.items():
        found += postgres_observers(standby.conninfo, standby.password, role=role)
        found += standby_observers(standby.conninfo, standby.password, role=role)
    for pooler in system.poolers.values():
        found += pooler_observers(pooler)
    return (*found, ProcessObserver(host=host, groups=tuple(groups)))


def observer_connections(observers: Sequence[Observer]) -> int:
    """Connections to one server that observers hold during a measurement."""
    return sum(hasattr(observer, "conninfo") for observer in observers)


def measure(plan: Plan, system: System, host: Host, diary: Diary) -> EngineEnd:
    """Run the engine under observation; phases of the trial follow the engine's states.

    Notices of observers are told, their tables collected. A KeyboardInterrupt is passed on to the
    engine, which then ends as `interrupted` with what it has.
    """
    engine = EnginePid()
    observers = observers_of(system, host, engine)
    if plan.warmup_ends == "told":
        # What it takes to judge is read now, so that it does not disturb what is measured.
        steadiness([1.0] * FEWEST_KEPT)
    folder = Path(plan.output_dir) / "observations"
    with watch(observers, folder) as watching:
        follower = _Follower(plan, diary, watching, engine)
        end = run_engine(plan, system.entry, host, follower.listener())
    diary.end()
    for notice in (*watching.notices, *collect(observers, folder)):
        diary.notice(notice)
    return end


class _Follower:
    """Turns the engine's states into phases and its intervals into progress."""

    def __init__(self, plan: Plan, diary: Diary, watching: Watching, engine: EnginePid) -> None:
        self._plan = plan
        self._diary = diary
        self._watching = watching
        self._engine = engine
        self._length_s: float | None = None
        self._began_s = time.monotonic()
        self._hope = Hope(clients=plan.clients)
        self._warmup_per_s: list[float] = []
        self._steadiness: Steadiness | None = None
        self._awaits_steady_state = plan.warmup_ends == "told"

    def listener(self) -> Listener:
        """What the engine tells and asks."""
        return Listener(
            started=self._started,
            state=self._state,
            interval=self._interval,
            hopeless=lambda: self._hope.lost,
            warmed_up=lambda: self._steadiness is not None and self._steadiness.is_steady,
        )

    def _started(self, pid: int) -> None:
        self._engine.pid = pid

    def _state(self, state: EngineState) -> None:
        clients = format_counted(self._plan.clients, "client")
        if state == "warmup":
            until = " until it is steady" if self._awaits_steady_state else ""
            self._begin("warmup", f"warming up with {clients}{until}", self._plan.warmup_s)
        elif state == "measuring":
            if self._awaits_steady_state:
                self._awaits_steady_state = False
                self._diary.end(self._why_warmup_ended())
            self._begin("measure", f"measuring with {clients}", self._plan.duration_s)
        elif state == "draining":
            # One more sample at the exact end of the measurement, before the clients go.
            self._watching.sample_now()

    def _begin(self, name: str, note: str, length_s: float | None) -> None:
        self._diary.begin("warmup" if name == "warmup" else "measure", note)
        self._watching.sample_now()
        self._length_s, self._began_s = length_s, time.monotonic()

    def _why_warmup_ended(self) -> str:
        """The note of a warm-up that lasted until steady state, or as long as it might."""
        passed_s, found = time.monotonic() - self._began_s, self._steadiness
        if found is not None and found.is_steady:
            return f"steady after {passed_s:.0f} s: {found.reason}"
        reason = found.reason if found is not None else "no interval was complete"
        return f"not steady within {self._plan.warmup_s:g} s: {reason}"

    def _watch_warmup(self, interval: Interval, length_s: float) -> None:
        """Judge the throughput since the load began; once it is steady, that stays so."""
        if self._steadiness is None or not self._steadiness.is_steady:
            self._warmup_per_s.append(interval.counters.committed / length_s)
            self._steadiness = steadiness(self._warmup_per_s)

    def _interval(self, interval: Interval) -> None:
        self._hope = self._hope.after(interval)
        length_s = (interval.end_ns - interval.begin_ns) / 1e9
        whole = length_s >= _TELLING * self._plan.interval_s
        if whole and self._awaits_steady_state:
            self._watch_warmup(interval, length_s)
        if not whole:
            return
        passed_s = time.monotonic() - self._began_s
        if self._length_s:
            share = min(passed_s / self._length_s, 1.0)
            text = f"{passed_s:.0f} of {self._length_s:.0f} s"
            step = Step(text=text, share=share, left_s=max(self._length_s - passed_s, 0.0))
        else:
            step = Step(text=f"{passed_s:.0f} s")
        self._diary.progress.interval(interval, step)
