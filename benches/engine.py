"""The engine against its peers: what a transaction costs the client, and what it gets done.

    python benches/engine.py --quick --cells 'cpu-unix-*'

Every cell is at least four rounds in which ours and its peers take turns, the first of one round
being the last of the next. Everybody runs warm-up and measurement in one process; CPU time is that
of the whole process over all its transactions, for all alike. No side is pinned, except that in
cells with the null server client and server have a CPU each. Prints a table with medians, ranges
and ratios (95 % interval: Student's t on the logarithms of pairs), and writes every turn to
benches/out/results.json after each round. Peers that are missing are named. All cells take about
25 minutes.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import shutil
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from arena import Arena, Place, Sizes
from cells import Cell, all_cells
from contestants import Ours, Pgbench, Sysbench
from outcomes import Outcome, cell_document, table_row
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from turns import Contestant, Task, Turn

from pgdyno.errors import PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.observers.environment import host_facts

OUTPUT = Path(__file__).parent / "out" / "results.json"
THREADS_TRIED = (1, 2, 4)
# With a log of every transaction pgbench would be busy writing; so many give the same percentile.
LOGGED_WANTED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How often and how long."""

    pairs: int
    warmup_s: int
    duration_s: int


# Which -j is pgbench's best shows at once, or does not matter.
THREADS_TRIAL = Lengths(pairs=2, warmup_s=1, duration_s=2)


@click.command()
@click.option("--pairs", default=4, show_default=True, help="Rounds of each cell.")
@click.option("--seconds", default=5, show_default=True, help="Length of a measurement.")
@click.option("--warmup", default=2, show_default=True, help="Seconds of warm-up before it.")
@click.option("--scale", default=64, show_default=True, help="Of pgbench's tables.")
@click.option("--users", default=500_000, show_default=True, help="Of userlogin.")
@click.option("--cells", multiple=True, help="Only cells of these names; * and ? stand for more.")
@click.option("--quick", is_flag=True, help="Two short rounds, little data: a trial of the bench.")
@click.option("--pg", help="PostgreSQL to use; default: the newest found.")
@click.option("--output", type=click.Path(path_type=Path), default=OUTPUT, help="Results file.")
def main(*, cells: tuple[str, ...], quick: bool, output: Path, **options: Any) -> None:
    """Hold every cell that was asked for."""
    if quick:
        options |= {"pairs": 2, "seconds": 2, "warmup": 1, "scale": 5, "users": 50_000}
    wanted = [
        cell
        for cell in all_cells()
        if not cells or any(fnmatch.fnmatch(cell.name, pattern) for pattern in cells)
    ]
    if not wanted:
        names = ", ".join(cell.name for cell in all_cells())
        raise click.UsageError(f"no cell is called {' or '.join(cells)}; there are {names}")
    lengths = Lengths(
        pairs=options["pairs"], warmup_s=options["warmup"], duration_s=options["seconds"]
    )
    sizes = Sizes(scale=options["scale"], users=options["users"], pg=options["pg"])
    with contextlib.ExitStack() as stack:
        bench = Bench(Arena(sizes, stack), lengths, sizes)
        for number, cell in enumerate(wanted, start=1):
            click.echo(f"{cell.name}: cell {number} of {len(wanted)}", err=True)
            bench.hold(cell, output)
    print_whole(bench.table())
    for name, why in bench.absent().items():
        click.echo(f"skipped: {name}: {why}")
    click.echo(f"every turn is in {output}")


def print_whole(table: Table) -> None:
    """Print as wide as the table is: a figure that is folded cannot be read."""
    console = Console()
    needed = Measurement.get(console, console.options.update(width=1000), table).maximum
    Console(width=max(console.width, needed)).print(table)


