"""Builders of sides to compare: readings with the values given, alike in everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.experiment.comparability import Purpose
from pgdyno.experiment.comparing import Asked
from pgdyno.experiment.readings import Age, Circumstances, Reading, Side
from pgdyno.model import Response

CIRCUMSTANCES = Circumstances(
    tool_version="0.1.0",
    workload="tpcb",
    data={"workload": "tpcb", "data version": "1", "scale": "10"},
    load={"clients": "16", "protocol": "prepared"},
    settings={"shared_buffers": "1GB"},
    server_version="18.4",
    host="8 × CPU, 16.0 GB",
    kernel="6.1",
    durability="D2",
    writes=True,
    age=Age(measurements=0, dead_share=0.0, bytes=1_000_000),
    generator_share=0.2,
)


def side(name: str, values: Sequence[float], **changes: object) -> Side:
    """A side with one reading a value, in blocks; `changes` are of its circumstances."""
    circumstances = replace(CIRCUMSTANCES, **changes)  # type: ignore[arg-type]
    return Side(
        name=name,
        readings=tuple(
            Reading(
                label=f"k7m2qd trial {number}",
                variant=name,
                source=f"/runs/k7m2qd/trials/{number}",
                run="k7m2qd",
                number=number,
                block=number,
                began=f"2026-11-20T18:{number:02d}:00+00:00",
                took_s=30.0,
                values={"throughput_per_s": value, "not_committed_share": 0.0},
                committed=100_000,
                circumstances=circumstances,
            )
            for number, value in enumerate(values, start=1)
        ),
    )


def changed(one: Side, **changes: object) -> Side:
    """The side with every reading changed."""
    readings = tuple(replace(each, **changes) for each in one.readings)  # type: ignore[arg-type]
    return replace(one, readings=readings)


def asked(*factors: str, paired: bool = True, even_so: bool = False) -> Asked:
    """What is to be compared: throughput, 2 % of it matters."""
    return Asked(
        responses=(Response(),),
        purpose=Purpose(factors=frozenset(factors), one_experiment=paired),
        paired=paired,
        even_so=even_so,
    )
