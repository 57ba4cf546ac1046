"""Stages as people write them, and loads that cannot be."""

from __future__ import annotations

from typing import Any

import click
import pytest

from pgdyno.cli.load_shape import StageWords, check_load_shape
from pgdyno.contract import OpenLoop, Stage
from pgdyno.errors import InvalidInput

pytestmark = pytest.mark.unit

NOTHING: dict[str, Any] = {
    "stages": (),
    "rate_per_s": None,
    "session_rate_per_s": None,
    "session_length": None,
    "arrival": None,
    "schedule": None,
    "think_time_s": 0.0,
    "think_time": None,
    "backlog_limit_s": None,
    "response_time_limit_s": None,
}
SESSIONS: dict[str, Any] = {"session_rate_per_s": 5.0, "session_length": 3}
STAGE = Stage(duration_s=1, rate_per_s=5)


@pytest.mark.parametrize(
    ("words", "stage"),
    [
        ("30s@1000/s", Stage(duration_s=30, rate_per_s=1000)),
        ("2min@0", Stage(duration_s=120, rate_per_s=0)),
        ("5@600/min..0/s", Stage(duration_s=5, rate_per_s=10, end_rate_per_s=0)),
    ],
)
def test_stages_are_read(words: str, stage: Stage) -> None:
    assert StageWords().convert(words, None, None) == stage


@pytest.mark.parametrize("words", ["1000/s", "10s@fast", "0s@5/s", "10s@5/s..", "soon@5/s", ""])
def test_what_is_no_stage_is_told(words: str) -> None:
    with pytest.raises(click.BadParameter):
        StageWords().convert(words, None, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": (STAGE,), "rate_per_s": 5.0}, "--rate and --stage"),
        ({"rate_per_s": 5.0, **SESSIONS}, "--rate and --session-rate"),
        ({"session_rate_per_s": 5.0}, "belong together"),
        ({"session_length": 5}, "belong together"),
        (SESSIONS | {"session_length": 0}, "--session-length must"),
        (SESSIONS | {"schedule": "per-client"}, "--schedule per-client"),
        ({"arrival": "constant"}, "--arrivals needs"),
        ({"schedule": "shared"}, "--schedule needs"),
        ({"think_time": "exponential"}, "--think-times needs"),
        ({"rate_per_s": 5.0, "think_time_s": 1.0}, "--rate and --think-time"),
        ({"stages": (STAGE,), "think_time_s": 1.0}, "--stage and --think-time"),
        ({"backlog_limit_s": 1.0}, "--backlog-limit needs"),
        ({"rate_per_s": 5.0, "backlog_limit_s": 0.0}, "--backlog-limit must"),
        ({"response_time_limit_s": 0.0}, "--response-limit must"),
        ({"stages": (Stage(duration_s=1, rate_per_s=0),)}, "all stages are 0"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check_load_shape(NOTHING | changes)


def test_the_rest_is_let_through() -> None:
    check_load_shape(NOTHING | {"response_time_limit_s": 1.0, "think_time_s": 1.0})
    check_load_shape(NOTHING | {"stages": (STAGE,), "backlog_limit_s": 1.0})
    check_load_shape(NOTHING | SESSIONS | {"think_time_s": 1.0, "think_time": "exponential"})
    OpenLoop(stages=(STAGE,), backlog_limit_s=1.0)
