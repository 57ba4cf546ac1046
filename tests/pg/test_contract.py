"""Both halves of the boundary read the same plans: what one refuses, the other refuses too."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from pgdyno.contract import Plan
from pgdyno.engine import find_engine

pytestmark = pytest.mark.pg
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"

WHOLE: dict[str, Any] = {
    "version": 1,
    "name": "whole",
    "conninfo": "host=/nowhere",
    "protocol": "prepared",
    "clients": 4,
    "threads": 2,
    "cpus": [0],
    "reactor": "auto",
    "seed": 18446744073709551615,
    "load": {"kind": "open", "rate_per_s": 100.0, "arrival": "constant"},
    "warmup_s": 1.5,
    "warmup_ends": "time",
    "duration_s": 10.0,
    "interval_s": 0.5,
    "connect_deadline_s": 5.0,
    "min_clients": 2,
    "drain_deadline_s": 5.0,
    "statement_timeout_s": 2.5,
    "retry": {"max_tries": 3, "max_time_s": 1.5},
    "on_connection_loss": "reconnect",
    "reconnect": {
        "first_pause_s": 0.1,
        "longest_pause_s": 2.0,
        "attempt_s": 3.0,
        "give_up_s": 30.0,
    },
    "transaction_log": {"rate": 0.25, "file": "sample.jsonl"},
    "history": True,
    "variables": {"scale": "3"},
    "transaction_types": [
        {
            "name": "one",
            "weight": 1,
            "source": "one.sql",
            "script": "select :scale;",
            "failure": {"column": "x", "success": "0"},
        }
    ],
    "session_settings": ["synchronous_commit"],
    "output_dir": "/nowhere",
}


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in WHOLE.items() if name not in names}


def with_type(**changes: Any) -> dict[str, Any]:
    return WHOLE | {"transaction_types": [WHOLE["transaction_types"][0] | changes]}


STEP = {"duration_s": 2, "rate_per_s": 100}
RAMP = {"duration_s": 3, "rate_per_s": 100, "end_rate_per_s": 0}
SESSIONS = {
    "kind": "partly_open",
    "sessions_per_s": 5,
    "arrival": "constant",
    "transactions_per_session": 10,
    "think_time_s": 0.5,
    "think_time": "exponential",
    "backlog_limit": 100,
    "backlog_limit_s": 2.0,
}
ACCEPTED = {
    "whole": WHOLE,
    "least": {
        name: WHOLE[name]
        for name in (
            "name",
            "conninfo",
            "clients",
            "seed",
            "transaction_types",
            "duration_s",
            "output_dir",
        )
    },
    "closed": WHOLE | {"load": {"kind": "closed", "think_time_s": 0.1}},
    "exponential thinking": WHOLE
    | {"load": {"kind": "closed", "think_time_s": 0.1, "think_time": "exponential"}},
    "warm-up that is told": WHOLE | {"warmup_ends": "told"},
    "stages": WHOLE | {"load": {"kind": "open", "stages": [STEP, RAMP], "schedule": "per_client"}},
    "bounded backlog": WHOLE
    | {"load": {"kind": "open", "rate_per_s": 9, "backlog_limit": 1, "backlog_limit_s": 0.1}},
    "partly open": WHOLE | {"load": SESSIONS},
    "time limit": WHOLE | {"response_time_limit_s": 0.1, "receive": "oneshot"},
    "counted": without("duration_s") | {"transactions_per_client": 5},
    "no failure": with_type(failure=None),
    "retries without limit": WHOLE | {"retry": {"max_tries": 0}},
    "some words of reconnect": WHOLE | {"reconnect": {"give_up_s": 5}},
    "log with its usual name": WHOLE | {"transaction_log": {"rate": 1}},
}
REFUSED = {
    "unknown name": WHOLE | {"client": 4},
    "unknown name inside": WHOLE | {"load": {"kind": "closed", "think": 1}},
    "no clients": WHOLE | {"clients": 0},
    "negative seed": WHOLE | {"seed": -1},
    "seed too large": WHOLE | {"seed": 2**64},
    "protocol": WHOLE | {"protocol": "psychic"},
    "load of no kind": WHOLE | {"load": {"kind": "half-open"}},
    "rate of zero": WHOLE | {"load": {"kind": "open", "rate_per_s": 0}},
    "no rate": WHOLE | {"load": {"kind": "open"}},
    "rate and stages": WHOLE | {"load": {"kind": "open", "rate_per_s": 1, "stages": [STEP]}},
    "stages without a rate": WHOLE
    | {"load": {"kind": "open", "stages": [STEP | {"rate_per_s": 0}]}},
    "negative rate in a stage": WHOLE
    | {"load": {"kind": "open", "stages": [RAMP | {"end_rate_per_s": -1}]}},
    "stage of no length": WHOLE | {"load": {"kind": "open", "stages": [STEP | {"duration_s": 0}]}},
    "unknown name in a stage": WHOLE | {"load": {"kind": "open", "stages": [STEP | {"rate": 1}]}},
    "backlog of zero": WHOLE | {"load": {"kind": "open", "rate_per_s": 1, "backlog_limit": 0}},
    "backlog of no time": WHOLE | {"load": {"kind": "open", "rate_per_s": 1, "backlog_limit_s": 0}},
    "sessions of nothing": WHOLE | {"load": SESSIONS | {"transactions_per_session": 0}},
    "no sessions": WHOLE | {"load": SESSIONS | {"sessions_per_s": 0}},
    "time limit of zero": WHOLE | {"response_time_limit_s": 0},
    "receive": WHOLE | {"receive": "twice"},
    "no transaction types": WHOLE | {"transaction_types": []},
    "negative weight": with_type(weight=-1),
    "newer version": WHOLE | {"version": 2},
    "no output": without("output_dir"),
    "no length": without("duration_s"),
    "two lengths": WHOLE | {"transactions_per_client": 5},
    "interval of zero": WHOLE | {"interval_s": 0},
    "retry without tries": WHOLE | {"retry": {"max_time_s": 1}},
    "negative tries": WHOLE | {"retry": {"max_tries": -1}},
    "retry for no time": WHOLE | {"retry": {"max_tries": 1, "max_time_s": 0}},
    "unknown word of reconnect": WHOLE | {"reconnect": {"jitter": 1}},
    "reconnect without end": WHOLE | {"reconnect": {"give_up_s": 0}},
    "loss": WHOLE | {"on_connection_loss": "shrug"},
    "requests of no time": WHOLE | {"statement_timeout_s": 0},
    "more clients than there are": WHOLE | {"min_clients": 5},
    "a warm-up ended by a whim": WHOLE | {"warmup_ends": "whim"},
    "a warm-up that is told and has no longest time": WHOLE
    | {"warmup_ends": "told", "warmup_s": 0},
    "a warm-up that is told before stages": WHOLE
    | {"warmup_ends": "told", "load": {"kind": "open", "stages": [STEP]}},
    "not even one client": WHOLE | {"min_clients": 0},
    "more than all": WHOLE | {"transaction_log": {"rate": 1.1}},
    "none at all": WHOLE | {"transaction_log": {"rate": 0}},
    "a log elsewhere": WHOLE | {"transaction_log": {"rate": 1, "file": "../x"}},
    "a log over the summary": WHOLE | {"transaction_log": {"rate": 1, "file": "summary.json"}},
}


def checked(plan: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    ended = subprocess.run(
        [str(find_engine()), "check", str(path)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.returncode in (0, 2), ended.stderr
    assert "panicked" not in ended.stderr
    return ended


def engine_accepts(plan: dict[str, Any], folder: Path) -> bool:
    return checked(plan, folder).returncode == 0


@pytest.mark.parametrize("name", ACCEPTED)
def test_both_halves_accept(name: str, tmp_path: Path) -> None:
    plan = ACCEPTED[name]
    Plan.model_validate(plan)
    jsonschema.validate(plan, json.loads((SCHEMAS / "plan.schema.json").read_text()))
    assert engine_accepts(plan, tmp_path)
    # What the lab writes out in full means the same to the engine.
    assert engine_accepts(json.loads(Plan.model_validate(plan).model_dump_json()), tmp_path)


@pytest.mark.parametrize("name", REFUSED)
def test_both_halves_refuse(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        Plan.model_validate(REFUSED[name])
    assert not engine_accepts(REFUSED[name], tmp_path)


def test_the_engine_tells_all_problems_at_once(tmp_path: Path) -> None:
    plan = WHOLE | {"clients": 0, "warmup_s": -1, "interval_s": 0}
    said = checked(plan, tmp_path).stderr
    assert all(name in said for name in ("clients", "warmup_s", "interval_s")), said
