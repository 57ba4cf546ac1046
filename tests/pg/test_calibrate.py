"""`pgdyno calibrate` as a person runs it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pgdyno.calibration.store import FILE_NAME
from tests.pg.commands import Place

pytestmark = pytest.mark.pg


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)


@pytest.mark.parametrize("workload", ["noop", "select-only", "tpcb", "userlogin"])
def test_every_workload_has_a_ceiling(place: Place, workload: str) -> None:
    ended = place.pgdyno("calibrate", workload, "--clients", "8", "--time", "1s", "--json")
    assert ended.status == 0, ended.error
    found = ended.json
    ceiling = found["ceiling"]
    assert found["name"] == workload
    assert ceiling["transactions"] > 100
    assert found["per_core_per_s"] == pytest.approx(
        ceiling["transactions"] / ceiling["cpu_ns"] * 1e9
    )
    # Nobody has more CPU time than threads, and nobody answers without any.
    assert 0 < found["busy_share"] < 1.1
    assert ceiling["server_cpu_ns"] > 0
    kept = json.loads((place.folder / "state" / "pgdyno" / FILE_NAME).read_text())
    assert [each["key"] for each in kept["calibrations"]] == [found["key"]]
    assert not list(place.folder.glob("pgdyno-*"))


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_over_tcp_in_every_protocol_with_larger_results(place: Place, protocol: str) -> None:
    words = ("calibrate", "--tcp", "-M", protocol, "--rows", "10", "--row-bytes", "100")
    ended = place.pgdyno(*words, "-T", "1s", "--json")
    assert ended.status == 0, ended.error
    assert ended.json["protocol"] == protocol
    assert ended.json["answer"] == {"rows": 10, "row_bytes": 100}


def test_people_are_told_the_ceiling_of_a_core(place: Place) -> None:
    ended = place.pgdyno("calibrate", "userlogin", "--users", "1000", "-T", "1s", "-c", "4")
    assert ended.status == 0, ended.error
    assert "transactions per core" in ended.output
    assert "userlogin, prepared, 4 clients" in ended.output


def test_a_script_with_results_in_variables_can_be_calibrated(place: Place) -> None:
    script = place.folder / "own.sql"
    script.write_text(
        "SELECT a, b FROM t WHERE c = 1 \\gset\nUPDATE t SET a = :a + :b WHERE c = 1;\n"
    )
    ended = place.pgdyno("calibrate", str(script), "-T", "1s", "--json")
    assert ended.status == 0, ended.error
    assert ended.json["ceiling"]["transactions"] > 100


def test_a_run_says_how_much_of_the_ceiling_it_used_or_how_to_learn_it(place: Place) -> None:
    own = place.folder / "own.sql"
    own.write_text("\\set k random(1, :most)\nSELECT :k;\n")
    words = ("run", str(own), "--param", "most=9", "-c", "4", "-T", "1s", "--warmup", "0s")

    def use() -> Any:
        ended = place.pgdyno(*words, "--no-report", "--no-prewarm")
        assert ended.status == 0, ended.error
        last = max(place.folder.glob("runs/*/trials/*/trial.json"), key=lambda f: f.stat().st_mtime)
        return json.loads(last.read_text())["generator"]

    before = use()
    assert before["of_ceiling"] is None and before["busy"] > 0
    command = shlex.split(before["calibrate"])
    assert command[0] == "pgdyno"
    assert place.pgdyno(*command[1:], "-T", "1s").status == 0
    after = use()
    assert after["calibrate"] is None
    assert 0 < after["of_ceiling"] < 1.5


def test_what_cannot_be_calibrated_is_told(place: Place) -> None:
    unknown = place.pgdyno("calibrate", "tpbc")
    assert unknown.status == 2
    assert "did you mean 'tpcb'" in unknown.error
    nothing = place.pgdyno("calibrate", "--time", "0s")
    assert nothing.status == 2
    refused = place.folder / "refused.sql"
    refused.write_text("COPY t TO STDOUT;\n")
    failed = place.pgdyno("calibrate", str(refused), "-T", "1s")
    assert failed.status != 0
    assert failed.error.startswith("pgdyno: ")
    assert "Traceback" not in failed.error
