"""Every kind of pooler by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pgdyno.servers.poolers.base import Kind
from pgdyno.servers.poolers.haproxy import Haproxy
from pgdyno.servers.poolers.pgbouncer import Pgbouncer
from pgdyno.servers.poolers.pgpool import Pgpool

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {"pgpool": Pgpool(), "pgbouncer": Pgbouncer(), "haproxy": Haproxy()}
)
