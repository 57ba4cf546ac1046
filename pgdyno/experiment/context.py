"""What the phases of one trial share: what runs, where it is written, and what is known so far."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.experiment.diary import Diary
from pgdyno.experiment.store import StoredTrial
from pgdyno.hosts.base import Host
from pgdyno.model import StorageFacts, Variant
from pgdyno.servers.base import Server
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.judging import Snapshot
from pgdyno.workloads.target import Target


@dataclass(slots=True, kw_only=True)
class Context:
    """One trial under way.

    `storage` is what lies below the server's files, once it is described; `snapshot` what the
    checks found in the data as they are now, None when that is not known. `sessions`: connections
    that the load takes of each server, where a pooler makes them other than its clients.
    """

    stored: StoredTrial
    variant: Variant
    workload: ResolvedWorkload
    host: Host
    diary: Diary
    storage: tuple[StorageFacts, ...] = ()
    snapshot: Snapshot | None = None
    sessions: int | None = None


def target_of(server: Server) -> Target:
    """The server's database as the workloads see it."""
    return Target(
        conninfo=server.conninfo,
        password=server.password,
        initdb_options=server.initdb_options,
    )
