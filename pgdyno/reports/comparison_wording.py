"""The sentences of a comparison: what is better than what, by how much, and what that is worth.

Text only, no layout: terminal, page and JSON say the same in the same words.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from pgdyno.experiment.comparing import Comparison, Finding, Noise, Pair, shown_metrics
from pgdyno.experiment.oddities import Flagged
from pgdyno.experiment.readings import Side
from pgdyno.experiment.responses import Metric
from pgdyno.reports.figures import rate
from pgdyno.reports.terms import DURABILITY_NAMES
from pgdyno.units import format_count, format_counted, format_duration_s

MARK = "not like for like"
_HUGE = 0.5
_NEARLY_ALL = 0.9995
VERDICT_WORDS = {
    "better": "better",
    "worse": "worse",
    "equivalent": "equivalent",
    "undecided": "undecided",
    "refused": "refused",
    "none": "no verdict",
}
"""A verdict's kind as it is printed."""


def verdict_of(finding: Finding) -> str:
    """The kind of a finding's verdict, `none` where there is none."""
    return "none" if finding.verdict is None else finding.verdict.kind


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names beside each other, without the word that they all begin with.

    >>> short_names(["fsync=on", "fsync=on (again)", "fsync=off"])
    {'fsync=on': 'on', 'fsync=on (again)': 'on (again)', 'fsync=off': 'off'}
    >>> short_names(["before", "after"])
    {'before': 'before', 'after': 'after'}
    """
    words = {name.partition("=")[0] if "=" in name else None for name in names}
    if len(names) < 2 or len(words) != 1 or None in words or any("," in name for name in names):
        return {name: name for name in names}
    return {name: name.partition("=")[2] for name in names}


def headline(finding: Finding, baseline: str) -> str:
    """What was found, in a sentence: `off is better than on: throughput +31.2 % [28.9, 33.6].`"""
    words = finding.metric.words
    baseline = short_names([finding.variant, baseline])[baseline]
    if finding.verdict is None:
        return f"No verdict on {words} of {finding.variant}: {finding.why_not}."
    text = finding.verdict.text
    relation = {
        "better": f"{finding.variant} is better than {baseline}",
        "worse": f"{finding.variant} is worse than {baseline}",
        "equivalent": f"{finding.variant} and {baseline} are equivalent",
        "undecided": f"{finding.variant} against {baseline} is undecided",
    }[finding.verdict.kind]
    mark = "" if finding.like_for_like else f" ({MARK})"
    return f"{relation}{mark}: {words} {text}."


def reasons(finding: Finding) -> Iterator[str]:
    """What stands behind a verdict, a sentence each: the test, the blocks, what is left to do."""
    verdict = finding.verdict
    if verdict is None:
        return
    more = ""
    if finding.minutes_more is not None:
        more = f" (about {format_duration_s(finding.minutes_more * 60)} for both)"
    yield _sentence(verdict.reason + more)
    effect = verdict.effect
    unit = "block" if effect.paired else "trial"
    share = "above 99.9 %" if effect.level > _NEARLY_ALL else f"{100 * effect.level:.3g} %"
    trials = (
        f"{format_counted(effect.blocks, unit)}{'' if effect.paired else ' on the smaller side'}"
    )
    if effect.low > 0:
        yield f"{trials}, interval at {share}: {effect.method}."
    else:
        yield f"{trials}: too few for an interval."
    if finding.detectable is not None and math.isfinite(finding.detectable):
        yield _reach(finding.detectable, format_counted(effect.blocks, unit))


def _reach(detectable: float, trials: str) -> str:
    """What so many trials find; of noise that hides all but factors, that it does."""
    if detectable < _HUGE:
        found = percent(detectable)
        return f"{trials} of such noise find a difference of {found} in 8 of 10 experiments."
    return (
        f"The trials differ so much among themselves that {trials} find only what changes by a "
        f"factor of {1 + detectable:.2g} or more (in 8 of 10 experiments)."
    )


def refusal(pair: Pair, baseline: str) -> str:
    """Why there is no verdict although there are numbers."""
    count = len(pair.comparability.refused)
    stands = "1 thing stands" if count == 1 else f"{count} things stand"
    return f"{pair.variant.name} is not compared with {baseline}: {stands} against it."


def noise_words(noise: Noise) -> str:
    """`throughput: two identical variants differ by up to 1.2 % (A/A, 10 blocks)`."""
    floor = noise.floor
    blocks = format_counted(floor.blocks, "block")
    if not math.isfinite(floor.floor):
        return f"{noise.metric.words}: not known after {blocks} of A/A"
    words = (
        f"{noise.metric.words}: two identical variants may differ by up to "
        f"{percent(floor.floor)} (A/A in this experiment, {blocks})"
    )
    if floor.suspicious:
        words += (
            f"; they differed by more than chance ({floor.effect.ratio - 1:+.2%}): "
            "something besides the variants decides here, or it is one of the 5 in 100 that do"
        ).replace("-", "−")
    return words


def flagged_words(flagged: Flagged) -> str:
    """`trial 7 of off: throughput is 61 % of the median; a checkpoint (in 1 of 10 trials)`."""
    return (
        f"{flagged.reading.label} ({flagged.reading.variant or flagged.reading.source}): "
        f"{flagged.metric.words} is {flagged.ratio_to_median:.0%} of the median".replace("%", " %")
        + f"; reason: {flagged.reason}"
    )


def class_words(side: Side) -> str:
    """The durability classes of a side's trials: `D2 local`; what is not known says so."""
    labels = dict.fromkeys(each.circumstances.durability for each in side.readings)
    return " or ".join(_class_words(label) for label in labels) or "not known"


