"""The drop-in beside stock pgbench: the same command lines by turns, on one private server.

    python benches/drop_in.py --pairs 4 --seconds 5

Initialises with both (`-i -q`), then runs `-S -M prepared` at several numbers of clients. Prints
for each the throughput and the client's CPU time for a transaction, ours and stock's, with the
ratio of the pairs and its interval. There is no bar here: `benches/engine.py` holds those.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from comparison import Comparison, compare
from rich.console import Console
from rich.table import Table
from turns import run_words

from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision

_SETTINGS = {"max_connections": "300", "shared_buffers": "2GB"}
_DEADLINE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One command line, held by both. `metric` names what `value` reads from a turn."""

    title: str
    metric: str
    ours: tuple[float, ...]
    stock: tuple[float, ...]

    @property
    def compared(self) -> Comparison:
        """Ours over stock's."""
        return compare(self.ours, self.stock)


class Pair:
    """Ours and stock's, as words that begin a command line."""

    def __init__(self, server: Server, pairs: int) -> None:
        stock = None if server.bin_dir is None else server.bin_dir / "pgbench"
        if stock is None or not stock.exists():
            raise click.ClickException("stock pgbench is not installed beside the server")
        self._words = {"ours": [str(find_engine()), "pgbench"], "stock": [str(stock)]}
        self._conninfo = server.conninfo
        self._pairs = pairs

    def hold(self, arguments: Sequence[str]) -> dict[str, list[tuple[str, float, float]]]:
        """(output, CPU seconds, wall seconds) of every turn, A B B A …"""
        turns: dict[str, list[tuple[str, float, float]]] = {"ours": [], "stock": []}
        for number in range(self._pairs):
            order = ("ours", "stock") if number % 2 == 0 else ("stock", "ours")
            for side in order:
                words = [*self._words[side], *arguments, self._conninfo]
                turns[side].append(_turn(words))
        return turns


def _turn(words: Sequence[str]) -> tuple[str, float, float]:
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as folder:
        ended = run_words(words, {}, Path(folder), _DEADLINE_S)
    return ended.output, ended.cpu_s, time.monotonic() - began_s


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise click.ClickException(f"no '{pattern}' in the report:\n{text}")
    return float(found.group(1))


def _initialise(pair: Pair, scale: int) -> Line:
    turns = pair.hold(["-i", "-q", "-s", str(scale)])
    return Line(
        title=f"-i -q -s {scale}",
        metric="seconds",
        ours=tuple(wall_s for _, _, wall_s in turns["ours"]),
        stock=tuple(wall_s for _, _, wall_s in turns["stock"]),
    )


def _select_only(pair: Pair, clients: int, seconds: int) -> tuple[Line, ...]:
    title = f"-S -M prepared -c {clients} -j 1"
    turns = pair.hold(
        ["-n", "-S", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(seconds)]
    )

    def throughputs(side: str) -> tuple[float, ...]:
        return tuple(_number(r"tps = ([\d.]+) \(without", output) for output, _, _ in turns[side])

    def costs_us(side: str) -> tuple[float, ...]:
        return tuple(
            cpu_s * 1e6 / _number(r"actually processed: (\d+)", output)
            for output, cpu_s, _ in turns[side]
        )

    return tuple(
        Line(title=title, metric=metric, ours=read("ours"), stock=read("stock"))
        for metric, read in (
            ("transactions/s", throughputs),
            ("client CPU µs/transaction", costs_us),
        )
    )


@click.command()
@click.option("--pairs", default=4, show_default=True, help="Turns of each side.")
@click.option("--seconds", default=5, show_default=True, help="Length of a run.")
@click.option("--scale", default=50, show_default=True, help="Of the tables.")
@click.option("--clients", default="1,16,64,256", show_default=True, help="Numbers of clients.")
@click.option("--pg", help="PostgreSQL to use; default: the newest found.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write this file.")
def main(pg: str | None, json_file: Path | None, **counts: Any) -> None:
    """Hold every command line by turns, and compare."""
    lines: list[Line] = []
    with contextlib.ExitStack() as stack:
        choice = SystemChoice(pg=pg, settings=_SETTINGS)
        server = stack.enter_context(provision(choice, Local()))
        pair = Pair(server, counts["pairs"])
        lines.append(_initialise(pair, counts["scale"]))
        for count in counts["clients"].split(","):
            click.echo(f"{count} clients", err=True)
            lines.extend(_select_only(pair, int(count), counts["seconds"]))
    _show(lines, f"the drop-in beside stock pgbench, PostgreSQL {server.version}")
    if json_file is not None:
        rows = [
            {"line": line.title, "metric": line.metric, "ours": line.ours, "stock": line.stock}
            for line in lines
        ]
        json_file.write_text(json.dumps(rows, indent=2) + "\n")


def _show(lines: Sequence[Line], title: str) -> None:
    table = Table(title=title)
    for name in ("command line", "metric", "ours", "stock", "ratio [95 %]"):
        table.add_column(name)
    for line in lines:
        found = line.compared
        table.add_row(
            line.title,
            line.metric,
            _short(statistics.median(line.ours)),
            _short(statistics.median(line.stock)),
            f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]",
        )
    Console().print(table)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main()
