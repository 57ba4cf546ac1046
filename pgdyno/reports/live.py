"""The view while it runs: a moving line in a terminal, plain lines everywhere else.

Everything goes to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from pgdyno.contract import Interval
from pgdyno.experiment.phases import ABOUT, spoken
from pgdyno.experiment.progress import Place, Step
from pgdyno.experiment.progress import Progress as Watcher
from pgdyno.model import PhaseName
from pgdyno.units import format_count, format_duration_ns, format_duration_s, format_per_s

# Without a terminal a line this often is enough to see that it lives.
_PLAIN_EVERY_S = 5.0
_BRIEF_EVERY_S = 60.0
# Of more trials than that, each is told in one line where lines stay.
_TRIALS_IN_FULL = 8
_NOTHING_LEFT_S = 0.5
_ROOMY = 100


def new_live(stream: TextIO = sys.stderr) -> Watcher:
    """The view that fits where standard error goes."""
    return Moving(stream) if stream.isatty() else Plain(stream)


def interval_text(interval: Interval) -> str:
    """Throughput and response time of one interval, for one line."""
    length_s = (interval.end_ns - interval.begin_ns) / 1e9
    times = interval.times.response or interval.times.service
    rate = interval.counters.committed / length_s if length_s > 0 else 0.0
    parts = [format_per_s(rate)]
    if times.count:
        parts.append(f"p99 {format_duration_ns(times.p99_ns)}")
    failed, unknown = interval.counters.failed.total, interval.counters.unknown
    if failed:
        parts.append(f"{format_count(failed)} failed")
    if unknown:
        parts.append(f"{format_count(unknown)} unknown")
    return ", ".join(parts)


def place_text(place: Place) -> str:
    """Where a trial stands, for one line: `trial 3 of 20, block 2: off; 9 min 20 s left`."""
    number = f"trial {place.number}" + (f" of {place.last}" if place.last is not None else "")
    left = format_duration_s(place.left_s)
    return f"{number}, block {place.block}: {place.variant}; about {left} left"


class Plain:
    """One line a phase, and one every few seconds of a long one.

    In an experiment of many trials: one line a trial, and one every minute of a long phase.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._phase: PhaseName | None = None
        self._said_at_s = 0.0
        self._brief = False
        self._last_phase = ""

    def trial(self, place: Place) -> None:
        """Say which trial begins, and how long all of it takes."""
        # A resumed experiment may be near its end: what it is as a whole counts.
        self._brief = self._brief or place.last is None or place.last > _TRIALS_IN_FULL
        self._said_at_s, self._last_phase = time.monotonic(), ""
        self._say(place_text(place))

    def phase(self, name: PhaseName, note: str) -> None:
        """Say that a phase begins, once."""
        self._phase = name
        text = f"{spoken(name)}: {note or ABOUT[name]}"
        if not self._brief and text != self._last_phase:
            self._said_at_s = time.monotonic()
            self._say(text)
        self._last_phase = text

    def step(self, step: Step) -> None:
        """Say how far it has come, not more often than every few seconds."""
        every_s = _BRIEF_EVERY_S if self._brief else _PLAIN_EVERY_S
        if time.monotonic() - self._said_at_s >= every_s:
            self._said_at_s = time.monotonic()
            self._say(f"{self._name()}: {_step_text(step)}")

    def interval(self, interval: Interval, step: Step) -> None:
        """Say what the interval showed, not more often than every few seconds."""
        self.step(Step(text=f"{step.text}: {interval_text(interval)}", left_s=step.left_s))

    def notice(self, text: str) -> None:
        """Say it at once."""
        self._say(f"notice: {text}")

    def end(self) -> None:
        """Nothing is left to close."""

    def _name(self) -> str:
        return spoken(self._phase) if self._phase is not None else "trial"

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Moving:
    """One line that moves: phase, bar, what is happening, time left; finished phases stay above."""

    def __init__(self, stream: TextIO) -> None:
        console = Console(file=stream)
        self._progress = Progress(
            # In a narrow terminal the words give way before the phase does.
            TextColumn("{task.fields[phase]:<9}", style="bold", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=20 if console.width >= _ROOMY else 10),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1)),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._phase: PhaseName | None = None
        self._began_s = 0.0
        self._last_text = ""
        self._progress.start()

    def trial(self, place: Place) -> None:
        """Head the trial's lines with its place."""
        self._close()
        self._progress.console.print(place_text(place), style="bold", markup=False, highlight=False)

    def phase(self, name: PhaseName, note: str) -> None:
        """Leave a line for the last phase and begin the next."""
        self._close()
        self._phase, self._began_s, self._last_text = name, time.monotonic(), note
        self._task = self._progress.add_task(note or ABOUT[name], total=None, phase=spoken(name))

    def step(self, step: Step) -> None:
        """Move the bar."""
        if self._task is not None:
            total = None if step.share is None else 1.0
            self._progress.update(
                self._task, description=_step_text(step), total=total, completed=step.share or 0.0
            )

    def interval(self, interval: Interval, step: Step) -> None:
        """Show the interval beside the bar."""
        self._last_text = interval_text(interval)
        self.step(Step(text=self._last_text, share=step.share, left_s=step.left_s))

    def notice(self, text: str) -> None:
        """Print it above the moving line."""
        self._progress.console.print(f"notice: {text}", markup=False, highlight=False)

    def end(self) -> None:
        """Give the terminal back."""
        self._close()
        self._progress.stop()

    def _close(self) -> None:
        if self._task is not None and self._phase is not None:
            took = format_duration_s(time.monotonic() - self._began_s)
            line = f"{spoken(self._phase):<9} {took:>12}  {self._last_text}".rstrip()
            self._progress.console.print(line, markup=False, highlight=False)
            self._progress.remove_task(self._task)
            self._task = None


def _step_text(step: Step) -> str:
    if step.left_s is None or step.left_s < _NOTHING_LEFT_S:
        return step.text
    return f"{step.text}, {format_duration_s(step.left_s)} left"