def class_labels(side: Side) -> str:
    """As `class_words`, but short: `D2`, `D1 +unlogged`, `none`."""
    labels = dict.fromkeys(each.circumstances.durability for each in side.readings)
    return " or ".join(label or "not known" for label in labels) or "not known"


def _class_words(label: str | None) -> str:
    if label is None:
        return "not known"
    name, _, extra = label.partition(" ")
    words = DURABILITY_NAMES.get(name)
    if name == "none" or words is None:
        return words or label
    return " ".join(part for part in (name, words, extra) if part)


def value_words(metric: Metric, value: float) -> str:
    """A value as tables print it; times in ms."""
    if metric.unit == "µs" and metric.name.endswith("_per_transaction"):
        return rate(value)
    if metric.unit == "µs":
        return f"{value / 1000:.3f}" if value < 1e6 else format_count(value / 1000)
    if metric.unit == "share":
        return f"{value:.2%}".replace("%", " %")
    if metric.unit == "bytes":
        return format_count(value)
    return rate(value)


def unit_words(metric: Metric) -> str:
    """The unit that `value_words` prints in."""
    if metric.unit == "share":
        return ""
    if metric.unit == "µs" and not metric.name.endswith("_per_transaction"):
        return "ms"
    return metric.unit


def median_words(side: Side, metric: Metric) -> str:
    """The median of a side's trials; empty where none has a value."""
    values = side.values(metric.name)
    return value_words(metric, statistics.median(values)) if values else ""


def table_metrics(comparison: Comparison) -> tuple[Metric, ...]:
    """The metrics that the table of variants shows: judged ones first, none that is all 0."""
    judged = [finding.metric for finding in comparison.findings]
    judged = judged or [metric for metric in _asked(comparison)]
    others = [
        each
        for each in shown_metrics(comparison.sides)
        if each not in judged and _tells(comparison.sides, each)
    ]
    return tuple(dict.fromkeys((*judged, *others)))


def _asked(comparison: Comparison) -> Iterator[Metric]:
    names = {response.metric for response in comparison.asked.responses}
    yield from (each for each in shown_metrics(comparison.sides) if each.name in names)


def _tells(sides: Sequence[Side], metric: Metric) -> bool:
    if metric.name in ("server_commits_per_s", "not_committed_share", "p90_us"):
        return False
    return any(any(side.values(metric.name)) for side in sides)


def percent(share: float) -> str:
    """A small relative difference: `1.2 %`, `0.35 %`."""
    digits = 0 if share >= 0.1 else 1 if share >= 0.01 else 2
    return f"{round(share * 100, digits):g} %"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
