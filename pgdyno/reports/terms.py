"""What the words of a report mean, for readers who meet them for the first time. Data only."""

from __future__ import annotations

from collections.abc import Mapping

DURABILITY_NAMES: Mapping[str, str] = {
    "D0": "unsafe",
    "D1": "delayed",
    "D2": "local",
    "D3": "replicated",
    "D3w": "replicated, written",
    "D4": "applied",
    "D?": "provider's",
    "none": "nothing written",
}
DURABILITY_COSTS: Mapping[str, str] = {
    "D0": "A crash of the operating system or a power cut can corrupt the data.",
    "D1": (
        "A crash can lose the commits of about the last three wal_writer_delay, also when only the "
        "postmaster is killed. What is left is consistent."
    ),
    "D2": "A crash loses nothing that was acknowledged, as long as the primary's disk survives.",
    "D3": "The loss of one host loses nothing that was acknowledged.",
    "D3w": (
        "The loss of one host loses nothing that was acknowledged, as long as the standby's "
        "operating system survives."
    ),
    "D4": (
        "The loss of one host loses nothing that was acknowledged, and a read on the synchronous "
        "standby sees every acknowledged commit."
    ),
    "D?": "The storage gives the guarantee: it is the provider's promise, not derived here.",
    "none": "Nothing was written, so no durability class applies.",
}

TITLES: Mapping[str, str] = {
    "throughput": "committed transactions a second; one execution of a script is one transaction",
    "with connecting": "the same, with the time it took to connect all clients counted in",
    "server commits": "commits the server acknowledged; a script of two statements outside a block "
    "commits twice",
    "response time": "from the moment a transaction was meant to start to its end",
    "service time": "from sending a transaction's first byte to its end",
    "schedule lag": "how late a transaction was sent, compared with when it was meant to be",
    "p50": "half of the transactions were at least this fast (the median)",
    "p90": "90 of 100 transactions were at least this fast",
    "p95": "95 of 100 transactions were at least this fast",
    "p99": "99 of 100 transactions were at least this fast",
    "p99.9": "999 of 1000 transactions were at least this fast",
    "p99.99": "9999 of 10 000 transactions were at least this fast",
    "mean": "arithmetic mean: sum of all times divided by their number",
    "failed": "transactions that did not commit: serialization, deadlock, other error, connection",
    "unknown": "commit was sent and never answered: the transaction may have happened or not",
    "skipped": "transactions never sent, because the engine was hopelessly behind schedule",
    "late": "committed, but above the response limit",
    "durability class": "what an acknowledged commit is worth; compare only within one class",
    "user": "CPU time in programs",
    "sys": "CPU time in the kernel",
    "wait": "CPU idle while a disk was being waited for",
    "steal": "CPU time the hypervisor gave to other machines",
    "idle": "CPU with nothing to do",
    "engine": "CPU the load generator itself used",
    "generator": "throughput over what the engine can do on its cores, measured on a null server",
    "WAL": "write-ahead log: what PostgreSQL writes before a commit is acknowledged",
    "fairness": "how evenly clients were served: committed transactions a client",
    "warm-up": "measured but not counted: caches fill and plans settle",
    "meta": "a command of the script language, carried out by the engine without the server",
    "prewarm": "reading the data into memory before the measurement",
    "fsync": "forcing written data to the disk itself",
}
"""What a term means, in one plain sentence; shown when it is pointed at."""
