"""What our pgbench adds to the stock one: parallel initialisation, JSON, histograms, whole logs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.engine import find_engine
from pgdyno.foreign.pgbench_document import read_document
from pgdyno.reports.pgbench_page import render_pgbench_page

pytestmark = pytest.mark.pg

DEADLINE_S = 60.0
LEFT = """
SELECT (SELECT string_agg(t::text, ' ' ORDER BY bid) FROM pgbench_branches t),
       (SELECT md5(string_agg(t::text, ' ' ORDER BY tid)) FROM pgbench_tellers t),
       (SELECT md5(string_agg(t::text, ' ' ORDER BY aid)) FROM pgbench_accounts t),
       (SELECT count(*) FROM pg_attrdef WHERE adrelid = 'pgbench_accounts'::regclass)
"""


def started(database: str, words: str, folder: Path) -> subprocess.Popen[str]:
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    places = {names[k]: str(v) for k, v in conninfo_to_dict(database).items() if k in names}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    engine = find_engine()
    return subprocess.Popen(
        [engine, "pgbench", *words.split()],
        cwd=folder,
        env=kept | places,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(database: str, words: str, folder: Path) -> tuple[int, str, str]:
    with started(database, words, folder) as process:
        out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


def left(database: str) -> tuple[object, ...]:
    with psycopg.connect(database) as connection:
        found = connection.execute(LEFT).fetchone()
    assert found is not None
    return found


def test_several_sessions_make_the_same_tables(database: str, tmp_path: Path) -> None:
    found = []
    for jobs in (1, 3):
        status, out, err = ended(database, f"-i -q -s 6 --foreign-keys --jobs {jobs}", tmp_path)
        assert (status, out) == (0, ""), err
        assert "600000 of 600000 tuples (100%) of pgbench_accounts done" in err
        found.append(left(database))
    assert found[0] == found[1]
    # Tables that somebody else made may have columns and defaults of their own.
    with psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE pgbench_accounts ALTER abalance SET DEFAULT 7")
    status, _, err = ended(database, "-i -q -s 6 -I g --jobs 2", tmp_path)
    assert status == 0, err
    assert found[0][-1] == 0
    assert left(database) == (*found[0][:-1], 1)


def test_rows_of_range_partitions_are_frozen(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        found = connection.execute(
            "SELECT FROM pg_available_extensions WHERE name = 'pg_visibility'"
        ).fetchone()
        if found is None:
            pytest.skip("the server comes without pg_visibility")
        connection.execute("CREATE EXTENSION pg_visibility")
        status, _, err = ended(database, "-i -q -s 1 -I dtg --partitions 3", tmp_path)
        assert status == 0, err
        pages = connection.execute(
            "SELECT relname, relkind, (pg_visibility_map_summary(oid)).all_frozen,"
            "       pg_relation_size(oid) / current_setting('block_size')::int"
            " FROM pg_class WHERE relname ~ '^pgbench_accounts_.$' ORDER BY relname"
        ).fetchall()
        rows = connection.execute(
            "SELECT tableoid::regclass::text, min(aid), max(aid), count(*), max(bid)"
            " FROM pgbench_accounts GROUP BY tableoid ORDER BY 1"
        ).fetchall()
    assert [(name, kind) for name, kind, _, _ in pages] == [
        (f"pgbench_accounts_{number}", "r") for number in (1, 2, 3)
    ]
    assert all(frozen == size > 0 for _, _, frozen, size in pages), pages
    assert rows == [
        ("pgbench_accounts_1", 1, 33_334, 33_334, 1),
        ("pgbench_accounts_2", 33_335, 66_668, 33_334, 1),
        ("pgbench_accounts_3", 66_669, 100_000, 33_332, 1),
    ]


def test_ctrl_c_cancels_the_initialisation(database: str, tmp_path: Path) -> None:
    with started(database, "-i -s 100 -I dtg", tmp_path) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any("tuples (1%)" in line for line in lines)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "Cancel request sent\n" in err
    assert "ERROR:  " in err
    assert "pgbench: error: PQendcopy failed\n" in err
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (0,)


def test_json_histograms_and_log_tell_what_the_report_tells(database: str, tmp_path: Path) -> None:
    ended(database, "-i -q -s 1", tmp_path)
    words = (
        "-n -T 2 -c 3 -j 2 -b select-only -b simple-update@2 -r --percentiles=50,99.9 "
        "--json=run.json --hdr=run.hlog -l --aggregate-interval=1 --log-prefix=log"
    )
    begin_s = time.time()
    status, out, err = ended(database, words, tmp_path)
    assert (status, err) == (0, "")
    report = dict(re.findall(r"^([a-z0-9. ]+?)(?: =|:) ([\d.]+)", out, re.MULTILINE))
    document = json.loads((tmp_path / "run.json").read_text())
    total = document["total"]
    assert document["ending"] == "completed"
    assert total["committed"] == int(report["number of transactions actually processed"]) > 0
    assert total["committed"] == sum(script["committed"] for script in document["scripts"])
    assert total["committed"] == sum(interval["committed"] for interval in document["intervals"])
    response_time = total["latency"]
    for name in ("p50", "p99.9"):
        expected_us = response_time["percentiles_us"][name]
        assert float(report[f"latency {name}"]) == pytest.approx(expected_us / 1000, abs=0.0006)
    assert float(report["latency average"]) == pytest.approx(
        response_time["mean_us"] / 1000, abs=0.0006
    )
    assert float(report["tps"]) == pytest.approx(total["tps"], rel=1e-6)
    page = render_pgbench_page(read_document(tmp_path / "run.json"), "run")
    assert "<title>run · pgbench · pgdyno</title>" in page
    assert "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;" in page
    assert page.count('<figure class="track" data-panel="') == 2
    lines = [
        line.split() for path in tmp_path.glob("log.*") for line in path.read_text().splitlines()
    ]
    assert {len(line) for line in lines} == {15}
    assert begin_s - 1 <= min(int(line[0]) for line in lines) <= time.time()
    assert sum(int(line[1]) for line in lines) == total["committed"]
    tags = set(re.findall(r"^Tag=(\S+?),", (tmp_path / "run.hlog").read_text(), re.MULTILINE))
    assert tags == {"script1.service", "script2.service"}
