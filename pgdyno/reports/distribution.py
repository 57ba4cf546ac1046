"""The distribution of response times for the page: a percentile curve and a histogram.

Both come from the merged histograms of the measurement. The curve's horizontal axis is 1 / (1 −
share): each ten times rarer transaction takes the same room. It ends where one is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.reports.charts import Line, Panel
from pgdyno.reports.terms import TITLES
from pgdyno.stats.percentiles import Distribution, merge

MOST_TYPES = 5
"""Above this many transaction types the curve shows only all of them together."""

_COLOURS = ("green", "orange", "purple", "sky", "red")


def kinds_of(distributions: Mapping[str, Distribution]) -> dict[str, dict[str, Distribution]]:
    """The measurement's by kind (`service`, `lag`, `response`), then by transaction type.

    Tags are `TYPE.KIND`; those of the warm-up and anything else are left out. A transaction type's
    name may hold dots, so the kind is what stands behind the last one.
    """
    found: dict[str, dict[str, Distribution]] = {}
    for tag, distribution in distributions.items():
        transaction_type, dot, kind = tag.rpartition(".")
        if dot and not tag.startswith("warmup.") and kind in ("service", "lag", "response"):
            found.setdefault(kind, {})[transaction_type] = distribution
    return found


def response_of(kinds: Mapping[str, Mapping[str, Distribution]]) -> Mapping[str, Distribution]:
    """Response times by type: without a schedule there is no lag, and response is service."""
    return kinds.get("response") or kinds.get("service") or {}


def merged(by_type: Mapping[str, Distribution]) -> Distribution | None:
    """All types together; None where nothing was recorded."""
    together = merge(by_type.values())
    return together if together.count else None


def curve_panel(kinds: Mapping[str, Mapping[str, Distribution]]) -> Panel | None:
    """Percentile curves in milliseconds: all types, each type, and schedule lag where it was."""
    by_type = response_of(kinds)
    together = merged(by_type)
    if together is None:
        return None
    points = together.points()[:-1]
    quantiles = [point.quantile for point in points]
    lines = [_curve("response time", "blue", together, quantiles)]
    if 1 < len(by_type) <= MOST_TYPES:
        pairs = zip(sorted(by_type.items()), _COLOURS, strict=False)
        lines += [_curve(name, colour, one, quantiles) for (name, one), colour in pairs]
    lag = merged(kinds.get("lag", {}))
    service = merged(kinds.get("service", {})) if lag is not None else None
    for label, colour, one in (("service time", "faint", service), ("schedule lag", "red", lag)):
        if one is not None:
            lines.append(_curve(label, colour, one, quantiles))
    return Panel(
        key="curve",
        title="Percentiles",
        about="how slow the slower ones were; both axes are logarithmic",
        unit="ms",
        scale="log",
        horizontal=[1 / (1 - quantile) for quantile in quantiles],
        lines=tuple(lines),
    )


def _curve(label: str, colour: str, distribution: Distribution, quantiles: Sequence[float]) -> Line:
    """One curve; it ends where less than one of its values lies above."""
    values = [
        max(distribution.value_at(quantile), 1) / 1e6
        if (1 - quantile) * distribution.count >= 1
        else None
        for quantile in quantiles
    ]
    return Line(
        label=label,
        about=TITLES.get(label, f"transactions of type {label}"),
        colour=colour,
        values=values,
    )


def histogram_panel(kinds: Mapping[str, Mapping[str, Distribution]]) -> Panel | None:
    """Share of transactions in bins of equal width on a logarithmic axis of milliseconds."""
    together = merged(response_of(kinds))
    if together is None:
        return None
    bins = together.bins(per_decade=24)
    edges = [bins[0].low, *(one.high for one in bins)]
    shares = [100 * one.count / together.count for one in bins]
    return Panel(
        key="histogram",
        title="How many took how long",
        about="share of transactions in each bin; bins are equally wide on the logarithmic axis",
        unit="% of transactions",
        scale="linear",
        horizontal=[edge / 1e6 for edge in edges],
        lines=(
            Line(
                label="response time",
                about=TITLES["response time"],
                colour="blue",
                values=[*shares, shares[-1]],
                filled=True,
                steps=True,
            ),
        ),
    )
