"""Runs observers beside a measurement, each on its own thread, and writes what they see at once.

    with watch(observers, folder) as watching:
        …                                   # measure; watching.recent("host_cpu") for a live view
    watching.notices                        # what went wrong, one sentence each; never fatal
    collect(observers, folder)              # JSON lines → Parquet

Every observer samples when the watch begins, at begin + k × its resolution, and when the watch
ends, so counters always have a value before and one after. A sample that takes longer than the
resolution skips the moments it missed instead of pushing later ones back. Rows are appended to
`<name>.jsonl` and flushed one sample at a time: after a kill the file ends, at worst, in half a
line.
`sample_now` asks everybody for one more sample, for a moment that matters (warm-up over).
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from pgdyno.errors import PgdynoError
from pgdyno.observers.base import Observer, Row
from pgdyno.observers.collect import collect

__all__ = ["Sample", "Watching", "collect", "watch"]

EXPECTED_ERRORS: Final = (PgdynoError, OSError, ValueError, LookupError)
_FIRST_DEADLINE_S = 10.0
_END_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The rows of one moment and when that was, on the monotonic and on the wall clock."""

    monotonic_ns: int
    wall_unix_ns: int
    rows: tuple[Row, ...]


class _Watcher(threading.Thread):
    """One observer's thread. `failed` counts samples that raised; `why` is the last reason.

    `broke_off`: it ended by an error that nobody expected, a defect; its traceback is printed.
    """

    def __init__(self, observer: Observer, path: Path) -> None:
        super().__init__(name=f"observer-{observer.table.name}", daemon=True)
        self.observer = observer
        self.samples = 0
        self.failed = 0
        self.why = ""
        self.broke_off = False
        self.sampled = threading.Event()
        self.recent: deque[Sample] = deque(maxlen=2)
        self._path = path
        self._wake = threading.Condition()
        self._asked = False
        self._ending = False

    def run(self) -> None:
        """Sample until told to end, and once more then."""
        self.broke_off = True
        try:
            with self._path.open("a", encoding="utf-8") as file:
                begin_s = time.monotonic()
                self._sample(file)
                while self._wait_for_turn(begin_s):
                    self._sample(file)
                self._sample(file)
            self.broke_off = False
        except OSError as error:
            # The file cannot be opened or closed (a full disk): the others go on.
            self.failed, self.why, self.broke_off = self.failed + 1, str(error), False
        finally:
            self.sampled.set()

    def ask(self) -> None:
        """Ask for a sample out of turn."""
        with self._wake:
            self._asked = True
            self._wake.notify()

    def ask_to_end(self) -> None:
        """Ask for the last sample."""
        with self._wake:
            self._ending = True
            self._wake.notify()

    def _wait_for_turn(self, begin_s: float) -> bool:
        """Wait for the next moment on the grid or for a request; False when it is time to end."""
        resolution_s = self.observer.resolution_s
        with self._wake:
            timeout_s = None
            if resolution_s is not None:
                elapsed_s = time.monotonic() - begin_s
                timeout_s = resolution_s - elapsed_s % resolution_s
            self._wake.wait_for(lambda: self._asked or self._ending, timeout_s)
            self._asked = False
            return not self._ending

    def _sample(self, file: IO[str]) -> None:
        monotonic_ns, wall_unix_ns = time.monotonic_ns(), time.time_ns()
        self.samples += 1
        try:
            rows = tuple(self.observer.sample())
            stamp = {"monotonic_ns": monotonic_ns, "wall_unix_ns": wall_unix_ns}
            file.write("".join(json.dumps({**stamp, **row}) + "\n" for row in rows))
            file.flush()
        except EXPECTED_ERRORS as error:
            self.failed += 1
            self.why = str(error).splitlines()[0] if str(error) else type(error).__name__
        else:
            self.recent.append(
                Sample(monotonic_ns=monotonic_ns, wall_unix_ns=wall_unix_ns, rows=rows)
            )
        self.sampled.set()


class Watching:
    """A watch under way, or ended."""

    def __init__(self, observers: Sequence[Observer], folder: Path) -> None:
        self._watchers: dict[str, _Watcher] = {}
        self._left_out: list[str] = []
        self._late: list[str] = []
        for observer in observers:
            name = observer.table.name
            if name in self._watchers:
                self._left_out.append(f"observer '{name}' is left out: there are two of that name")
                continue
            self._watchers[name] = _Watcher(observer, folder / f"{name}.jsonl")

    @property
    def notices(self) -> tuple[str, ...]:
        """What went wrong so far, one sentence each."""
        failing = [
            f"observer '{name}' missed {watcher.failed} of {watcher.samples} samples: {watcher.why}"
            for name, watcher in self._watchers.items()
            if watcher.failed
        ]
        broken = [
            f"observer '{name}' stopped after {watcher.samples} samples: it has a defect"
            for name, watcher in self._watchers.items()
            if watcher.broke_off and not watcher.is_alive()
        ]
        return (*self._left_out, *failing, *broken, *self._late)

    @property
    def names(self) -> tuple[str, ...]:
        """Tables that are being filled."""
        return tuple(self._watchers)

    def recent(self, name: str) -> tuple[Sample, ...]:
        """The newest two samples of a table at most, older first: enough for a live rate."""
        watcher = self._watchers.get(name)
        return () if watcher is None else tuple(watcher.recent)

    def sample_now(self) -> None:
        """Ask every observer for a sample at once; does not wait for them."""
        for watcher in self._watchers.values():
            watcher.ask()

    def begin(self) -> None:
        """Open the observers, start their threads, and wait until each has sampled once."""
        for name, watcher in list(self._watchers.items()):
            try:
                watcher.observer.begin()
            except EXPECTED_ERRORS as error:
                self._left_out.append(f"observer '{name}' is left out: {error}")
                del self._watchers[name]
        for watcher in self._watchers.values():
            watcher.start()
        deadline_s = time.monotonic() + _FIRST_DEADLINE_S
        for name, watcher in self._watchers.items():
            if not watcher.sampled.wait(max(0.0, deadline_s - time.monotonic())):
                self._late.append(
                    f"observer '{name}' had no sample {_FIRST_DEADLINE_S:.0f} s after it began"
                )

    def end(self) -> None:
        """Take the last samples, end the threads and close the observers."""
        for watcher in self._watchers.values():
            watcher.ask_to_end()
        deadline_s = time.monotonic() + _END_DEADLINE_S
        for name, watcher in self._watchers.items():
            # Interrupted while it began, a watch has threads that were never started.
            if watcher.ident is not None:
                watcher.join(max(0.0, deadline_s - time.monotonic()))
            if watcher.is_alive():
                # Closing what a thread still uses would only change how it fails.
                self._late.append(f"observer '{name}' did not end in {_END_DEADLINE_S:.0f} s")
                continue
            try:
                watcher.observer.end()
            except EXPECTED_ERRORS as error:
                self._late.append(f"observer '{name}' did not close: {error}")


@contextmanager
def watch(observers: Sequence[Observer], folder: Path) -> Iterator[Watching]:
    """Watch for as long as the block lasts; JSON lines go to `folder`, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    watching = Watching(observers, folder)
    try:
        watching.begin()
        yield watching
    finally:
        watching.end()
