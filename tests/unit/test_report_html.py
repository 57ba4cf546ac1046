"""The HTML page without a browser: one file, escaped, complete, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pgdyno.errors import PgdynoError
from pgdyno.model import CheckResult, SettingValue, TableSize
from pgdyno.reports.documents import read_run
from pgdyno.reports.html import write_report
from pgdyno.reports.inventory import inventory
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit

HOSTILE = "</script><img src=x onerror=alert(1)>\"'`{{7*7}}"


class Page(HTMLParser):
    """Elements with their attributes, and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def page_of(folder: Path, options: RunOptions) -> Page:
    run = build_run(folder, options)
    path = write_report(run, folder / "report.html")
    assert path.stat().st_size < 2_000_000
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("page"), RunOptions(duration_s=6, warmup_s=2))


def test_nothing_is_fetched_and_nothing_inline_but_what_the_policy_names(page: Page) -> None:
    for tag, attributes in page.elements:
        source = attributes.get("src") or attributes.get("href") or ""
        assert source.startswith(("#", "data:")) or not source, (tag, source)
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
    policy = next(
        attributes["content"] or ""
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    program = next(text for text in page.scripts if "uPlot" in text)
    for text in (program, page.styles[0]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_page_says_what_was_found_and_what_it_is_worth(page: Page) -> None:
    for part in (
        "transactions per second; half of them within",
        "D2 local",
        "One trial is an anecdote",
        "Response p99",
        r"\setrandom userid 1 1000000",
        "40P01",
        "pgdyno rerun k7m2qd",
        "used 23.0 % of what it can do",
        "shared_buffers",
        "AMD EPYC 7763",
        "user_info_0_pkey",
        "408 163",
        "no synchronous standby is named",
        "one log row for each login",
        "Little's law",
    ):
        assert part in page.text, part


def test_every_chart_has_data_for_every_panel(page: Page) -> None:
    data = [json.loads(text) for text in page.scripts if text.startswith("{")]
    assert [one["axis"] for one in data] == ["time", "percentile", "milliseconds"]
    tracks = [attributes for tag, attributes in page.elements if "data-panel" in attributes]
    assert len(tracks) == sum(len(one["panels"]) for one in data) == 9
    assert all(attributes["tabindex"] == "0" and attributes["aria-label"] for attributes in tracks)
    for panel in data[0]["panels"]:
        seconds = len(base64.b64decode(panel["x"])) // 8
        assert {len(base64.b64decode(line["values"])) // 4 for line in panel["lines"]} == {seconds}


def test_links_lead_somewhere_and_ids_are_single(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        if tag == "a":
            assert (attributes["href"] or "")[1:] in ids


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    options = RunOptions(
        name=HOSTILE,
        question=HOSTILE,
        duration_s=3,
        tags=(HOSTILE,),
        reason=HOSTILE,
        outcome="interrupted",
        login_statement="SELECT '" + HOSTILE.replace("{", "{{").replace("}", "}}") + "';",
        error_message=HOSTILE,
        setting_value=HOSTILE,
        table_name=HOSTILE.replace("{", "{{").replace("}", "}}") + "{shard}",
        extra_checks=(
            CheckResult(
                check=HOSTILE, rule=HOSTILE, after="load", verdict="undecided", detail=HOSTILE
            ),
        ),
    )
    page = page_of(tmp_path, options)
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert page.text.count(HOSTILE) >= 9
    assert sum(tag == "script" for tag, _ in page.elements) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            RunOptions(empty=True, outcome="failed", reason="port taken"),
            "No result: the trial failed during",
        ),
        (RunOptions(empty=True, outcome=None), "never came to its end"),
        (RunOptions(duration_s=3, outcome=None, missing=("summary.json",)), "There is no summary"),
        (RunOptions(duration_s=3, missing=("transactions.hlog",)), "no distribution can be drawn"),
        (RunOptions(duration_s=3, missing=("intervals.jsonl",)), "recorded no interval"),
        (RunOptions(duration_s=3, missing=("plan.json", "environment.json")), "Not in this report"),
        (RunOptions(duration_s=3, missing=("checks.json", "sizes.json")), "No check was made"),
    ],
    ids=["failed", "running", "killed", "no histograms", "no intervals", "no plan", "no checks"],
)
def test_incomplete_trials_still_open(tmp_path: Path, options: RunOptions, words: str) -> None:
    assert words in page_of(tmp_path, options).text


def test_terms_are_explained(page: Page) -> None:
    explained = [attributes["title"] for tag, attributes in page.elements if tag == "abbr"]
    assert len(explained) > 20
    assert all(explained)


def test_numbers_never_wrap_in_the_middle(page: Page) -> None:
    assert re.search(r"\.n \{[^}]*white-space: nowrap", page.styles[0])


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(empty=True))
    with pytest.raises(PgdynoError, match="cannot write the report"):
        write_report(run, tmp_path / "missing" / "report.html")


def test_notices_are_told(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=3, warmup_s=0))
    stored = run.trials[0]
    notices = ("observer of disk was left out: <no> diskstats",)
    stored.write("trial.json", stored.trial.model_copy(update={"notices": notices}))
    page = Page(write_report(run, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"Notice: {notices[0]}" in page.text


def test_what_nobody_asked_about_is_folded_away(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=3, warmup_s=0))
    stored = run.trials[0]
    settings, sizes, environment = stored.settings, stored.sizes, stored.environment
    assert settings is not None and sizes is not None and environment is not None
    derived = SettingValue(name="data_directory", value="/d", default=None, source="override")
    asked = SettingValue(name="fsync", value="off", default="on", source="command line")
    stored.write("settings.json", settings.model_copy(update={"non_default": (asked, derived)}))
    toast = TableSize(
        schema_name="public", name="pg_toast_1", kind="toast", table="user_info", bytes=0
    )
    books = TableSize(schema_name="pgdyno", name="state", kind="table", bytes=8192)
    data = TableSize(schema_name="public", name="user_info", kind="table", bytes=8192)
    stored.write("sizes.json", sizes.model_copy(update={"before": (toast, books, data)}))
    base = environment.storage[0].model_copy(update={"folder": "/d", "free_bytes": 5})
    wal = base.model_copy(update={"folder": "/d/pg_wal", "free_bytes": 4})
    other = base.model_copy(update={"folder": "/e", "device": "/dev/other"})
    stored.write("environment.json", environment.model_copy(update={"storage": (base, wal, other)}))
    found = inventory(read_run(run).trials[0])
    assert (found.settings, found.derived_settings) == ((asked,), (derived,))
    own = [row.table for row in found.side_sizes]
    assert toast in own and books in own
    assert data in [row.table for row in found.sizes]
    assert [folders for folders, _ in found.storage] == [("/d", "/d/pg_wal"), ("/e",)]
