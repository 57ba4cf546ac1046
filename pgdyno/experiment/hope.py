"""Whether a measurement can still come to anything: pure, fed with intervals.

A script that names a table which is not there fails every time, thousands of times a second. Nobody
wants to wait a minute for that: after some seconds of nothing but errors the measurement is ended.
Serialization failures and deadlocks do not count, for a later transaction may well commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pgdyno.contract import Interval, Summary

PATIENCE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hope:
    """What the intervals have shown so far. `observed_s` is the time that they cover."""

    clients: int
    committed: int = 0
    failed: int = 0
    observed_s: float = 0.0

    def after(self, interval: Interval) -> Hope:
        """The same with one more interval."""
        return replace(
            self,
            committed=self.committed + interval.counters.committed,
            failed=self.failed + interval.counters.failed.other,
            observed_s=self.observed_s + (interval.end_ns - interval.begin_ns) / 1e9,
        )

    @property
    def lost(self) -> bool:
        """Nothing was committed for some seconds, and every client has had an error by now."""
        patient = self.observed_s >= PATIENCE_S
        return patient and self.committed == 0 and self.failed >= self.clients


def no_commit_at_all(summary: Summary) -> bool:
    """Whether errors were all that a measurement brought, warm-up included."""
    committed = summary.warmup.committed + summary.measurement.committed
    failed = summary.warmup.failed.other + summary.measurement.failed.other
    return committed == 0 and failed > 0 and bool(summary.errors)
