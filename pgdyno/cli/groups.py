"""The options of a long command in groups, as its help shows them; what has none comes last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "What is compared": (
        *("first", "second", "replicates", "precision", "max_replicates", "budget_s", "metrics"),
        *("matters", "aa", "even_so", "fail_if_worse"),
    ),
    "Workload": ("param", "mix", "reload", "prewarm"),
    "System": (
        *("system", "pg", "data", "tcp", "port", "server_cpus", "standbys", "pooler", "dsn"),
    ),
    "Private server": (
        *("profile", "settings_file", "settings", "initdb", "wal_folder", "temporary_folder"),
        *("tablespaces", "storage_facts", "cpu_limit", "memory_limit_bytes"),
    ),
    "Load": (
        *("clients", "threads", "engine_cpus", "protocol", "duration_s", "transactions", "warmup"),
        *("response_time_limit_s", "seed"),
    ),
    "Arrivals (default: a closed loop)": (
        *("rate_per_s", "stages", "session_rate_per_s", "session_length", "arrival", "schedule"),
        *("backlog_limit_s", "think_time_s", "think_time"),
    ),
    "When something goes wrong": (
        *("max_tries", "retry_time_s", "reconnect", "reconnect_for_s", "statement_timeout_s"),
        "min_clients",
    ),
    "Records": ("logged_share", "history"),
}
_REST: Final = "Options"


def write_options(
    formatter: click.HelpFormatter, parameters: Sequence[click.Parameter], ctx: click.Context
) -> None:
    """Every option with its help, in its group; a command of few options has one group."""
    grouped: dict[str, list[tuple[str, str]]] = {title: [] for title in (*_GROUPS, _REST)}
    titles = {name: title for title, names in _GROUPS.items() for name in names}
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if isinstance(parameter, click.Option) and record is not None:
            grouped[titles.get(parameter.name or "", _REST)].append(record)
    for title, records in grouped.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
