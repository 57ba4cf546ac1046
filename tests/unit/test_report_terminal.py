"""The terminal summary and the JSON document: complete, plain, safe with hostile names."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
import tomli_w
from rich.console import Console

from pgdyno.contract import Failed, Series
from pgdyno.experiment.store import Run
from pgdyno.model import GeneratorUse, InitdbChoice, Limits, SettingValue, SystemChoice
from pgdyno.reports import wording
from pgdyno.reports.terminal import as_json, render_summary
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit

DOCS = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = RunOptions(duration_s=6, warmup_s=2, tags=("nightly",))
    return build_run(tmp_path_factory.mktemp("runs"), options)


def printed(run: Run, width: int = 80, **console: object) -> str:
    target = io.StringIO()
    render_summary(run, Console(file=target, width=width, **console))
    return target.getvalue()


def test_the_summary_says_what_ran_and_what_it_found(run: Run) -> None:
    text = printed(run)
    summary = run.trials[0].summary
    assert summary is not None
    words = " ".join(text.split())
    for part in (
        "userlogin (users=2_000_000, shards=2, transactions=both)",
        "16 clients, closed loop, prepared protocol, 6.0 s after 2.0 s of warm-up",
        "PostgreSQL 15.18",
        "AMD EPYC 7763",
        f"{summary.throughput_per_s:,.0f} tps".replace(",", " "),
        "[D2 local]",
        "with connecting counted in",
        "server commits",
        "3 failed",
        "One trial is an anecdote",
        r"\setrandom userid 1 1000000",
        "SELECT f_user_logout_1(:userid);",
        "40P01 3 both_0, command 2 deadlock detected",
        "engine's CPU",
        "4 000 000 408 163",
        "pg_prewarm",
        "fsync is on and full_page_writes is on",
        "users, logins",
        f"pgdyno rerun {run.folder}",
    ):
        assert part in words, part
    assert str(run.folder) in text


def test_how_much_of_itself_the_generator_used_is_told(run: Run) -> None:
    assert "used 23.0 % of what it can do; 31.0 % busy" in " ".join(printed(run).split())
    near = wording.generator_words(GeneratorUse(of_ceiling=0.9, ceiling_per_core_per_s=1e5))
    assert near.endswith("near its limit, so it may be what was measured")
    unknown = GeneratorUse(busy=0.5, calibrate="pgdyno calibrate tpcb --clients 4")
    assert "never measured here: pgdyno calibrate tpcb" in wording.generator_words(unknown)


def test_statements_are_printed_as_pgbench_users_know_them(run: Run) -> None:
    summary = run.trials[0].summary
    assert summary is not None
    mean_ms = summary.statements[0].time.mean_ns / 1e6
    assert re.search(rf"^ +{mean_ms:.6f} ", printed(run), re.M)


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    lines = printed(run, width).splitlines()
    # Paths are never wrapped, so that they can be copied.
    wide = [line for line in lines if len(line) > width and str(run.folder) not in line]
    assert wide == []


def test_plain_without_a_terminal_and_coloured_with_one(run: Run) -> None:
    assert "\x1b" not in printed(run)
    assert "\x1b" in printed(run, force_terminal=True, color_system="standard")
    bare = re.sub(r"\x1b\[[\d;]*m", "", printed(run, force_terminal=True, color_system="standard"))
    assert bare == printed(run)


def test_runs_that_are_looked_for_are_repeated_by_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = printed(build_run(Path("runs"), RunOptions(duration_s=3, warmup_s=0)))
    assert re.search(r"again +pgdyno rerun k7m2qd$", text, re.M)


def test_notices_are_told(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=3, warmup_s=0))
    stored = run.trials[0]
    said = "observer of disk was left out: /proc/diskstats [x]\x1b[31m"
    stored.write("trial.json", stored.trial.model_copy(update={"notices": (said,)}))
    assert "notice: observer of disk was left out: /proc/diskstats [x]␛[31m" in printed(run)
    assert as_json(run)["trials"][0]["notices"] == [said]


def test_how_a_server_was_made_and_limited_and_what_was_set_is_told(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=3, warmup_s=0))
    stored = run.trials[0]
    settings = stored.settings
    assert settings is not None
    chosen = SettingValue(name="work_mem", value="8MB", default="4MB", source="configuration file")
    stored.write("settings.json", settings.model_copy(update={"non_default": (chosen,)}))
    system = SystemChoice(
        initdb=InitdbChoice(checksums=True, wal_segment_bytes=32 * 1024**2),
        limits=Limits(cpu_share=0.5, memory_bytes=2 * 1024**3),
    )
    variant = run.experiment.variants[0].model_copy(update={"system": system})
    document = run.experiment.model_copy(update={"variants": (variant,)})
    text = tomli_w.dumps(document.model_dump(mode="json", exclude_none=True))
    (run.folder / "experiment.toml").write_text(text)
    text = " ".join(printed(run).split())
    assert "made with checksums=on wal_segment_size=32MB, at most 0.5 CPUs, at most 2.0 GB" in text
    assert "settings work_mem = 8MB" in text


def test_a_trial_without_a_success_shows_no_times(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=3, warmup_s=0))
    stored = run.trials[0]
    summary = stored.summary
    assert summary is not None
    none = summary.times.service.model_copy(update=dict.fromkeys(Series.model_fields, 0))
    failed = summary.measurement.model_copy(
        update={"committed": 0, "failed": Failed(other=summary.measurement.scheduled)}
    )
    statement = summary.statements[0].model_copy(update={"time": none, "errors": 1_234_567})
    stored.write(
        "summary.json",
        summary.model_copy(
            update={
                "measurement": failed,
                "times": summary.times.model_copy(update={"service": none}),
                "statements": (statement,),
            }
        ),
    )
    text = printed(run)
    assert "No transaction was committed in 3.0 s." in text
    assert "0.000" not in text
    # A number as wide as its column still stands apart from its neighbour.
    assert re.search(r" 1 234 567$", text, re.M)


def test_quantities_are_not_torn_apart(run: Run) -> None:
    for width in range(60, 100):
        for line in printed(run, width).splitlines():
            assert not re.match(r"\s+\d{3}(\.\d)?/s\b", line), (width, line)
            assert not re.match(r"\s+(ms|tps|GB)\b.*[a-z]{4}", line.replace("ms   ", "")), line


def test_hostile_names_are_text(tmp_path: Path) -> None:
    options = RunOptions(
        duration_s=3,
        warmup_s=0,
        login_statement="SELECT '[red]\x1b[2J[/red]{shard}';",
        error_message="[bold]boom\x07[/nothing]",
    )
    text = printed(build_run(tmp_path, options))
    assert "\x1b" not in text and "\x07" not in text
    assert "[red]␛[2J[/red]0" in text
    assert "[bold]boom␇[/nothing]" in text


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(empty=True, outcome="failed", reason="the server did not start"),
        RunOptions(empty=True, outcome=None),
        RunOptions(duration_s=3, missing=("summary.json", "checks.json"), outcome=None),
        RunOptions(duration_s=3, missing=("intervals.jsonl", "environment.json", "settings.json")),
    ],
    ids=["failed early", "still running", "killed", "lost files"],
)
def test_incomplete_trials_are_printed_with_what_is_missing(
    tmp_path: Path, options: RunOptions
) -> None:
    run = build_run(tmp_path, options)
    text = printed(run)
    assert "not known, because" in " ".join(text.split())
    document = as_json(run)
    assert document["trials"][0]["missing"]
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_the_json_document_holds_the_figures(run: Run) -> None:
    document = as_json(run)
    summary = run.trials[0].summary
    assert summary is not None
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    measurement = document["trials"][0]["measurement"]
    assert measurement["throughput_per_s"] == summary.throughput_per_s
    assert measurement["response_time"]["p99_us"] == summary.times.service.p99_ns / 1e3
    assert measurement["counters"]["failed_total"] == 3
    assert measurement["schedule_lag"] is None
    assert document["tags"] == ["nightly"]
    assert document["trials"][0]["cpu"]["hosts"]["host"]["busy_share"] > 0.3


def test_every_name_of_the_json_document_is_described(run: Run) -> None:
    described = set(re.findall(r"`(\w+)`", DOCS.read_text()))
    document = as_json(run)
    trial = document["trials"][0]
    measurement = trial["measurement"]
    of_files = {"workload", "load", "durability", "data_load", "prewarm", "checks"}
    names = {
        *document,
        *trial,
        *measurement,
        *measurement["counters"],
        *measurement["response_time"],
    }
    names |= {*measurement["counters"]["failed"], *trial["missing"]} | of_files
    for kind in ("transaction_types", "statements", "errors"):
        names |= set(trial[kind][0])
    names |= set(trial["cpu"]["hosts"]["host"]) | set(trial["cpu"]["roles"]["engine"])
    assert names - described == set()
