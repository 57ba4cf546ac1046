"""Options for what a load does when something goes wrong, and for what it writes down of itself."""

from __future__ import annotations

from typing import Any

import click

from pgdyno.cli.options import COUNT, DURATION, F, Quantity
from pgdyno.contract import Reconnect, Retry, TransactionLog
from pgdyno.errors import InvalidInput
from pgdyno.experiment.levels import share


def _logged_share(text: str) -> float:
    """A share of all transactions; all of them, too.

    >>> _logged_share("1 %"), _logged_share("100%"), _logged_share("1")
    (0.01, 1.0, 1.0)
    """
    return 1.0 if text.replace(" ", "") in ("1", "100%") else share(text)


def load_trouble_options(command: F) -> F:
    """Retries, lost connections, time limits, and records."""
    options = (
        click.option(
            "--max-tries",
            type=COUNT,
            metavar="N",
            help="Tries of a transaction that fails by serialization or deadlock; 0: no limit."
            "  [default: 1]",
        ),
        click.option(
            "--retry-time",
            "retry_time_s",
            type=DURATION,
            help="No try begins later than this after the transaction's start.",
        ),
        click.option(
            "--reconnect", is_flag=True, help="Clients that lose their connection get another."
        ),
        click.option(
            "--reconnect-for",
            "reconnect_for_s",
            type=DURATION,
            help="A client without a connection for this long gives up.  [default: 60s]",
        ),
        click.option(
            "--statement-timeout",
            "statement_timeout_s",
            type=DURATION,
            help="The engine cancels a request that takes longer.",
        ),
        click.option(
            "--min-clients",
            type=COUNT,
            metavar="N",
            help="Begin with so many, even if the server refuses others.",
        ),
        click.option(
            "--transaction-log",
            "logged_share",
            type=Quantity("share", _logged_share),
            help="Write this share of transactions to transactions.log.jsonl, e.g. 1%.",
        ),
        click.option(
            "--history",
            is_flag=True,
            help="Write begin and end of every try to history.jsonl.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def check_load_trouble(options: dict[str, Any]) -> None:
    """Refuse what cannot be, or not together."""
    for name in ("retry_time_s", "reconnect_for_s", "statement_timeout_s", "min_clients"):
        if options[name] is not None and options[name] <= 0:
            word = "--" + name.removesuffix("_s").replace("_", "-")
            raise InvalidInput(f"{word} must be above zero")
    if options["reconnect_for_s"] is not None and not options["reconnect"]:
        raise InvalidInput(
            "--reconnect-for needs --reconnect", hint="without it a lost client stays lost"
        )
    if options["max_tries"] == 1 and options["retry_time_s"] is not None:
        raise InvalidInput(
            "--retry-time means nothing with one try", hint="--max-tries 0 has no other limit"
        )
    least, clients = options["min_clients"], options["clients"]
    if least is not None and least > clients:
        raise InvalidInput(
            f"--min-clients {least} is more than --clients {clients}",
            hint="it is how many of them are enough to begin",
        )


def load_trouble_of(options: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `LoadChoice` that these options set."""
    tries, retry_time_s = options["max_tries"], options["retry_time_s"]
    retry = None
    if tries is not None or retry_time_s is not None:
        retry = Retry(max_tries=tries or 0, max_time_s=retry_time_s)
    reconnect = None
    if options["reconnect"]:
        given = options["reconnect_for_s"]
        reconnect = Reconnect() if given is None else Reconnect(give_up_s=given)
    logged = options["logged_share"]
    return {
        "retry": retry,
        "reconnect": reconnect,
        "statement_timeout_s": options["statement_timeout_s"],
        "min_clients": options["min_clients"],
        "transaction_log": None if logged is None else TransactionLog(rate=logged),
        "history": options["history"],
    }
