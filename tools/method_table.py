"""Try the method on simulated experiments and write the tables into docs/method.md.

    python tools/method_table.py [EXPERIMENTS]

EXPERIMENTS of each case (4000 by default: a few minutes); the seed is fixed, so the same number
makes the same tables.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pgdyno.stats import power
from pgdyno.stats.scorecard import (
    Case,
    Method,
    in_blocks,
    peeking,
    reaching_precision,
    score,
    stopping_early,
    unpaired,
)
from pgdyno.stats.simulator import NOISES, Noise
from pgdyno.stats.steady_state import steadiness

PAGE = Path(__file__).parent.parent / "docs" / "method.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
SEED = 2026


def main() -> int:
    """Count, then replace what stands between the two marks of the page."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    made = "\n".join(
        [
            f"Counted with `python tools/method_table.py {experiments}`: {experiments} experiments"
            ' of each case (half as many where looks are taken, a\nquarter for "decided"), so a'
            f" share of 5 % is counted to ± {_error(experiments):.1f} points"
            f" ({_error(experiments // 2):.1f}, {_error(experiments // 4):.1f}).\n",
            *within_blocks(experiments),
            *few_blocks(experiments),
            *promises(experiments),
            *while_it_runs(experiments),
            *without_blocks(experiments),
            *warm_ups(),
        ]
    )
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{made}\n{END}{after}")
    return 0


def within_blocks(experiments: int) -> Iterable[str]:
    """False differences, coverage, power and false equivalence, of every noise."""
    rows = []
    for blocks in (6, 10, 30):
        for name, noise in NOISES.items():
            same, slower, edge = (
                score(
                    Case(blocks=blocks, noise=noise, ratio=ratio), experiments=experiments,
                    seed=SEED,
                )
                for ratio in (1.0, 1.03, 1.02)
            )  # fmt: skip
            rows.append(
                [
                    str(blocks),
                    name,
                    *_percent(same.false_rate, 1 - same.coverage, slower.coverage),
                    *_percent(slower.share("better"), edge.share("equivalent")),
                    *_percent(same.share("equivalent")),
                ]
            )
    yield "**Within blocks.** One trial's standard deviation is 2 % before stalls and drift.\n"
    yield from _table(
        "blocks|noise|A/A: called different|A/A: p ≤ 0.05|interval holds 3 %|3 % found"
        "|2 % called less than 2 %|A/A: equivalent", rows,
    )  # fmt: skip
    family = [
        score(Case(blocks=12, noise=noise, comparisons=5), experiments=experiments, seed=SEED)
        for noise in (NOISES["calm"], NOISES["all at once"])
    ]
    yield (
        "\nFive variants beside the baseline, none different (12 blocks, Holm): any called"
        f" different in {_percent(family[0].false_rate)[0]} of the experiments (calm),"
        f" {_percent(family[1].false_rate)[0]} (all at once).\n"
    )


def few_blocks(experiments: int) -> Iterable[str]:
    """Student's intervals, where blocks are too few for exact ones."""
    rows = []
    for name, noise in NOISES.items():
        scores = [
            score(Case(blocks=blocks, noise=noise), experiments=experiments, seed=SEED)
            for blocks in (2, 3, 4, 5)
        ]
        rows.append([name, *_percent(*(each.coverage for each in scores))])
    yield "**Too few blocks.** Nothing is decided; how often Student's interval holds the truth:\n"
    yield from _table("noise|2 blocks|3 blocks|4 blocks|5 blocks", rows)
    yield ""


def promises(experiments: int) -> Iterable[str]:
    """The power and the number of blocks that a plan promises, kept or not."""
    rows = []
    for sd_log in (0.01, 0.02, 0.04):
        for tails in ("normal", "student t3", "lognormal"):
            noise = Noise(sd_log=sd_log, tails=tails)
            block_sd = sd_log * math.sqrt(2)
            needed, deciding = (
                power.trials_needed(block_sd, 0.03),
                power.blocks_to_decide(block_sd, 0.03),
            )
            found = score(
                Case(blocks=needed, noise=noise, ratio=1.03), experiments=experiments, seed=SEED
            )
            decided = [
                1
                - score(
                    Case(blocks=deciding, noise=noise, ratio=ratio, matters=0.03),
                    experiments=experiments // 4, seed=SEED,
                ).share("undecided")
                for ratio in (1.0, 1.015, 1.03)
            ]  # fmt: skip
            rows.append(
                [
                    *(f"{100 * sd_log:g} %", tails),
                    *(str(needed), *_percent(found.share("better"))),
                    *(str(deciding), *_percent(*decided)),
                ]
            )
    yield "**What a plan promises**, for 3 % (power 80 %, and the blocks that decide anything):\n"
    yield from _table(
        "one trial's sd|tails|blocks for 3 %|found|blocks that decide|decided: A/A|1.5 %|3 %", rows
    )
    yield ""


