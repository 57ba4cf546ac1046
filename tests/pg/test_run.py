"""`pgdyno run` from nothing to a report, and what is left of it afterwards: nothing."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pgdyno.experiment.store import find_run
from tests.pg.commands import Place

pytestmark = pytest.mark.pg
QUICK = ("--warmup", "1s", "--time", "2s", "--clients", "2")


def test_from_nothing_to_a_report(place: Place) -> None:
    ended = place.pgdyno("run", "userlogin", "--users", "20_000", *QUICK, "--json")
    assert ended.status == 0, ended.error
    run = find_run("last", place.runs)
    (stored,) = run.trials
    summary, trial = stored.summary, stored.trial
    assert summary is not None and summary.outcome == "completed"
    assert trial.outcome == "completed" and trial.durability is not None
    assert trial.durability.durability_class == "D2"
    assert [phase.name for phase in trial.phases if phase.end_s is None] == []
    counts = summary.measurement
    assert counts.scheduled == (
        counts.committed + counts.failed.total + counts.unknown + counts.skipped
        + counts.in_flight_at_end
    )  # fmt: skip
    lines = [line for line in stored.intervals() if line.phase == "measurement"]
    assert sum(line.counters.committed for line in lines) == counts.committed > 0
    assert sum(line.times.service.sum_ns for line in lines) == summary.times.service.sum_ns
    assert {result.verdict for result in stored.checks} == {"held"}
    assert set(stored.observation_names()) >= {"host_cpu", "database", "wal", "processes"}
    assert stored.sizes is not None and stored.sizes.database_bytes_after
    report = (run.folder / "report.html").read_text()
    assert "userlogin" in report and len(report) < 2_000_000


def test_the_summary_for_people(place: Place) -> None:
    ended = place.pgdyno("run", "noop", *QUICK, "--no-report")
    assert ended.status == 0, ended.error
    for word in ("noop", "tps", "p99", "nothing written", str(place.runs)):
        assert word in ended.output, ended.output
    assert "measure" in ended.error
    assert place.pgdyno("show", "last").output == ended.output
    listed = place.pgdyno("list", "--json").json
    assert [row["outcome"] for row in listed] == ["completed"]
    assert place.pgdyno("tag", "last", "first").output == "first\n"
    assert place.pgdyno("prune", "--all").output.startswith("0 runs")


def test_a_run_repeats_from_its_folder_alone(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "mine.sql"
    script.write_text("\\set n random(1, 10)\nselect :n;\n")
    assert place.pgdyno("run", str(script), *QUICK, "--seed", "5").status == 0
    script.unlink()
    ended = place.pgdyno("rerun", "last")
    assert ended.status == 0, ended.error
    first, second = (find_run(row["id"], place.runs) for row in place.pgdyno("list", "--json").json)
    assert first.experiment.variants == second.experiment.variants


def test_data_kept_are_used_again(place: Place) -> None:
    data = place.folder / "kept"
    words = ("run", "tpcb", "--scale", "1", "--data", str(data), *QUICK)
    ended = place.pgdyno(*words)
    assert ended.status == 0, ended.error
    assert place.pgdyno(*words).status == 0
    loads = [run.trials[0].trial.load for run in map(lambda row: find_run(row["id"], place.runs),
             place.pgdyno("list", "--json").json)]  # fmt: skip
    assert [load.reused for load in loads if load] == [False, True]


def test_your_own_server(place: Place, database: str) -> None:
    ended = place.pgdyno("run", "select-only", "--scale", "1", "--dsn", database, *QUICK, "--json")
    assert ended.status == 0, ended.error
    (stored,) = find_run("last", place.runs).trials
    durability = stored.trial.durability
    assert durability is not None and durability.durability_class == "none"
    with psycopg.connect(database) as connection:
        row = connection.execute("select count(*) from pgbench_accounts").fetchone()
    assert row == (100_000,)


def test_a_row_deleted_under_the_load_is_caught(place: Place, database: str) -> None:
    words = ("run", "userlogin", "--users", "1000", "--dsn", database, "--warmup", "1s")
    process = place.start(*words, "--time", "4s", "--clients", "2")
    try:
        with psycopg.connect(database, autocommit=True) as connection:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("measure"):
                    break
            connection.execute("delete from user_session where userid = 7")
        output, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 3, error
    assert "broken" in output
    broken = [c for c in find_run("last", place.runs).trials[0].checks if c.verdict == "broken"]
    assert broken and all(check.after == "measurement" for check in broken)
