"""From the words of the command line to the plan that the engine gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pgdyno.cli.parameters import WorkloadCommand
from pgdyno.cli.trial_options import trial_options, variant_of
from pgdyno.contract import (
    ClosedLoop,
    OpenLoop,
    PartlyOpenLoop,
    Plan,
    Reconnect,
    Retry,
    TransactionLog,
)
from pgdyno.engine import build_plan
from pgdyno.errors import InvalidInput
from pgdyno.workloads.resolving import resolve

pytestmark = pytest.mark.unit


def planned(words: str) -> Plan:
    """The plan of `pgdyno run noop` with these words."""
    found: list[Plan] = []

    @click.command(cls=WorkloadCommand)
    @click.argument("workload")
    @trial_options
    def command(workload: str, **options: Any) -> None:
        variant, named = variant_of(workload, options)
        resolved = resolve(named, {})
        types = (resolved.transaction_types, resolved.variables)
        found.append(build_plan("noop", variant.load, types, ("host=/nowhere", Path("/nowhere"))))

    result = CliRunner().invoke(command, ["noop", *words.split()])
    if isinstance(result.exception, InvalidInput):
        raise result.exception
    assert result.exit_code == 0, result.output
    return found[0]


def test_without_words_the_loop_is_closed_and_trouble_ends_it() -> None:
    plan = planned("")
    assert plan.load == ClosedLoop()
    assert (plan.retry, plan.on_connection_loss, plan.statement_timeout_s) == (None, "abort", None)
    assert (plan.min_clients, plan.transaction_log, plan.history) == (None, None, False)


@pytest.mark.parametrize(
    ("words", "load"),
    [
        (
            "--rate 100/s --arrivals constant --schedule per-client",
            OpenLoop(rate_per_s=100, arrival="constant", schedule="per_client"),
        ),
        (
            "--session-rate 5/s --session-length 10 --think-time 1s --think-times exponential",
            PartlyOpenLoop(
                sessions_per_s=5,
                transactions_per_session=10,
                think_time_s=1,
                think_time="exponential",
            ),
        ),
        (
            "--session-rate 5/s --session-length 1 --arrivals constant --backlog-limit 2s",
            PartlyOpenLoop(
                sessions_per_s=5, transactions_per_session=1, arrival="constant", backlog_limit_s=2
            ),
        ),
        (
            "--think-time 10ms --think-times exponential",
            ClosedLoop(think_time_s=0.01, think_time="exponential"),
        ),
    ],
)
def test_words_shape_the_load(words: str, load: object) -> None:
    assert planned(words).load == load


def test_words_say_what_happens_when_something_goes_wrong() -> None:
    plan = planned(
        "--max-tries 5 --retry-time 2s --reconnect --reconnect-for 30s --statement-timeout 500ms "
        "--clients 8 --min-clients 4 --transaction-log 1% --history"
    )
    assert plan.retry == Retry(max_tries=5, max_time_s=2)
    assert plan.on_connection_loss == "reconnect"
    assert plan.reconnect == Reconnect(give_up_s=30)
    assert (plan.statement_timeout_s, plan.min_clients) == (0.5, 4)
    assert plan.transaction_log == TransactionLog(rate=0.01)
    assert plan.history


def test_a_limit_of_time_alone_leaves_the_number_of_tries_open() -> None:
    assert planned("--retry-time 2s").retry == Retry(max_tries=0, max_time_s=2)
    assert planned("--max-tries 0").retry == Retry(max_tries=0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--reconnect-for 5s", "--reconnect-for needs --reconnect"),
        ("--max-tries 1 --retry-time 2s", "--retry-time means nothing"),
        ("--retry-time 0s", "--retry-time must be above zero"),
        ("--statement-timeout 0s", "--statement-timeout must be above zero"),
        ("--clients 4 --min-clients 5", "--min-clients 5 is more than --clients 4"),
        ("--min-clients 0", "--min-clients must be above zero"),
    ],
)
def test_what_cannot_be_is_refused(words: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        planned(words)
