"""The generator's own ceiling, and the share of it that a measurement used. Pure.

A load generator that works near its limit measures itself. Its limit is measured against a server
that answers at once (`pgdyno calibrate`), for the workload's own statements:

    ceiling of n cores = n × transactions / CPU seconds of the generator

The share is throughput over the ceiling of the cores it could use. Against a real server answers
come in smaller batches than against the null server, so a transaction costs somewhat more there:
the share is a lower bound, and the busy share (CPU time over the threads' time) stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from pgdyno.contract import Noun, Summary


class Ceiling(Noun):
    """What the engine can do with one kind of load on one machine, against the null server."""

    throughput_per_s: float = Field(gt=0, description="as measured, with these threads")
    transactions: int = Field(gt=0, description="committed in the measurement")
    cpu_ns: int = Field(gt=0, description="of all its threads, user and kernel, in the measurement")
    server_cpu_ns: int = Field(ge=0, description="of the null server, from its start on")
    clients: int = Field(ge=1)
    threads: int = Field(ge=1)
    reactor: str
    measured_s: float = Field(gt=0)

    @property
    def cpu_ns_per_transaction(self) -> float:
        """CPU time of the engine for one transaction."""
        return self.cpu_ns / self.transactions

    @property
    def per_core_per_s(self) -> float:
        """Transactions in one second of its CPU time."""
        return 1e9 / self.cpu_ns_per_transaction

    @property
    def busy_share(self) -> float:
        """How busy its threads were; far below 1 the null server or the machine was the limit."""
        return self.cpu_ns / (self.measured_s * 1e9 * self.threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorShare:
    """How much of itself the generator used. None where it is not known."""

    of_ceiling: float | None
    busy: float | None


def share_of_ceiling(throughput_per_s: float, ceiling: Ceiling, cores: int) -> float:
    """Fraction of what `cores` cores of the generator could do.

    >>> ceiling = Ceiling(throughput_per_s=1e5, transactions=100, cpu_ns=1_000_000,
    ...     server_cpu_ns=0, clients=1, threads=1, reactor="epoll", measured_s=1.0)
    >>> ceiling.per_core_per_s, share_of_ceiling(23_000, ceiling, 1)
    (100000.0, 0.23)
    """
    if cores < 1:
        raise ValueError("the generator runs on at least one core")
    return throughput_per_s / (ceiling.per_core_per_s * cores)


def generator_share(summary: Summary, ceiling: Ceiling | None, host_cpus: int) -> GeneratorShare:
    """The shares of a measurement; `ceiling` must be that of the same load on the same host."""
    cores = max(1, min(summary.engine.threads, host_cpus))
    throughput_per_s, measured_s = summary.throughput_per_s, summary.measured_s
    of_ceiling = None
    if ceiling is not None and throughput_per_s is not None:
        of_ceiling = share_of_ceiling(throughput_per_s, ceiling, cores)
    busy = None
    if summary.own_cost is not None and measured_s:
        cpu_ns = summary.own_cost.cpu_user_ns + summary.own_cost.cpu_sys_ns
        busy = cpu_ns / (measured_s * 1e9 * cores)
    return GeneratorShare(of_ceiling=of_ceiling, busy=busy)
