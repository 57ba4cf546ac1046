"""Whether data that lie in a database may be used again: identities, records, and the decision.

What was loaded is recorded in `pgdyno.state` in the same database, with the tables by number (OID):
a table that somebody made anew under the same name is not ours, and nothing of somebody else's is
ever dropped unless the person asks for `--reload`. The decision itself is pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg.rows import dict_row

from pgdyno.errors import PgdynoError
from pgdyno.model import StateIdentity
from pgdyno.workloads import sql
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.target import Target, connect, first_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row of `pgdyno.state`. `complete` False: loading was broken off."""

    workload: str
    digest: str
    complete: bool
    tables: Mapping[str, int]
    identity: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do about the data. `drop`: tables to remove first; `foreign`: made by others."""

    action: Literal["load", "reuse", "adopt", "refuse"]
    reason: str
    drop: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


def identify(workload: ResolvedWorkload, target: Target) -> StateIdentity:
    """The identity that the workload's data have on this server.

    Raises `PgdynoError` where the server does not answer.
    """
    try:
        with connect(target) as connection:
            return identity_on(connection, workload, target.initdb_options)
    except psycopg.Error as error:
        raise PgdynoError(
            f"the identity of the data of '{workload.name}' is not known: {first_line(error)}"
        ) from error


def identity_on(
    connection: psycopg.Connection[Any],
    workload: ResolvedWorkload,
    initdb_options: tuple[str, ...],
) -> StateIdentity:
    """As `identify`, on a connection that is there already."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(sql.text("server_facts").encode())
        facts = cursor.fetchone() or {}
    identity = StateIdentity(
        digest="",
        server_version_num=facts["server_version_num"],
        block_size=facts["block_size"],
        wal_block_size=facts["wal_block_size"],
        initdb_options=initdb_options,
        workload=workload.data_name,
        data_version=workload.data_version,
        parameters=workload.data_parameters,
    )
    return identity.model_copy(update={"digest": digest_of(identity, workload)})


def digest_of(identity: StateIdentity, workload: ResolvedWorkload) -> str:
    """SHA-256 over all that decides what the data are.

    Of the server's version only the major part counts: files of one major version are alike. The
    statements that make and fill the tables count too, so that a folder under work is loaded anew
    when they change, whether or not its `data_version` was raised.
    """
    made_by = [workload.schema_sql, *workload.index_statements]
    made_by += [f"{section.name} {section.rows} {section.script}" for section in workload.sections]
    version_num = identity.server_version_num
    major = version_num // 10000 if version_num >= 100000 else version_num // 100
    facts = identity.model_dump(mode="json", exclude={"digest", "server_version_num"})
    document = json.dumps(facts | {"major": major, "made_by": made_by}, sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


def decide(
    identity: StateIdentity,
    workload: ResolvedWorkload,
    records: Iterable[Record],
    existing: Mapping[str, int],
    *,
    reload: bool,
) -> Decision:
    """What to do, from what is recorded and which tables exist (name → OID). Pure.

    Tables of ours that do not fit are replaced. Tables of somebody else are used where the workload
    can adopt them, replaced only for `reload`, and otherwise refused.
    """
    known = {record.workload: record for record in records}
    ours = {oid for record in known.values() for oid in record.tables.values()}
    record = known.get(workload.data_name)
    wanted = [table.name for table in workload.tables]
    foreign = tuple(name for name in wanted if name in existing and existing[name] not in ours)
    mine = (
        [] if record is None else [n for n, oid in record.tables.items() if existing.get(n) == oid]
    )
    drop = tuple(dict.fromkeys([*mine, *(name for name in wanted if name in existing)]))
    if reload:
        return Decision(action="load", reason="asked to load again", drop=drop, foreign=foreign)
    if foreign:
        action: Literal["adopt", "refuse"] = "adopt" if workload.adopt else "refuse"
        return Decision(
            action=action, reason="tables were made by someone else", drop=drop, foreign=foreign
        )
    if record is None or not drop:
        return Decision(action="load", reason="no data were there", drop=drop)
    if not record.complete:
        return Decision(action="load", reason="loading was broken off before", drop=drop)
    missing = [name for name in wanted if existing.get(name) != record.tables.get(name)]
    if missing:
        return Decision(
            action="load", reason=f"table {missing[0]} is not there any more", drop=drop
        )
    if record.digest != identity.digest:
        return Decision(action="load", reason=_difference(identity, record), drop=drop)
    return Decision(action="reuse", reason="loaded data fit")


def _difference(identity: StateIdentity, record: Record) -> str:
    """Which part of the identity differs from what is recorded, in words."""
    now = identity.model_dump(mode="json")
    for name, value in now["parameters"].items():
        before = record.identity.get("parameters", {}).get(name)
        if before != value:
            return f"{name} was {before}, now {value}"
    for name in ("data_version", "block_size", "wal_block_size", "initdb_options"):
        before = record.identity.get(name)
        if before != now[name]:
            return f"{name.replace('_', ' ')} was {before}, now {now[name]}"
    return "the statements that make the data, or the server's major version, have changed"


def read_records(connection: psycopg.Connection[Any]) -> tuple[Record, ...]:
    """What pgdyno recorded in this database."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(sql.text("state_exists").encode())
        if not (cursor.fetchone() or {}).get("exists"):
            return ()
        cursor.execute(sql.text("read_states").encode())
        return tuple(
            Record(
                workload=row["workload"],
                digest=row["digest"],
                complete=row["complete"],
                tables=dict(zip(row["table_names"], row["table_oids"], strict=True)),
                identity=json.loads(row["identity"]),
            )
            for row in cursor.fetchall()
        )


def existing_tables(connection: psycopg.Connection[Any], names: Iterable[str]) -> dict[str, int]:
    """Which tables exist, with their OIDs."""
    found = connection.execute(
        sql.text("existing_tables").encode(), {"tables": sorted(set(names))}
    ).fetchall()
    return {str(name): int(oid) for name, oid in found}


def write_record(
    connection: psycopg.Connection[Any],
    workload: ResolvedWorkload,
    identity: StateIdentity,
    *,
    complete: bool,
) -> None:
    """Record that these tables are ours and what they hold."""
    connection.execute(sql.text("create_state").encode())
    connection.execute(
        sql.text("write_state").encode(),
        {
            "workload": workload.data_name,
            "digest": identity.digest,
            "identity": identity.model_dump_json(),
            "complete": complete,
            "tables": [table.name for table in workload.tables],
        },
    )


def count_measurement(target: Target, workload: ResolvedWorkload) -> int | None:
    """Record that these data are about to be measured; how often they were before.

    None for data that are not ours, or where it cannot be recorded.
    """
    try:
        with connect(target) as connection:
            if not read_records(connection):
                return None
            connection.execute(sql.text("create_state").encode())
            counted = connection.execute(
                sql.text("count_measurement").encode(), {"workload": workload.data_name}
            ).fetchone()
    except psycopg.Error:
        return None
    return None if counted is None else int(counted[0])
