"""A trial's diary: `trial.json`, rewritten whenever a phase begins or ends or something is learnt.

The one place that changes what is on disk about a running trial, so that a kill at any moment
leaves a document that says how far it came.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pgdyno.experiment.phases import begin_phase, end_phase
from pgdyno.experiment.progress import Progress
from pgdyno.experiment.store import StoredTrial
from pgdyno.model import CheckResult, Checks, PhaseName, Trial


class Diary:
    """Keeps `trial.json` of one trial up to date and tells the watcher about phases."""

    def __init__(self, stored: StoredTrial, progress: Progress) -> None:
        self.stored = stored
        self.progress = progress
        self._trial = stored.trial
        self._began_s = time.monotonic()
        self._checks: tuple[CheckResult, ...] = ()

    @property
    def trial(self) -> Trial:
        """The trial as written last."""
        return self._trial

    def learn(self, **changes: Any) -> None:
        """Write changed fields of the trial."""
        self._write(self._trial.model_copy(update=changes))

    def checked(self, results: tuple[CheckResult, ...]) -> None:
        """Write what checks found, beside what they found before."""
        self._checks += results
        self.stored.write("checks.json", Checks(results=self._checks))

    def notice(self, text: str) -> None:
        """Keep and tell something that went wrong and stops nothing."""
        self.learn(notices=(*self._trial.notices, text))
        self.progress.notice(text)

    def begin(self, name: PhaseName, note: str = "") -> None:
        """End the phase under way, if any, and begin the next."""
        ended = end_phase(self._trial, self._now_s())
        self._write(begin_phase(ended, name, self._now_s()))
        self.progress.phase(name, note)

    def end(self, note: str | None = None) -> None:
        """End the phase under way."""
        self._write(end_phase(self._trial, self._now_s(), note))

    @contextmanager
    def phase(self, name: PhaseName, note: str = "") -> Iterator[None]:
        """A phase that lasts as long as the block."""
        self.begin(name, note)
        try:
            yield
        finally:
            self.end()

    def _now_s(self) -> float:
        return round(time.monotonic() - self._began_s, 3)

    def _write(self, trial: Trial) -> None:
        if trial != self._trial:
            self._trial = trial
            self.stored.write("trial.json", trial)
