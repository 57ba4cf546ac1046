"""What a running experiment tells whoever watches it, and the watcher that says nothing.

The runner calls these verbs from one thread; an implementation must never raise or wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pgdyno.contract import Interval
from pgdyno.model import PhaseName


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a phase has come. `share` is in [0, 1]; `left_s` None where nobody can know."""

    text: str
    share: float | None = None
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a trial stands in its experiment. `last` None: nobody knows how many there will be.

    `left_s` is the time left of the whole experiment, this trial included.
    """

    number: int
    last: int | None
    block: int
    variant: str
    left_s: float


class Progress(Protocol):
    """Somebody who is told how it goes."""

    def trial(self, place: Place) -> None:
        """A trial begins; not told where an experiment has but one."""
        ...

    def phase(self, name: PhaseName, note: str) -> None:
        """A phase begins."""
        ...

    def step(self, step: Step) -> None:
        """A phase has come further."""
        ...

    def interval(self, interval: Interval, step: Step) -> None:
        """The engine finished an interval."""
        ...

    def notice(self, text: str) -> None:
        """Something worth knowing that stops nothing."""
        ...

    def end(self) -> None:
        """Nothing more will come."""
        ...


class Silent:
    """Says nothing."""

    def trial(self, place: Place) -> None:
        """Nothing is said."""

    def phase(self, name: PhaseName, note: str) -> None:
        """Nothing is said."""

    def step(self, step: Step) -> None:
        """Nothing is said."""

    def interval(self, interval: Interval, step: Step) -> None:
        """Nothing is said."""

    def notice(self, text: str) -> None:
        """Nothing is said."""

    def end(self) -> None:
        """Nothing is said."""
