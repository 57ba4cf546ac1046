"""Verdicts over sides of known values; what is refused, marked, flagged; noise; percentiles."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pgdyno.experiment.comparing import compare
from pgdyno.experiment.readings import Side
from pgdyno.model import Response, Stopping
from pgdyno.reports.comparison_wording import reasons
from pgdyno.stats.sequential import planned_looks
from tests.comparisons import asked, changed, side

pytestmark = pytest.mark.unit
NOISE = (0.2, -0.4, 0.1, 0.5, -0.3, -0.1, 0.4, -0.2, 0.3, -0.5)


def near(name: str, centre: float, *, turned: int = 0, **changes: object) -> Side:
    noise = NOISE[turned:] + NOISE[:turned]
    return side(name, [centre * (1 + each / 100) for each in noise], **changes)


BASE = near("on", 1000.0)


@pytest.mark.parametrize(
    ("centre", "kind"), [(1050.0, "better"), (950.0, "worse"), (1001.0, "equivalent")]
)
def test_verdicts(centre: float, kind: str) -> None:
    (finding,) = compare(BASE, [near("off", centre, turned=3)], asked()).findings
    assert finding.verdict is not None and finding.verdict.kind == kind
    assert finding.verdict.effect.ratio == pytest.approx(centre / 1000, rel=0.004)
    assert finding.verdict.effect.paired and finding.verdict.effect.blocks == 10


def test_too_few_trials_are_undecided_with_how_many_more() -> None:
    short = [
        replace(each, readings=each.readings[:3]) for each in (BASE, near("off", 1050.0, turned=3))
    ]
    (finding,) = compare(short[0], [short[1]], asked()).findings
    assert finding.verdict is not None and finding.verdict.kind == "undecided"
    more = finding.verdict.more_trials
    assert more is not None and more >= 3
    # Each trial of either side took 30 s.
    assert finding.minutes_more == pytest.approx(more * 2 * 30 / 60)


def test_looks_widen_the_interval_and_trials_left_count_with_the_last_of_them() -> None:
    stopping = Stopping(policy="precision", precision=0.001, max_replicates=50)
    (finding,) = compare(
        BASE, [near("off", 1010.0, turned=3)], replace(asked(), stopping=stopping)
    ).findings
    assert finding.verdict is not None
    looks = planned_looks(50)
    assert finding.verdict.effect.level == pytest.approx(looks.level(10))
    assert finding.verdict.effect.final_level == pytest.approx(looks.level(50))
    assert 0.95 < looks.level(50) < 0.98
    assert looks.level(10) > 0.999
    (_, interval, *_) = reasons(finding)
    assert "10 blocks, interval at above 99.9 %" in interval


def test_a_direction_turns_the_verdict() -> None:
    lower = replace(asked(), responses=(Response(direction="lower"),))
    (finding,) = compare(BASE, [near("off", 1050.0, turned=3)], lower).findings
    assert finding.verdict is not None and finding.verdict.kind == "worse"


def test_several_variants_are_adjusted_together() -> None:
    one = compare(BASE, [near("off", 1050.0, turned=3)], asked())
    more = [near(f"v{n}", 1000.0, turned=n) for n in range(1, 5)]
    several = compare(BASE, [near("off", 1050.0, turned=3), *more], asked())
    p_alone = one.findings[0].verdict.adjusted_p  # type: ignore[union-attr]
    p_among = several.findings[0].verdict.adjusted_p  # type: ignore[union-attr]
    assert p_among == pytest.approx(5 * p_alone)


def test_a_refused_pair_has_no_findings_until_the_person_insists() -> None:
    other = near("off", 1050.0, turned=3, durability="D1")
    refused = compare(BASE, [other], asked())
    assert refused.refused and refused.findings == ()
    insisted = compare(BASE, [other], asked(even_so=True))
    assert not insisted.refused
    assert [each.like_for_like for each in insisted.findings] == [False]


def test_a_second_copy_is_noise_and_no_comparison() -> None:
    again = near("on (again)", 1000.0, turned=5)
    found = compare(
        BASE, [near("off", 1050.0, turned=3), again], replace(asked(), again="on (again)")
    )
    assert [pair.variant.name for pair in found.pairs] == ["off"]
    assert [each.name for each in found.sides] == ["on", "on (again)", "off"]
    (noise,) = found.noise
    assert 0 < noise.floor.floor < 0.01 and not noise.floor.suspicious


def test_an_a_a_alone_is_compared_with_its_copy() -> None:
    again = near("on (again)", 1000.0, turned=5)
    found = compare(BASE, [again], replace(asked(), again="on (again)"))
    (finding,) = found.findings
    assert finding.verdict is not None and finding.verdict.kind == "equivalent"
    assert len(found.noise) == 1 and len(found.sides) == 2


def test_a_percentile_that_too_few_transactions_carry_is_refused() -> None:
    def slow(name: str) -> Side:
        values = {"p99_us": 900.0, "p99_9_us": 5000.0}
        return changed(side(name, [1.0] * 6), values=values, committed=9_000)

    judged = (Response(metric="p99_9_us", direction="lower"),)
    found = compare(slow("a"), [slow("b")], replace(asked(), responses=judged))
    assert found.findings[0].verdict is None
    assert "needs 10000 transactions" in (found.findings[0].why_not or "")
    assert "p99_us" in found.baseline.readings[0].values
    (said,) = (each for each in found.remarks if "percentiles" in each)
    assert said.startswith("percentiles beyond which fewer than 10 transactions lie: p99.9 in 12 ")


def test_a_value_of_zero_has_no_ratio() -> None:
    judged = (Response(metric="not_committed_share", direction="lower"),)
    found = compare(BASE, [near("off", 1.0)], replace(asked(), responses=judged))
    assert found.findings[0].verdict is None
    assert "not above 0" in (found.findings[0].why_not or "")


def test_an_outlier_is_flagged_with_what_happened_and_stays() -> None:
    values = [1000.0, 1003.0, 998.0, 1001.0, 600.0, 999.0, 1002.0, 997.0]
    odd = side("on", values)
    readings = [
        replace(each, disturbances=("a checkpoint",) if value == 600.0 else ())
        for each, value in zip(odd.readings, values, strict=True)
    ]
    found = compare(replace(odd, readings=tuple(readings)), [side("off", values)], asked())
    flagged = [each for each in found.flagged if each.reading.variant == "on"]
    assert [each.value for each in flagged] == [600.0]
    assert flagged[0].reason == "a checkpoint (in 1 of 8 trials)"
    assert 600.0 in found.baseline.values("throughput_per_s")
    unexplained = next(each for each in found.flagged if each.reading.variant == "off")
    assert unexplained.reason == "not known"


def test_what_happens_in_most_trials_explains_none() -> None:
    values = [1000.0, 1003.0, 998.0, 1001.0, 600.0, 999.0]
    busy = changed(side("on", values), disturbances=("2.0 % of the CPU time stolen",))
    found = compare(busy, [side("off", values)], asked())
    assert found.flagged[0].reason.startswith("not known: 2.0 % of the CPU time stolen")


def test_groups_without_blocks_are_said_to_be() -> None:
    found = compare(BASE, [near("off", 1050.0, turned=3)], asked(paired=False))
    verdict = found.findings[0].verdict
    assert verdict is not None and not verdict.effect.paired
    assert any("not interleaved" in each for each in found.remarks)


def test_one_trial_is_an_anecdote() -> None:
    found = compare(side("a", [1.0]), [side("b", [2.0])], asked(paired=False))
    assert found.findings[0].verdict is not None
    assert found.findings[0].verdict.kind == "undecided"
    assert math.isinf(found.findings[0].verdict.effect.high)
    assert sum("anecdote" in each for each in found.remarks) == 1
