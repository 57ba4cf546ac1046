"""Experiments on real servers: loaded states given back, killed and resumed, commands before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.experiment.store import find_run
from pgdyno.servers import orphans
from pgdyno.servers.processes import ProcessIdentity
from pgdyno.servers.trial_database import own_name
from tests.pg.commands import Place, finish
from tests.pg.experiments import (
    ONCE,
    PAIR,
    SHORT,
    TWICE,
    kill_and_resume,
    run_short,
    trials_of,
    write,
)

pytestmark = pytest.mark.pg

# The rows in a fixed order, so that equal data give an equal line.
CHECKSUM = "select md5(string_agg(a::text, ',' order by aid)) from pgbench_accounts as a"


@pytest.fixture
def sharing_place() -> Iterator[Place]:
    """A place on a file system whose files can share blocks, made for the test."""
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        pytest.skip("needs root and mkfs.xfs, to make a file system that can clone")
    with tempfile.TemporaryDirectory(prefix="xfs-test-", dir="/var/tmp") as folder:
        image, mounted = Path(folder) / "image", Path(folder) / "mounted"
        mounted.mkdir()
        Path(folder).chmod(0o755)
        os.truncate(os.open(image, os.O_CREAT | os.O_WRONLY), 400 * 1024**2)
        subprocess.run(["mkfs.xfs", "-q", image], check=True, timeout=30)
        mount = ["mount", "-o", "loop", str(image), str(mounted)]
        if subprocess.run(mount, check=False, timeout=30).returncode != 0:
            pytest.skip("a loop device cannot be mounted here")
        try:
            mounted.chmod(0o1777)
            here = Place(folder=mounted)
            yield here
            assert (here.left_running(), here.left_behind()) == ([], [])
        finally:
            subprocess.run(["umount", "--lazy", mounted], check=True, timeout=30)


def test_every_way_gives_the_same_data_and_each_variant_its_own_settings(place: Place) -> None:
    sums, shown = place.folder / "sums", place.folder / "shown"
    before = (
        f'before = "psql -Atc \\"{CHECKSUM}\\" >> {sums}; '
        f"psql -Atc 'show shared_buffers' >> {shown}\"\n"
    )
    factors = '[factors]\n"set:shared_buffers" = ["16MB", "32MB"]\n'
    for method in ("copy", "template"):
        first, second = run_short(place, ONCE + before + f'reset = "{method}"\n' + factors)
        for trial in (first, second):
            assert trial.outcome == "completed"
            assert trial.reset is not None and trial.reset.method == method
            assert trial.state_age is not None and trial.state_age.measurements == 0
            assert trial.state_age.wal_since_checkpoint_bytes is not None
            assert trial.state_age.wal_since_checkpoint_bytes < 1024**2
        assert first.load is not None and not first.load.reused
        assert second.load is not None and second.load.reused
        assert first.state == second.state is not None
    lines = sums.read_text().split()
    assert len(lines) == 4 and len(set(lines)) == 1
    # A variant that needs a restart gets one; a setting holds for its own variant only.
    assert sorted(shown.read_text().split()) == ["16MB", "16MB", "32MB", "32MB"]


def test_clones_where_files_can_share_blocks(sharing_place: Place) -> None:
    before = f'before = "psql -Atc \\"{CHECKSUM}\\" >> {sharing_place.folder}/sums"\n'
    text = TWICE + before + "[factors]\nclients = [1]\n"
    trials = run_short(sharing_place, text)
    assert [trial.reset.method for trial in trials if trial.reset] == ["clone", "clone"]
    one, other = (sharing_place.folder / "sums").read_text().split()
    assert one == other
    ages = [trial.state_age for trial in trials if trial.state_age]
    assert ages[0].checkpoint_distance_bytes == ages[1].checkpoint_distance_bytes


def test_clones_are_refused_where_files_cannot_share_blocks(place: Place) -> None:
    text = TWICE + 'reset = "clone"\n[factors]\nclients = [1]\n'
    ended = place.pgdyno("experiment", "run", write(place, text))
    if ended.status == 0:
        pytest.skip("files can share blocks in this place")
    assert ended.status == 2
    assert "needs a file system whose files can share blocks" in ended.error
    assert list(place.runs.glob("*")) == []


def test_killed_within_a_reset_and_a_measurement_it_resumes(place: Place) -> None:
    # The five moments are in tests/slow.
    moments = (("reset: bringing", 1), ("measure:", 2))
    trials = kill_and_resume(place, ONCE + 'reset = "copy"\n' + PAIR, moments)
    assert [trial.outcome for trial in trials] == [
        "interrupted", "completed", "interrupted", "completed",
    ]  # fmt: skip


def test_ctrl_c_keeps_what_has_ended(place: Place) -> None:
    text = TWICE.replace("500ms", "2s") + PAIR
    process = place.start("experiment", "run", write(place, text), "--no-report")
    assert process.stderr is not None
    measured = 0
    for line in process.stderr:
        measured += line.startswith("measure:")
        if measured == 2:
            break
    process.send_signal(signal.SIGINT)
    ended = finish(process)
    assert ended.status == 130, ended.error
    run = find_run("last", place.runs)
    assert f"pgdyno experiment resume {run.id} goes on from here" in ended.error
    assert [trial.outcome for trial in trials_of(run)] == ["completed", "interrupted"]


def test_a_command_before_that_fails_is_told_with_its_last_line(place: Place) -> None:
    text = TWICE + 'before = "echo one; echo two words >&2; exit 7"\n'
    ended = place.pgdyno("experiment", "run", write(place, text + "[factors]\nclients = [1]\n"))
    assert ended.status == 1
    assert "the command before the trial failed with status 7: two words" in ended.error
    (stored,) = find_run("last", place.runs).trials
    assert stored.trial.outcome == "failed" and "two words" in (stored.trial.reason or "")
    assert (stored.folder / "logs" / "before.log").read_text() == "one\ntwo words\n"


def databases(conninfo: str) -> set[str]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return {str(row[0]) for row in connection.execute("select datname from pg_database")}


def test_on_a_server_of_ones_own_trials_get_copies_of_the_database(
    place: Place, database: str
) -> None:
    name = conninfo_to_dict(database)["dbname"]
    gone = own_name(orphans.here(), ProcessIdentity(pid=4_000_000, start_ticks=1))
    elsewhere = "pgdyno_trial_000000_000000_000000_1_1"
    maintenance = make_conninfo(database, dbname="postgres")
    with psycopg.connect(maintenance, autocommit=True) as connection:
        for left in (gone, elsewhere):
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(left)))
        change = "alter database {} set search_path to public, pg_catalog"
        connection.execute(sql.SQL(change).format(sql.Identifier(str(name))))
    shown = f"before = \"psql -Atc 'show search_path' >> {place.folder}/shown\"\n"
    try:
        text = SHORT + "replicates = 1\n" + shown + f'dsn = "{database}"\n' + PAIR
        trials = run_short(place, text)
        assert [trial.reset.method for trial in trials if trial.reset] == ["template", "template"]
        now = databases(maintenance)
        assert elsewhere in now and gone not in now
        assert not {one for one in now if one.startswith("pgdyno_trial_")} - {elsewhere}
        assert set((place.folder / "shown").read_text().splitlines()) == {"public, pg_catalog"}
        with psycopg.connect(database) as connection:
            rows = connection.execute("select count(*) from pgbench_history").fetchone()
        assert rows == (0,), "trials ran in the database itself"
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            for one in (gone, elsewhere):
                connection.execute(
                    sql.SQL("drop database if exists {}").format(sql.Identifier(one))
                )


def test_a_kept_data_folder_stays_as_it_was_loaded(place: Place) -> None:
    data = place.folder / "kept"
    text = SHORT + f'replicates = 1\ndata = "{data}"\nreset = "copy"\n' + PAIR
    first = run_short(place, text)
    again = run_short(place, text.replace("[1, 2]", "[1]"))
    assert [trial.load.reused for trial in first + again if trial.load] == [False, True, True]
    assert {trial.outcome for trial in first + again} == {"completed"}
    assert (data / "PG_VERSION").exists() and list(data.glob("pgdyno-*")) == []
    shutil.rmtree(data)
