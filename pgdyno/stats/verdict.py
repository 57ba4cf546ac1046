"""From an effect to a verdict: better, worse, equivalent, or undecided with what would decide.

Two questions are asked, and neither answers the other: is there a difference (p after Holm at most
α), and is it smaller than what matters (two one-sided tests, D. J. Schuirmann, 1987: the interval
at 1 − 2α lies inside ± `matters`)? Inside is from 1/(1 + matters) to 1 + matters, so that it does
not depend on which side is called the baseline.

| difference | inside ± matters | verdict |
|---|---|---|
| yes | no | better or worse |
| yes | yes | equivalent: there is a difference, and it is too small to matter |
| no | yes | equivalent |
| no | no | undecided |

Nothing is decided by fewer trials than the exact tests need (`power.blocks_that_can_decide`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from pgdyno.stats import power
from pgdyno.stats.effect import Effect

VerdictKind = Literal["better", "worse", "equivalent", "undecided"]
Direction = Literal["higher", "lower"]

AS_FACTOR: Final = 3.0
"""From so many times on, an effect reads better as a factor than in per cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an experiment says about a variant, and why in one sentence.

    `more_trials` of each variant would decide, were effect and spread as seen; None when nothing
    is left to decide, or when the spread is not known (a single block). `text` is the effect in
    per cent with its interval: "+4.1 % [2.6, 5.7]". `adjusted_p` is after Holm.
    """

    kind: VerdictKind
    effect: Effect
    reason: str
    more_trials: int | None
    text: str
    adjusted_p: float


def judge(
    effect: Effect,
    *,
    direction: Direction,
    matters: float,
    adjusted_p: float | None = None,
    comparisons: int = 1,
) -> Verdict:
    """The verdict on one comparison.

    `matters` is the relative difference that would matter (0.02: 2 %), `adjusted_p` the effect's p
    after Holm over all `comparisons` (its own p by default).
    """
    p_value = effect.p_value if adjusted_p is None else adjusted_p
    differs = p_value <= effect.alpha
    inside = is_inside(effect, matters)
    more = None
    if differs and not inside:
        kind: VerdictKind = "better" if (effect.ratio > 1) == (direction == "higher") else "worse"
        reason = _difference_reason(effect, p_value, matters)
    elif inside:
        kind = "equivalent"
        reason = _equivalent_reason(effect, p_value, matters, differs=differs)
    else:
        kind = "undecided"
        whatever, as_seen = _more_trials(effect, matters, comparisons)
        more = as_seen or whatever
        proviso = ", were the difference as large as it seems" if as_seen else ""
        reason = _undecided_reason(effect, p_value, matters, more) + proviso
    return Verdict(
        kind=kind, effect=effect, reason=reason, more_trials=more, text=effect_text(effect),
        adjusted_p=p_value,
    )  # fmt: skip


def is_inside(effect: Effect, matters: float) -> bool:
    """Whether the effect is shown to be smaller than what matters (two one-sided exact tests)."""
    exact = effect.smallest_p / 2 <= effect.alpha
    return exact and effect.inner_low > 1 / (1 + matters) and effect.inner_high < 1 + matters


def effect_text(effect: Effect) -> str:
    """The effect as people read it: "+4.1 % [2.6, 5.7]", from 3 times on "×3.4 [3.1, 3.7]".

    Without the brackets where no interval is known.
    """
    factor = effect.ratio >= AS_FACTOR
    ratios = [effect.ratio, effect.low, effect.high]
    numbers = ratios if factor else [100 * (ratio - 1) for ratio in ratios]
    known = effect.low > 0 and math.isfinite(effect.high)
    digits = _digits((numbers[2] - numbers[1]) / 2) if known else 1
    centre, low, high = (_minus(f"{number:.{digits}f}") for number in numbers)
    sign = "+" if not factor and not centre.startswith("−") else ""
    text = f"×{centre}" if factor else f"{sign}{centre} %"
    return f"{text} [{low}, {high}]" if known else text


def _difference_reason(effect: Effect, p_value: float, matters: float) -> str:
    more_or_less = "more" if effect.ratio > 1 else "less"
    nearest = effect.low if effect.ratio > 1 else 1 / effect.high
    size = (
        f"by more than the {_percent(matters)} that matters"
        if nearest >= 1 + matters
        else f"which may still be smaller than the {_percent(matters)} that matters"
    )
    return f"{more_or_less} than the baseline ({_p(p_value)}), {size}"


def _equivalent_reason(effect: Effect, p_value: float, matters: float, *, differs: bool) -> str:
    bound = _percent(matters)
    if differs:
        return f"there is a difference ({_p(p_value)}), smaller than the {bound} that matters"
    return f"any difference is smaller than the {bound} that matters"


def _undecided_reason(effect: Effect, p_value: float, matters: float, more: int | None) -> str:
    if effect.smallest_p > effect.alpha:
        unit = "block" if effect.paired else "trial of each side"
        found = f"{_count(effect.blocks, unit)} cannot decide: p is {effect.smallest_p:.2g} at best"
    elif effect.p_value <= effect.alpha < p_value:
        found = f"no difference is shown once all comparisons are allowed for ({_p(p_value)})"
    else:
        found = f"no difference is shown ({_p(p_value)})"
    reach = f"one of {_percent(matters)} is not excluded"
    return f"{found}, and {reach}" + (
        f"; about {_count(more, 'more trial of each')} would decide" if more else ""
    )


def _more_trials(effect: Effect, matters: float, comparisons: int) -> tuple[int | None, int | None]:
    """Trials that decide whatever the truth is, and fewer that do if it is what was seen."""
    if effect.blocks < 2 and effect.sd_log == 0:
        return None, None
    needed = power.blocks_to_decide(
        effect.sd_log,
        matters,
        alpha=1 - effect.final_level,
        comparisons=comparisons,
        paired=effect.paired,
    )
    # A difference as large as this one seems to be is shown much sooner than one that just matters.
    seen = max(effect.ratio, 1 / effect.ratio) - 1
    if seen > matters:
        alpha = 1 - effect.final_level
        shown = power.trials_needed(effect.sd_log, seen, alpha=alpha, comparisons=comparisons)
        if shown < needed:
            return max(1, needed - effect.blocks), max(1, shown - effect.blocks)
    return max(1, needed - effect.blocks), None


def _digits(half_width: float) -> int:
    """Two digits of the half width are worth reading."""
    return 0 if half_width >= 10 else 1 if half_width >= 0.1 else 2


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def _count(number: int, unit: str) -> str:
    noun, _, rest = unit.partition(" of ")
    plural = "" if number == 1 else "s"
    return f"{number} {noun}{plural}" + (f" of {rest}" if rest else "")


def _minus(number: str) -> str:
    """A real minus sign, and none before a zero."""
    return number.replace("-", "−" if float(number) else "")
