"""How fast a trial's storage flushes and its clock is read, as facts of the system, on request.

Measured before anything else of the trial, once for each device below the server's folders.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.hosts.base import Host
from pgdyno.model import Environment, StorageFacts
from pgdyno.servers import storage_rates
from pgdyno.servers.base import Server
from pgdyno.servers.privileges import server_user


def with_figures(found: Environment, server: Server, host: Host) -> Environment:
    """The environment with flushes and the clock measured; about 20 s for each device.

    Raises `PgdynoError` where PostgreSQL's programs for it are missing or fail.
    """
    program = storage_rates.program_of("pg_test_fsync", host, server.bin_dir)
    timing = storage_rates.program_of("pg_test_timing", host, server.bin_dir)
    by_device: dict[str, dict[str, float]] = {}
    storage = []
    for each in found.storage:
        device = _device(each)
        if device not in by_device:
            folder = Path(each.folder)
            rates = storage_rates.flushes_per_s(host, program, folder, server_user())
            by_device[device] = rates
        storage.append(each.model_copy(update={"flushes_per_s": by_device[device]}))
    read_ns = storage_rates.clock_read_ns(host, timing)
    hosts = tuple(one.model_copy(update={"clock_read_ns": read_ns}) for one in found.hosts)
    return found.model_copy(update={"storage": tuple(storage), "hosts": hosts})


def _device(facts: StorageFacts) -> str:
    """What flushes of a folder go to; a file system without a device stands for itself."""
    return facts.device or f"{facts.filesystem} {facts.folder}"
