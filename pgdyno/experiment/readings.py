"""A reading: what a comparison knows of one trial, wherever it was stored. Values, never files.

`experiment.trial_readings` makes one from a trial folder, `foreign` from another tool's output. The
values are those of `experiment.responses`; a metric without a value says why in `absent`. What must
be alike on both sides stands in `Circumstances`, where None means that nobody wrote it down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Tool = Literal["pgdyno", "pgbench", "sysbench"]
Words = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """How used the data were when the trial began; None where it is not known."""

    measurements: int | None = None
    dead_share: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Under what a trial's values came to be.

    `data`: what its loaded data are made of. `load`: how hard and how long, in words. `settings`:
    those of the server that are not at their default. `levels`: of the experiment's factors, as the
    person wrote them. `build`: what is wrong with the server's build for measuring.
    `generator_share`: of the load generator's own ceiling, or how busy it was.
    """

    tool: Tool = "pgdyno"
    tool_version: str | None = None
    workload: str | None = None
    data: Words | None = None
    load: Words = field(default_factory=dict)
    settings: Words | None = None
    levels: Words = field(default_factory=dict)
    server_version: str | None = None
    build: tuple[str, ...] = ()
    host: str | None = None
    kernel: str | None = None
    durability: str | None = None
    writes: bool | None = None
    age: Age = Age()
    generator_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One trial: its values by metric, what they were measured under, what stands against them.

    `run`: the id of its experiment; None for files of other tools. `began`: ISO 8601, for the order
    in time; `took_s`: how long all of it took. `complete`: it ran to its end; `unfinished`: it was
    killed or interrupted, or still runs. `committed`: transactions behind the percentiles.
    `broken`: checks that do not hold. `disturbances`: what happened during it that could make it an
    outlier. `unknown`: what its source cannot say.
    """

    label: str
    variant: str
    source: str
    run: str | None = None
    number: int = 1
    block: int | None = None
    began: str | None = None
    took_s: float | None = None
    complete: bool = True
    unfinished: bool = False
    reason: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    absent: Words = field(default_factory=dict)
    committed: int | None = None
    broken: tuple[str, ...] = ()
    disturbances: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    circumstances: Circumstances = Circumstances()

    @property
    def not_committed_share(self) -> float | None:
        """Failed, unknown and skipped transactions as a share of those scheduled."""
        return self.values.get("not_committed_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """All trials of one variant that are compared."""

    name: str
    readings: tuple[Reading, ...]

    def values(self, metric: str) -> tuple[float, ...]:
        """The metric's values, in the order of the trials; those without one are left out."""
        return tuple(each.values[metric] for each in self.readings if metric in each.values)

    def by_block(self, metric: str) -> dict[int, float]:
        """Block → value, of the trials that have both."""
        return {
            each.block: each.values[metric]
            for each in self.readings
            if each.block is not None and metric in each.values
        }