class Bench:
    """Holds cells and keeps what came out."""

    def __init__(self, arena: Arena, lengths: Lengths, sizes: Sizes) -> None:
        self._arena = arena
        self._lengths = lengths
        self._sizes = sizes
        self._outcomes: list[Outcome] = []
        self._best: dict[tuple[str, int], dict[int, float]] = {}
        beside = arena.server("unix").bin_dir
        stock = None if beside is None else beside / "pgbench"
        found = str(stock) if stock is not None and stock.is_file() else shutil.which("pgbench")
        self._pgbench = Pgbench(program=None if found is None else Path(found))
        self._all: tuple[Contestant, ...] = (
            Ours(),
            self._pgbench,
            Sysbench(accounts=100_000 * sizes.scale),
        )

    def absent(self) -> dict[str, str]:
        """Peers that cannot take part, and why."""
        return {each.name: why for each in self._all if (why := each.missing()) is not None}

    def hold(self, cell: Cell, output: Path) -> None:
        """All rounds of a cell; what there is is written after each."""
        place = self._arena.place(cell)
        outcome = Outcome(cell=cell)
        self._outcomes.append(outcome)
        contestants = [
            each
            for each in self._all
            if (isinstance(each, Ours) or each.name in cell.bars)
            and each.missing() is None
            and each.can_do(self._arena.workload(cell.workload))
        ]
        threads = self._best_threads(cell, place, outcome) if cell.threads == "best" else 1
        for number in range(self._lengths.pairs):
            for each in contestants if number % 2 == 0 else reversed(contestants):
                if each.name in outcome.left_out:
                    continue
                own_rule = cell.threads == "best" and isinstance(each, Ours)
                try:
                    turn = self._turn(each, cell, place, 0 if own_rule else threads)
                except PgdynoError as error:
                    if isinstance(each, Ours):
                        raise
                    outcome.left_out[each.name] = error.message
                    outcome.turns.pop(each.name, None)
                    click.echo(f"{cell.name} {each.name} left out: {error.message}", err=True)
                    continue
                outcome.turns.setdefault(each.name, []).append(turn)
                value = getattr(turn, cell.metric)
                click.echo(f"{cell.name} {each.name}: {value:,.2f}", err=True)
            self.write(output)

    def _turn(
        self,
        each: Contestant,
        cell: Cell,
        place: Place,
        threads: int,
        lengths: Lengths | None = None,
    ) -> Turn:
        lengths = lengths or self._lengths
        logged_share = 0.0
        tried = self._best.get((cell.workload, cell.clients))
        if cell.metric == "p99_us" and tried:
            expected = max(tried.values()) * lengths.duration_s
            logged_share = min(1.0, round(LOGGED_WANTED / expected, 3))
        self._arena.settle(place)
        return each.turn(
            Task(
                workload=self._arena.workload(cell.workload),
                conninfo=place.conninfo,
                password=place.password,
                clients=cell.clients,
                threads=threads,
                warmup_s=lengths.warmup_s,
                duration_s=lengths.duration_s,
                logged_share=logged_share,
                cpus=self._arena.client_cpus(cell),
            )
        )

    def _best_threads(self, cell: Cell, place: Place, outcome: Outcome) -> int:
        """The `-j` with which pgbench does most: each is tried twice, forth and back."""
        if self._pgbench.missing() is not None:
            return 1
        key = (cell.workload, cell.clients)
        if key not in self._best:
            seen: dict[int, list[float]] = {}
            for threads in (*THREADS_TRIED, *reversed(THREADS_TRIED)):
                turn = self._turn(self._pgbench, cell, place, threads, THREADS_TRIAL)
                seen.setdefault(threads, []).append(turn.throughput_per_s)
            self._best[key] = {each: statistics.fmean(values) for each, values in seen.items()}
        outcome.tried = self._best[key]
        return max(outcome.tried, key=lambda threads: outcome.tried[threads])

    def table(self) -> Table:
        """Medians, ranges, ratios and bars."""
        table = Table(box=None, title=f"median (range) of {self._lengths.pairs} turns each")
        for column in ("cell", "metric", "ours", "peer", "peer's", "ratio (95 %)", "bar", ""):
            table.add_column(column)
        for outcome in self._outcomes:
            for peer, bar in outcome.cell.bars.items():
                if peer in outcome.turns:
                    table.add_row(*table_row(outcome, peer, bar))
        return table

    def write(self, file: Path) -> None:
        """All that is known so far, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(self._document(), indent=1) + "\n")
        unfinished.replace(file)

    def _document(self) -> dict[str, Any]:
        server = self._arena.server("unix")
        present = [each for each in self._all if each.missing() is None]
        return {
            "version": 1,
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": host_facts(Local()).model_dump(),
            "server_version": server.version,
            "contestants": {each.name: each.version() for each in present},
            "skipped": self.absent(),
            "method": {
                "pairs": self._lengths.pairs,
                "warmup_s": self._lengths.warmup_s,
                "duration_s": self._lengths.duration_s,
                "scale": self._sizes.scale,
                "users": self._sizes.users,
                "cpu": "user + sys of the whole process / all its transactions",
                "p99": f"pgbench: its log, sampled for {LOGGED_WANTED}; ours: histogram of all",
                "interval": "95 %, Student's t on logarithms of the ratios of pairs",
                "pinning": "null server and its clients: a CPU each; otherwise none",
            },
            "cells": [cell_document(outcome) for outcome in self._outcomes],
        }


if __name__ == "__main__":
    main()
