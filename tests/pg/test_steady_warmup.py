"""A warm-up that ends at steady state, on a real server: it takes the seconds that it takes."""

from __future__ import annotations

import pytest

from pgdyno.experiment.store import find_run
from tests.pg.commands import Place

pytestmark = pytest.mark.slow


def test_a_warmup_ends_when_the_throughput_has_settled(place: Place) -> None:
    # The rate is given, so that the throughput is as steady as the machine lets it be.
    words = ("--rate", "200/s", "--clients", "2", "--time", "1s", "--warmup", "steady:60s")
    ended = place.pgdyno("run", "noop", *words, "--no-report")
    assert ended.status == 0, ended.error
    (stored,) = find_run("last", place.runs).trials
    (warmup,) = [phase for phase in stored.trial.phases if phase.name == "warmup"]
    assert warmup.end_s is not None and warmup.note is not None
    length_s = warmup.end_s - warmup.begin_s
    if warmup.note.startswith("steady after"):
        assert 19 < length_s < 60
    else:
        assert warmup.note.startswith("not steady within 60 s") and length_s > 59
    assert stored.plan is not None and stored.plan.warmup_ends == "told"
