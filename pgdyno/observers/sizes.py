"""Tables and indexes with their sizes: how large the data was before and after a measurement."""

from __future__ import annotations

from pgdyno.model import Sizes, TableSize
from pgdyno.observers.session import Session


def read_sizes(session: Session) -> Sizes:
    """Sizes of the session's database as `before`; `with_after` completes them."""
    return Sizes(
        database_bytes_before=_database_bytes(session),
        before=_relations(session),
    )


def with_after(sizes: Sizes, session: Session) -> Sizes:
    """The same with the sizes of this moment as `after`."""
    return sizes.model_copy(
        update={
            "database_bytes_after": _database_bytes(session),
            "after": _relations(session),
        }
    )


def _database_bytes(session: Session) -> int:
    return int(str(session.ask_one("database_bytes")["bytes"]))


def _relations(session: Session) -> tuple[TableSize, ...]:
    return tuple(
        TableSize.model_validate(
            {"table" if name == "table_name" else name: value for name, value in row.items()}
        )
        for row in session.ask("sizes")
    )
