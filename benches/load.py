"""Loading against its peers: the seed's own statements run by psql, and `pgbench -i`.

    python benches/load.py --pairs 3

Starts a private server with default settings and loads by turns, A B A B, each into a new database
of that server; compares rows by checksum; prints medians, ranges and the ratio. Logged tables, all
vacuumed. A peer that is not installed is skipped by name. Bars: 0.7 for both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import psycopg
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.table import Table

from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.model import LoadReport, SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.loading import LoadRequest, load
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.target import Target

BAR = 0.7
PEER_DEADLINE_S = 3600
CHECKSUMS = {
    # crt_time is a clock's in the seed's statements and fixed in ours.
    "userlogin": (
        "select count(*), sum(hashtext((userid, engname, cnname, occupation, birthday, signname,"
        " email, qq, mod_time)::text)) from user_info",
        "select count(*), sum(hashtext(t::text)) from user_session t",
    ),
    "tpcb": (
        "select count(*), sum(hashtext(t::text)) from pgbench_accounts t",
        "select count(*), sum(hashtext(t::text)) from pgbench_tellers t",
        "select count(*), sum(hashtext(t::text)) from pgbench_branches t",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One workload and its peer; `peer_words` gives the peer's command for a database."""

    workload: ResolvedWorkload
    peer: str
    peer_words: Callable[[str], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Seconds of each turn, ours with their steps, and whether the rows were alike."""

    name: str
    peer: str
    ours_s: list[float]
    peer_s: list[float]
    steps: list[dict[str, float]]
    alike: bool

    @property
    def ratio(self) -> float:
        """Our median over the peer's."""
        return statistics.median(self.ours_s) / statistics.median(self.peer_s)


@click.command()
@click.option("--pairs", default=3, show_default=True, help="Turns of each side.")
@click.option("--users", default=2_000_000, show_default=True)
@click.option("--scale", default=50, show_default=True)
@click.option("--connections", default=2, show_default=True, help="Connections of our load.")
@click.option("--only", type=click.Choice(["userlogin", "tpcb"]), help="One contest only.")
@click.option("--pg", help="PostgreSQL to use; default: the newest found.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Also write results here."
)
def main(
    pairs: int,
    connections: int,
    only: str | None,
    pg: str | None,
    json_file: Path | None,
    **sizes: int,
) -> None:
    """Load by turns with ours and the peer, and compare."""
    with provision(SystemChoice(pg=pg), Local()) as server:
        outcomes = []
        for contest in contests(server, sizes):
            if only in (None, contest.workload.name):
                if not Path(contest.peer_words("")[0]).is_file():
                    click.echo(f"skipped: {contest.peer} is not installed beside this server")
                    continue
                outcomes.append(hold(contest, server, pairs, connections))
        show(outcomes, server)
    if json_file is not None:
        json_file.write_text(json.dumps([_as_json(each) for each in outcomes], indent=2) + "\n")


def contests(server: Server, sizes: dict[str, int]) -> list[Contest]:
    """The two contests that the bars are about."""
    assert server.bin_dir is not None
    psql, pgbench = str(server.bin_dir / "psql"), str(server.bin_dir / "pgbench")
    users, scale = str(sizes["users"]), str(sizes["scale"])
    statements = str(Path(__file__).with_name("userlogin_2013.sql"))
    return [
        Contest(
            workload=resolve(catalog.find("userlogin"), {"users": users}),
            peer="the seed's statements by psql",
            peer_words=lambda database: [
                *(psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"users={users}"),
                *("-f", statements, "-d", database),
            ],
        ),
        Contest(
            workload=resolve(catalog.find("tpcb"), {"scale": scale}),
            peer=f"pgbench -i -s {scale}",
            peer_words=lambda database: [pgbench, "-i", "-q", "-s", scale, database],
        ),
    ]


def hold(contest: Contest, server: Server, pairs: int, connections: int) -> Outcome:
    """Load by turns; the side that begins changes from pair to pair."""
    ours_s: list[float] = []
    peer_s: list[float] = []
    steps: list[dict[str, float]] = []
    sums: set[tuple[object, ...]] = set()
    for pair in range(pairs):
        for side in ("ours", "peer") if pair % 2 == 0 else ("peer", "ours"):
            database = fresh_database(server)
            began_s = time.monotonic()
            if side == "ours":
                report = load_ours(contest.workload, database, server, connections)
                ours_s.append(time.monotonic() - began_s)
                steps.append({str(step.name): round(step.duration_s, 3) for step in report.steps})
            else:
                words = contest.peer_words(database)
                subprocess.run(words, check=True, capture_output=True, timeout=PEER_DEADLINE_S)
                peer_s.append(time.monotonic() - began_s)
            sums.add(checksum(contest.workload.name, database))
            click.echo(
                f"{contest.workload.name} {side}: {(ours_s, peer_s)[side == 'peer'][-1]:.2f} s"
            )
    return Outcome(
        name=contest.workload.name,
        peer=contest.peer,
        ours_s=ours_s,
        peer_s=peer_s,
        steps=steps,
        alike=len(sums) == 1,
    )


def load_ours(
    workload: ResolvedWorkload, database: str, server: Server, connections: int
) -> LoadReport:
    """Our side of a turn."""
    loader = Loader(engine=find_engine(), host=Local(), connections=connections)
    target = Target(conninfo=database, initdb_options=server.initdb_options)
    memory = Path("/proc/meminfo").read_text().split()
    memory_bytes = int(memory[memory.index("MemTotal:") + 1]) * 1024
    return load(workload, LoadRequest(target=target, loader=loader, memory_bytes=memory_bytes))


def fresh_database(server: Server) -> str:
    """A new empty database and a settled server: no turn pays for another's dirty pages."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("drop database if exists contest")
        connection.execute("create database contest")
        connection.execute("checkpoint")
    return make_conninfo(server.conninfo, dbname="contest")


def checksum(name: str, database: str) -> tuple[object, ...]:
    """Numbers that are equal where the rows are, whatever their order."""
    with psycopg.connect(database) as connection:
        return tuple(connection.execute(query.encode()).fetchone() for query in CHECKSUMS[name])


def show(outcomes: list[Outcome], server: Server) -> None:
    """The table of medians and ratios."""
    table = Table(title=f"loading, PostgreSQL {server.version}, default settings, logged, vacuumed")
    for title in ("workload", "peer", "ours", "peer's", "ratio", f"≤ {BAR}", "rows alike"):
        table.add_column(title)
    for each in outcomes:
        table.add_row(
            each.name,
            each.peer,
            _spread(each.ours_s),
            _spread(each.peer_s),
            f"{each.ratio:.3f}",
            "yes" if each.ratio <= BAR else "no",
            "yes" if each.alike else "NO",
        )
    console = Console()
    console.print(table)
    for each in outcomes:
        for steps in each.steps:
            console.print(
                f"{each.name} steps: " + ", ".join(f"{k} {v} s" for k, v in steps.items())
            )


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f})"


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "workload": outcome.name,
        "peer": outcome.peer,
        "ours_s": outcome.ours_s,
        "peer_s": outcome.peer_s,
        "ratio": outcome.ratio,
        "steps": outcome.steps,
        "rows_alike": outcome.alike,
    }


if __name__ == "__main__":
    main()
