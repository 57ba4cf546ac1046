"""How far standbys are behind: as their primary sees it, and as each of them sees itself."""

from __future__ import annotations

from pgdyno.observers.base import Column, Observer, Table
from pgdyno.observers.postgres import PostgresObserver, of_role


def _bytes(name: str, about: str) -> Column:
    return Column(name=name, unit="bytes", kind="gauge", about=about)


def _seconds(name: str, about: str) -> Column:
    return Column(name=name, unit="s", kind="gauge", about=about, type="real")


REPLICATION = Table(
    name="replication",
    about="standbys that stream from the primary, one row each, as it sees them",
    columns=(
        Column(name="standby", unit="", kind="label", about="its application_name", type="text"),
        Column(name="state", unit="", kind="label", about="streaming, catchup …", type="text"),
        Column(
            name="sync_state", unit="", kind="label", about="sync, quorum, potential or async",
            type="text",
        ),
        _bytes("unsent_bytes", "of WAL generated and not yet sent"),
        _bytes("write_lag_bytes", "generated and not yet written by the standby"),
        _bytes("flush_lag_bytes", "generated and not yet flushed by it"),
        _bytes("replay_lag_bytes", "generated and not yet replayed by it"),
        _seconds("write_lag_s", "from a local flush until the standby had written it (from 10)"),
        _seconds("flush_lag_s", "until it had flushed it (from 10)"),
        _seconds("replay_lag_s", "until it had replayed it (from 10)"),
    ),
)  # fmt: skip

REPLAY = Table(
    name="replay",
    about="how far a standby has come, as it sees itself",
    columns=(
        Column(
            name="received_bytes", unit="bytes", kind="counter", about="position of WAL received"
        ),
        Column(name="replayed_bytes", unit="bytes", kind="counter", about="position replayed"),
        _seconds(
            "replay_delay_s",
            "since the last replayed commit was made; 0 when all that came is replayed",
        ),
        Column(name="paused", unit="", kind="label", about="whether replay is paused", type="text"),
    ),
)


def primary_observers(conninfo: str, password: str | None) -> tuple[Observer, ...]:
    """What a primary with standbys is asked besides; each observer holds one connection."""
    return (
        PostgresObserver(conninfo=conninfo, password=password, table=REPLICATION, always=False),
    )


def standby_observers(conninfo: str, password: str | None, *, role: str) -> tuple[Observer, ...]:
    """What a standby is asked besides."""
    return (
        PostgresObserver(
            conninfo=conninfo,
            password=password,
            table=of_role(REPLAY, role),
            question=REPLAY.name,
        ),
    )
