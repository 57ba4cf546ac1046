"""`pgdyno doctor`: what it finds, what would be refused, and that nothing is changed."""

from __future__ import annotations

import psycopg
import pytest

from pgdyno.servers.base import Server
from tests.pg.commands import Place

pytestmark = pytest.mark.pg


def test_it_tells_of_this_machine_and_changes_nothing(place: Place) -> None:
    ended = place.pgdyno("doctor", "--json")
    assert (ended.status, ended.error) == (0, "")
    found = ended.json
    assert found["problems"] == 0
    sections = {each["section"] for each in found["findings"]}
    assert sections == {"machine", "kernel", "limits", "storage", "postgresql", "system"}
    named = {each["name"]: each for each in found["findings"]}
    assert named["fs.aio-max-nr"]["published"] == "1048576"
    assert named["connections"]["value"] == "22 needed, max_connections = 100"
    assert not place.runs.exists()


def test_what_a_run_would_refuse_is_a_problem(place: Place) -> None:
    ended = place.pgdyno(
        *("doctor", "--profile", "osc-2014", "--clients", "300", "--memory-limit", "8GB")
    )
    assert ended.status == 3
    # Lines are filled to the width of the terminal.
    text = " ".join(ended.output.split())
    assert "give --set max_connections=306" in text
    assert "shared_buffers = 8.0 GB do not fit into 8.0 GB of memory" in text
    assert "checkpoint_segments = '512' is max_wal_size = '24576MB' here" in text
    assert "2 problems" in text
    assert all(len(line) <= 100 for line in ended.output.splitlines())


def test_a_wrong_setting_is_told_as_a_run_would(place: Place) -> None:
    ended = place.pgdyno("doctor", "--set", "shared_bufers=1GB", "--json")
    assert ended.status == 3
    advice = [each["advice"] for each in ended.json["findings"] if each["verdict"] == "problem"]
    assert advice[0].startswith("setting 'shared_bufers' does not exist; did you mean")


def test_of_a_running_server_it_tells_what_our_role_may_do(
    place: Place, server: Server, database: str
) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE ROLE doctor_test LOGIN CONNECTION LIMIT 5")
    try:
        ended = place.pgdyno("doctor", "--dsn", f"{database} user=doctor_test", "--json")
    finally:
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("DROP ROLE doctor_test")
    assert ended.status == 3
    system = [each for each in ended.json["findings"] if each["section"] == "system"]
    told = {each["value"]: each["verdict"] for each in system}
    assert told["no pg_monitor"] == "consider"
    assert told["no CREATE"] == "problem"
    assert any("CONNECTION LIMIT allows 5" in (each["advice"] or "") for each in system)