def while_it_runs(experiments: int) -> Iterable[str]:
    """Stopping early, at a precision, and by peeking."""
    ways: Sequence[tuple[str, Method]] = (
        ("until decided", stopping_early),
        ("until ± 1 %", reaching_precision),
        ("peeking at p ≤ 0.05", peeking),
        ("all 30 blocks", in_blocks),
    )
    rows = []
    for label, method in ways:
        for name in ("calm", "all at once"):
            same, slower = (
                score(
                    Case(blocks=30, noise=NOISES[name], ratio=ratio),
                    experiments=experiments // 2, seed=SEED, method=method,
                )
                for ratio in (1.0, 1.03)
            )  # fmt: skip
            rows.append(
                [
                    *(label, name),
                    *_percent(same.false_rate, 1 - same.coverage, slower.coverage),
                    *_percent(slower.share("better")),
                    *(f"{same.blocks:.1f}", f"{slower.blocks:.1f}"),
                ]
            )
    yield "**Looked at after every block**, 30 blocks at most:\n"
    yield from _table(
        "stop|noise|A/A: called different|A/A: interval misses 0|interval holds 3 %|3 % found"
        "|blocks, A/A|blocks, 3 %", rows,
    )  # fmt: skip
    yield ""


def without_blocks(experiments: int) -> Iterable[str]:
    """Runs made one variant after the other, judged as if they were independent."""
    rows = []
    for name, noise in NOISES.items():
        found = score(
            Case(blocks=10, noise=noise, order="one after the other"), experiments=experiments,
            seed=SEED, method=unpaired,
        )  # fmt: skip
        rows.append([name, *_percent(found.false_rate)])
    yield "**Without blocks**: ten trials of one variant, then ten of the other, no difference:\n"
    yield from _table("noise|A/A: called different", rows)
    yield ""


def warm_ups() -> Iterable[str]:
    """How long a warm-up is called one, and how much of it is left then."""
    rows = []
    for time_constant_s in (0, 5, 10, 20, 40):
        for sd in (0.01, 0.03, 0.1):
            ends = [_told_at(time_constant_s, sd, seed) for seed in range(100)]
            known = sorted(end for end in ends if end is not None)
            left = [_lacking(time_constant_s, end) for end in known]
            rows.append(
                [f"{time_constant_s} s", f"{100 * sd:g} %"]
                + ([f"{statistics.median(known):.0f} s"] if known else ["never"])
                + (_percent(statistics.median(left)) if known else ["–"])
                + [str(len(ends) - len(known))]
            )
    yield (
        "**Warm-ups** from half the throughput, approaching it exponentially; asked every second"
        " for 180 s; 100 of each:\n"
    )
    yield from _table(
        "time constant|noise of a second|called steady at (median)|still lacking then (median)"
        "|not steady in 180 s", rows,
    )  # fmt: skip


def _told_at(time_constant_s: float, sd: float, seed: int) -> int | None:
    source = random.Random(seed)
    values = []
    for second in range(180):
        values.append((1 - _lacking(time_constant_s, second)) * math.exp(source.gauss(0, sd)))
        if steadiness(values).is_steady:
            return second + 1
    return None


def _lacking(time_constant_s: float, second: float) -> float:
    return 0.5 * math.exp(-second / time_constant_s) if time_constant_s else 0.0


def _table(head: str, rows: Iterable[Sequence[str]]) -> Iterable[str]:
    columns = head.split("|")
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _percent(*shares: float) -> list[str]:
    return [f"{100 * share:.1f} %" for share in shares]


def _error(experiments: int) -> float:
    """Two standard errors of a share of 5 %, in points."""
    return 200 * math.sqrt(0.05 * 0.95 / experiments)


if __name__ == "__main__":
    sys.exit(main())
