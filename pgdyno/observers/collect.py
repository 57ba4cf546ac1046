"""JSON lines of observers into one Parquet file a table, typed and described by its `Table`.

The Parquet file is written beside and renamed, then the JSON lines are removed: at every moment one
of the two is complete. Column metadata hold `unit`, `kind` and `about`; the table's own holds
`about`. A half line at the end, left by a kill, is dropped.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pgdyno.observers.base import Column, Observer, Table

CLOCKS: Final = (
    Column(
        name="monotonic_ns", unit="ns", kind="counter", about="monotonic clock of the lab's host"
    ),
    Column(name="wall_unix_ns", unit="ns", kind="counter", about="wall clock since 1970, UTC"),
)


def collect(observers: Sequence[Observer], folder: Path) -> tuple[str, ...]:
    """Turn each observer's `<name>.jsonl` in `folder` into `<name>.parquet`; notices where not."""
    import pyarrow as pa
    import pyarrow.parquet as pa_parquet

    notices = []
    for table in {observer.table.name: observer.table for observer in observers}.values():
        lines = folder / f"{table.name}.jsonl"
        if not lines.exists():
            continue
        try:
            written = read_lines(lines, table)
            partial = folder / f"{table.name}.parquet.partial"
            pa_parquet.write_table(written, partial, compression="zstd")
            partial.rename(folder / f"{table.name}.parquet")
            lines.unlink()
        except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            notices.append(f"{lines.name} stays as it is: {str(error).splitlines()[0]}")
    return tuple(notices)


def read_lines(path: Path, table: Table) -> Any:
    """A `pyarrow.Table` of an observer's JSON lines; columns and types are the table's.

    Raises `pa.ArrowInvalid` where a line is no JSON or a value does not have its column's type.
    """
    import pyarrow.json as pa_json

    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    schema = arrow_schema(table)
    if not whole.strip():
        return schema.empty_table()
    # One thread: the machine may still be measuring. A block must hold the longest line.
    found = pa_json.read_json(
        io.BytesIO(whole),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=max(2**20, len(whole))),
        parse_options=pa_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore"
        ),
    )
    return found.select(schema.names).cast(schema)


def arrow_schema(table: Table) -> Any:
    """The `pyarrow.Schema` of a table as stored, the clocks first."""
    import pyarrow as pa

    types = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string()}
    return pa.schema(
        [
            pa.field(
                column.name,
                types[column.type],
                metadata={"unit": column.unit, "kind": column.kind, "about": column.about},
            )
            for column in (*CLOCKS, *table.columns)
        ],
        metadata={"about": table.about},
    )
