"""A comparison as people and programs get it: 80 columns, JSON without gaps, a page that fits."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.experiment.comparing import Comparison, compare
from pgdyno.experiment.store import new_run
from pgdyno.reports.comparison import render_comparison
from pgdyno.reports.comparison_charts import drift_plot, forest, ticks, values_plot
from pgdyno.reports.comparison_json import comparison_as_json
from pgdyno.reports.comparison_page import render_comparison_page
from pgdyno.reports.comparison_wording import reasons
from pgdyno.reports.documents import read_run
from tests.builders import RunOptions, build_experiment
from tests.comparisons import asked, side

pytestmark = pytest.mark.unit
HOSTILE = 'off<script>alert("x")</script>\x1b[31m'
ON = [1000.0, 1004.0, 997.0, 1001.0, 1002.0, 600.0, 999.0]
OFF = [1052.0, 1049.0, 1055.0, 1047.0, 1050.0, 1051.0, 1048.0]


def made(name: str = "set:fsync=off", **changes: object) -> Comparison:
    how = replace(asked("set:fsync"), question="is it worth it?", even_so=False)
    return compare(side("set:fsync=on", ON), [side(name, OFF, **changes)], how)


def printed(comparison: Comparison, width: int = 80) -> str:
    text = io.StringIO()
    render_comparison(comparison, Console(file=text, width=width, color_system=None), ("none",))
    return text.getvalue()


def test_the_terminal_says_what_stands_against_it_first() -> None:
    text = printed(made(durability="D1"))
    assert max(map(len, text.splitlines())) <= 80
    joined = " ".join(text.split())
    warned, verdict = (
        joined.index("not like for like, as you asked"),
        joined.index("is better than"),
    )
    assert warned < verdict < joined.index("median of the trials")
    assert "durability class D2 D1" in joined
    assert "throughput is 60 % of the median; reason: not known" in joined


def test_a_refusal_has_no_verdict_and_says_how_to_insist() -> None:
    text = printed(made(durability="D1", tool_version="0.2.0"))
    assert "is better" not in text and "--even-so" in text


@pytest.mark.parametrize("width", [80, 120])
def test_many_variants_still_fit(width: int) -> None:
    many = [side(f"clients={2**n}", OFF) for n in range(8)]
    text = printed(compare(side("clients=0", ON), many, asked("clients")), width)
    assert max(map(len, text.splitlines())) <= width
    assert "clients=128" in text


@pytest.mark.parametrize(
    ("spread", "said"),
    [(0.01, "6 blocks of such noise find a difference of"),
     (1.5, "6 blocks find only what changes by a factor of")],
)  # fmt: skip
def test_what_so_many_trials_find_is_said_of_any_noise(spread: float, said: str) -> None:
    other = [1000.0 * (1 + spread) ** turn for turn in (-1, 0.5, -0.2, 1, 0.1, -0.7)]
    (finding,) = compare(side("a", [1000.0] * 6), [side("b", other)], asked()).findings
    assert said in " ".join(reasons(finding))


def test_hostile_names_move_nothing() -> None:
    assert "\x1b[31m" not in printed(made(HOSTILE))


def test_json_is_json_and_complete() -> None:
    document = json.loads(json.dumps(comparison_as_json(made()), allow_nan=False))
    (pair,) = document["pairs"]
    (finding,) = pair["findings"]
    assert finding["verdict"] == "better" and finding["effect"]["paired"]
    assert [len(each["trials"]) for each in document["variants"]] == [7, 7]
    single = compare(side("a", [1.0]), [side("b", [2.0])], asked(paired=False))
    effect = comparison_as_json(single)["pairs"][0]["findings"][0]["effect"]
    assert effect["high"] is None


def page(comparison: Comparison, folder: Path) -> str:
    run = new_run(build_experiment(RunOptions(question="is it worth it?")), folder)
    return render_comparison_page(read_run(run), comparison, (), {})


def test_the_page_holds_everything_and_nothing_foreign(tmp_path: Path) -> None:
    text = page(made(HOSTILE, durability="D1"), tmp_path)
    body = text[text.index("<body>") : text.rindex("<script>")]
    assert "<script" not in body and "style=" not in body and "\x1b" not in body
    assert not re.search(r'(?:src|href)="(?!data:|#)', body)
    for words in ("is it worth it?", "Not like for like", "not like for like", "Drift over"):
        assert words in body
    # Every trial is a mark in the plot of values, in that of drift, and a row of the table.
    assert body.count("k7m2qd trial 3: 997.0 tps") == 2
    assert len(re.findall(r"<tr><td class=\"n\">\d+</td>", body)) == 14
    ids = re.findall(r'\bid="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', body)) <= set(ids)


def test_positions_lie_on_their_axes() -> None:
    found = forest(made())
    assert found is not None
    (row,) = found.rows
    assert 0 <= row.low <= row.centre <= row.high <= 100
    assert found.band[0] < found.zero < found.band[1]
    assert [each.label for each in found.ticks if each.at == found.zero] == ["0"]
    metric = made().findings[0].metric
    values, drift = values_plot(made(), metric), drift_plot(made(), metric)
    assert values is not None and drift is not None
    flagged = [one.x for series in values.series for one in series.points if one.flagged]
    assert flagged == [min(one.x for series in values.series for one in series.points)]
    assert all(0 <= tick.at <= 100 for tick in (*drift.across, *drift.down))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 10.0, (0, 2, 4, 6, 8, 10)), (950, 1010, (960, 980, 1000)), (3.0, 3.0, (3.0,))],
)
def test_ticks_are_round(low: float, high: float, expected: tuple[float, ...]) -> None:
    assert ticks(low, high) == pytest.approx(expected)
