"""The protocol of an observer, and the smallest complete one.

An observer produces rows of one table. `sample` is called every `resolution_s` on a thread of the
observer's own (`watch.py`), so a slow source delays nobody else. Counters are stored as read, not
as differences: a rate is computed when it is shown, and a missed sample loses nothing.

>>> observer = Noop()
>>> observer.begin(); list(observer.sample()); observer.end()
[]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Value = int | float | str | None
Row = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table. `counter`: only ever grows; `gauge`: a value of its time."""

    name: str
    unit: str
    kind: Literal["counter", "gauge", "label"]
    about: str
    type: Literal["integer", "real", "text"] = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The shape of what an observer writes: `observations/<name>.parquet`.

    Every row also gets `monotonic_ns` and `wall_unix_ns`, read beside the sample.
    """

    name: str
    about: str
    columns: tuple[Column, ...]


class Observer(Protocol):
    """Something that watches. Errors in `sample` are counted and told, never fatal."""

    @property
    def table(self) -> Table:
        """The table it fills."""
        ...

    @property
    def resolution_s(self) -> float | None:
        """Seconds between samples; None: once before and once after the measurement only."""
        ...

    def begin(self) -> None:
        """Open connections and files. May raise: the observer is then left out, with a notice."""
        ...

    def sample(self) -> Iterable[Row]:
        """Rows of this moment.

        May raise `PgdynoError`, `OSError`, `ValueError` or `LookupError`: that sample is missing
        then.
        """
        ...

    def end(self) -> None:
        """Close what `begin` opened."""
        ...


class Noop:
    """Observes nothing."""

    table = Table(name="noop", about="nothing", columns=())
    resolution_s: float | None = 1.0

    def begin(self) -> None:
        """Nothing to open."""

    def sample(self) -> Iterable[Row]:
        """No rows."""
        return ()

    def end(self) -> None:
        """Nothing to close."""
