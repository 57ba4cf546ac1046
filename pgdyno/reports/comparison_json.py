"""A comparison for programs: what `--json` prints; `docs/comparing.md` describes the names.

Units stand in the names, ratios are to the baseline, a value that is not known is null.
"""

from __future__ import annotations

import math
from typing import Any

from pgdyno.experiment.comparing import Comparison, Finding, Noise, Pair
from pgdyno.experiment.oddities import Flagged
from pgdyno.experiment.readings import Reading, Side
from pgdyno.experiment.store import Run
from pgdyno.reports import comparison_wording as words
from pgdyno.stats.effect import Effect

COMPARISON_VERSION = 1


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """The document of a comparison."""
    return {
        "version": COMPARISON_VERSION,
        "question": comparison.asked.question,
        "baseline": comparison.baseline.name,
        "refused": comparison.refused,
        "even_so": comparison.asked.even_so,
        "pairs": [_pair(pair, comparison.baseline.name) for pair in comparison.pairs],
        "noise": [_noise(each) for each in comparison.noise],
        "outliers": [_flagged(each) for each in comparison.flagged],
        "variants": [_side(side) for side in comparison.sides],
        "not_known": list(comparison.remarks),
    }


def identity(run: Run) -> dict[str, Any]:
    """Which experiment it is and where it lies."""
    experiment = run.experiment
    return {
        "id": experiment.id,
        "name": experiment.name,
        "created": experiment.created,
        "pgdyno_version": experiment.pgdyno_version,
        "folder": str(run.folder),
    }


def _pair(pair: Pair, baseline: str) -> dict[str, Any]:
    return {
        "variant": pair.variant.name,
        "refused": pair.refused,
        "like_for_like": pair.comparability.like_for_like,
        "obstacles": [
            {"kind": each.kind, "name": each.name, "sentence": each.sentence}
            for each in pair.comparability.obstacles
        ],
        "differences": [
            {"what": each.what, "baseline": each.baseline, "variant": each.variant}
            for each in pair.comparability.differences
        ],
        "findings": [_finding(each, baseline) for each in pair.findings],
    }


def _finding(finding: Finding, baseline: str) -> dict[str, Any]:
    verdict = finding.verdict
    return {
        "metric": finding.metric.name,
        "direction": finding.response.direction,
        "matters": finding.response.matters,
        "verdict": words.verdict_of(finding),
        "why_not": finding.why_not,
        "headline": words.headline(finding, baseline),
        "reasons": list(words.reasons(finding)),
        "like_for_like": finding.like_for_like,
        "effect": _effect(verdict.effect) if verdict else None,
        "adjusted_p": verdict.adjusted_p if verdict else None,
        "more_trials": verdict.more_trials if verdict else None,
        "minutes_more": finding.minutes_more,
        "detectable": _finite(finding.detectable),
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "ratio": effect.ratio,
        "low": effect.low,
        "high": _finite(effect.high),
        "level": effect.level,
        "p_value": effect.p_value,
        "blocks": effect.blocks,
        "paired": effect.paired,
        "method": effect.method,
    }


def _noise(noise: Noise) -> dict[str, Any]:
    floor = noise.floor
    return {
        "metric": noise.metric.name,
        "floor": _finite(floor.floor),
        "detectable": _finite(floor.detectable),
        "blocks": floor.blocks,
        "suspicious": floor.suspicious,
        "sentence": words.noise_words(noise),
    }


def _flagged(flagged: Flagged) -> dict[str, Any]:
    return {
        "trial": flagged.reading.label,
        "variant": flagged.reading.variant,
        "metric": flagged.metric.name,
        "value": flagged.value,
        "ratio_to_median": flagged.ratio_to_median,
        "reason": flagged.reason,
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "durability": words.class_words(side),
        "trials": [_reading(each) for each in side.readings],
    }


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "label": reading.label,
        "source": reading.source,
        "run": reading.run,
        "number": reading.number,
        "block": reading.block,
        "began": reading.began,
        "complete": reading.complete,
        "reason": reading.reason,
        "durability": reading.circumstances.durability,
        "values": dict(reading.values),
        "absent": dict(reading.absent),
        "disturbances": list(reading.disturbances),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
