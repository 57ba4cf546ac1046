"""`pgdyno ab` on a real server: from nothing to a verdict, its page, and the same answer again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgdyno.servers.base import Server
from tests.pg.commands import Place

pytestmark = pytest.mark.pg


def test_a_large_difference_is_found_and_found_again(place: Place, server: Server) -> None:
    # A sleep of 2 ms beside none: no machine is so noisy that six blocks could miss it.
    script = place.folder / "nap.sql"
    script.write_text("\\sleep :nap_us us\nSELECT 1;\n")
    script.chmod(0o644)
    ended = place.pgdyno(
        "ab", str(script), "--a", "param:nap_us=1", "--b", "param:nap_us=2000", "-c", "1",
        "--time", "0.3s", "--warmup", "0s", "--replicates", "6", "--no-aa", "--json",
        "--dsn", server.conninfo, deadline_s=180,
    )  # fmt: skip
    assert ended.status == 0, ended.error
    (finding,) = ended.json["pairs"][0]["findings"]
    assert (finding["verdict"], finding["effect"]["blocks"]) == ("worse", 6)
    assert finding["effect"]["high"] < 0.9
    differences = {each["what"] for each in ended.json["pairs"][0]["differences"]}
    assert "nap_us" in differences

    folder = Path(ended.json["folder"])
    page = (folder / "report.html").read_text()
    links = re.findall(r'href="(trials/[^"]+)"', page)
    assert len(links) == 12 and all((folder / link).exists() for link in links)

    run = ended.json["id"]
    sides = (f"{run}:nap_us=1", "--", f"{run}:nap_us=2000")
    again = place.pgdyno("compare", *sides, "--json", "--fail-if-worse")
    assert again.status == 3
    assert again.json["pairs"][0]["findings"][0]["effect"] == finding["effect"]
    shown = place.pgdyno("show", run)
    assert "nap_us=2000 is worse than 1" in shown.output
