"""Whether clients got equal shares: committed transactions and mean service time of each client.

A server that starves some sessions (a lock queue, a pooler) can show good totals; the spread over
clients gives it away. Jain's index: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of
Fairness and Discrimination for Resource Allocation in Shared Computer Systems", DEC-TR-301, 1984.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.contract import ClientResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """How evenly transactions fell to clients.

    `jain_index` is 1 when all are equal and 1/n when one client got everything. The service times
    are of clients' own means, over clients that committed anything (0 when none did).
    """

    clients: int
    committed_average: float
    committed_stddev: float
    committed_min: int
    committed_max: int
    jain_index: float
    service_time_average_ns: float
    service_time_stddev_ns: float


def fairness(clients: Sequence[ClientResult]) -> Fairness | None:
    """Spread over clients (population standard deviations); None without clients."""
    if not clients:
        return None
    committed = [client.committed for client in clients]
    service_ns = [
        client.sum_service_ns / client.committed for client in clients if client.committed
    ]
    average, stddev = _average_and_stddev(committed)
    service_average_ns, service_stddev_ns = _average_and_stddev(service_ns)
    squares = sum(count * count for count in committed)
    return Fairness(
        clients=len(clients),
        committed_average=average,
        committed_stddev=stddev,
        committed_min=min(committed),
        committed_max=max(committed),
        jain_index=sum(committed) ** 2 / (len(committed) * squares) if squares else 1.0,
        service_time_average_ns=service_average_ns,
        service_time_stddev_ns=service_stddev_ns,
    )


def _average_and_stddev(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 0.0
    average = math.fsum(values) / len(values)
    return average, math.sqrt(math.fsum((v - average) ** 2 for v in values) / len(values))
