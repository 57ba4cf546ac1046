"""The page of a document that our pgbench wrote: headline, tables, charts; damaged documents."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pgdyno.cli.report import report
from pgdyno.errors import InvalidInput
from pgdyno.foreign.pgbench_document import read_document
from pgdyno.reports.pgbench_page import joined, render_pgbench_page
from tests.unit.test_report_html import HOSTILE, Page

pytestmark = pytest.mark.unit

OUTCOME: dict[str, Any] = {
    "committed": 5_400,
    "tps": 1076.0,
    "serialization_failures": 2,
    "deadlock_failures": 1,
    "other_failures": 0,
    "skipped": 0,
    "retried": 7,
    "retries": 9,
    "late": 0,
    "latency": {
        "mean_us": 2781.7,
        "stddev_us": 4977.0,
        "min_us": 272.0,
        "max_us": 105_385.0,
        "percentiles_us": {"p50": 1271.0, "p99": 20_185.0, "p99.9": 71_500.0},
    },
    "lag": None,
}


def interval(end_s: float, length_s: float, committed: int) -> dict[str, Any]:
    return {
        "end_s": end_s,
        "length_s": length_s,
        "end_unix_s": 1_795_295_489.0 + end_s,
        "committed": committed,
        "failed": 0,
        "skipped": 0,
        "retries": 0,
        "late": 0,
        "latency_mean_us": 2000.0,
        "latency_max_us": 3000.0 + end_s,
        "latency_percentiles_us": {"p50": 1271.0, "p99": 20_185.0, "p99.9": 71_500.0},
    }


DOCUMENT: dict[str, Any] = {
    "version": 1,
    "engine_version": "0.1.0",
    "emulated": 18,
    "ending": "completed",
    "run": {
        "scale": 2,
        "partition_method": None,
        "partitions": None,
        "query_mode": "prepared",
        "clients": 3,
        "threads": 2,
        "max_tries": 3,
        "transactions_per_client": None,
        "duration_s": 2,
        "rate_per_s": None,
        "latency_limit_us": None,
        "seed": 42,
        "variables": {"high": "7"},
        "measured_s": 2.01,
        "connection_us": 80_120.0,
    },
    "total": OUTCOME,
    "scripts": [
        {
            "description": HOSTILE,
            "weight": 1,
            **OUTCOME,
            "commands": [
                {"text": "\\set aid 1", "mean_us": 1.0, "failures": 0, "retries": 0},
                {"text": "SELECT '<b>';", "mean_us": 3.0, "failures": 3, "retries": 9},
            ],
        }
    ],
    "intervals": [interval(1.0, 1.0, 2_700), interval(2.0, 1.0, 2_600), interval(2.01, 0.01, 100)],
}


def written(folder: Path, change: dict[str, Any] | None = None) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(copy.deepcopy(DOCUMENT) | (change or {})))
    return path


def test_the_page_says_what_the_document_says(tmp_path: Path) -> None:
    page = Page(render_pgbench_page(read_document(written(tmp_path)), "night run"))
    for part in (
        "1\u00a0076 transactions per second; half of them within 1.271\u00a0ms.",
        "3 transactions failed.",
        "3 clients on 2 threads, prepared queries, as fast as possible",
        "high = 7",
        "2 serialization, 1 deadlock, 0 other",
        "7 retried, 9 retries",
        r"\set aid 1",
        "0.003000",
        "71.500",
        "21 November 2026",
    ):
        assert part.replace("\u00a0", " ") in page.text.replace("\u00a0", " "), part
    assert HOSTILE in page.text
    assert not [attributes for tag, attributes in page.elements if tag == "img"]


def test_the_charts_hold_every_interval_and_no_sliver(tmp_path: Path) -> None:
    document = read_document(written(tmp_path))
    page = Page(render_pgbench_page(document, "run"))
    (data,) = [json.loads(text) for text in page.scripts if text.startswith("{")]
    assert [panel["title"] for panel in data["panels"]] == ["Throughput", "Latency"]
    for panel in data["panels"]:
        assert len(base64.b64decode(panel["x"])) == 2 * 8
    assert [line["label"] for line in data["panels"][1]["lines"]] == ["p50", "p99", "p99.9", "max"]
    last = joined(document.intervals)[-1]
    assert (last.committed, last.end_s, last.latency_max_us) == (2_700, 2.01, 3002.01)


def test_a_run_without_a_commit_has_a_page(tmp_path: Path) -> None:
    nothing = OUTCOME | {"committed": 0, "tps": 0.0, "latency": None}
    change = {"total": nothing, "intervals": [], "ending": "aborted"}
    page = Page(render_pgbench_page(read_document(written(tmp_path, change)), "run"))
    assert "No transaction was committed." in page.text
    assert "A client was aborted" in page.text
    assert "The document holds no interval." in page.text


def test_the_command_writes_beside_the_document(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = CliRunner().invoke(report, [str(path), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    page = tmp_path / "run.html"
    assert said == {"report": str(page), "bytes": page.stat().st_size}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read "),
        ("{", "is no JSON document"),
        ("[1]", "is no document of a pgbench run"),
        ('{"total": {}, "version": 2}', "is of version 2, and only 1 is known"),
        ('{"total": {}, "version": 1}', "total.committed: field required; total.tps"),
    ],
)
def test_what_is_wrong_with_a_document_is_said(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "run.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput) as found:
        read_document(path)
    assert said in found.value.message
    assert found.value.hint
