"""Statements that keep account of loaded data; one statement a file, read by its name.

>>> "pgdyno.state" in text("read_states")
True
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def text(name: str) -> str:
    """The statement in `name.sql`; parameters are psycopg's `%(name)s`."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
