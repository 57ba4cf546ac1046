"""Every table that observers fill, and the page that describes them (`docs/observers.md`).

A new observer's table is added here; a test fails until it is.
"""

from __future__ import annotations

from typing import Final

from pgdyno.observers.base import Table
from pgdyno.observers.collect import CLOCKS
from pgdyno.observers.host import CPU, DISK, MEMORY, NETWORK, TASKS
from pgdyno.observers.poolers import POOLER
from pgdyno.observers.postgres import AUTOVACUUM, BGWRITER, DATABASE, WAL
from pgdyno.observers.process import PROCESSES
from pgdyno.observers.replication import REPLAY, REPLICATION

HOST_TABLES: Final = (CPU, TASKS, MEMORY, DISK, NETWORK)
TABLES: Final = (PROCESSES, DATABASE, BGWRITER, WAL, AUTOVACUUM, REPLICATION, REPLAY, POOLER)

BEGIN_MARK: Final = "<!-- tables: made by `make docs` -->"
END_MARK: Final = "<!-- end of tables -->"


def with_tables(page: str) -> str:
    """The page with everything between its two marks made anew; `ValueError` without the marks."""
    before, begin, rest = page.partition(BEGIN_MARK)
    _, end, after = rest.partition(END_MARK)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN_MARK} … {END_MARK}")
    return f"{before}{begin}\n\n{_markdown()}\n{end}{after}"


def _markdown() -> str:
    sections = [_section(f"host_{table.name}", table) for table in HOST_TABLES]
    sections.extend(_section(table.name, table) for table in TABLES)
    return "\n".join(sections)


def _section(name: str, table: Table) -> str:
    lines = [
        f"### `{name}`: {table.about}",
        "",
        "| column | unit | kind | type | about |",
        "|---|---|---|---|---|",
    ]
    lines.extend(
        f"| `{column.name}` | {column.unit} | {column.kind} | {column.type} | {column.about} |"
        for column in (*CLOCKS, *table.columns)
    )
    return "\n".join(lines) + "\n"
