"""What is found before a measurement, judged: findings about a machine, its storage, its limits.

Pure. A finding changes nothing; it says what is, what a published benchmark had, and what to do
where that matters. `docs/doctor.md` says how to read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pgdyno.model import HostFacts, StorageFacts
from pgdyno.servers.binaries import Installation
from pgdyno.servers.machine import Machine, doctor_facts
from pgdyno.servers.poolers.fitness import Fit
from pgdyno.servers.poolers.judging import Judged
from pgdyno.units import format_bytes, format_share

Verdict = Literal["fine", "consider", "problem", "fact", "unknown"]
Section = Literal["machine", "kernel", "limits", "storage", "postgresql", "system"]

_SLOW_CLOCKS: Final = frozenset({"hpet", "acpi_pm", "jiffies", "pit"})
_SLOW_READ_NS: Final = 200
_BUSY_SHARE: Final = 0.1
_STEAL_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing and its value. `consider`: worth a thought; `problem`: a run would be refused."""

    section: Section
    name: str
    value: str
    verdict: Verdict = "fact"
    published: str | None = None
    advice: str | None = None


def judge_machine(host: HostFacts, machine: Machine) -> Iterator[Finding]:
    """The machine itself: what disturbs measurements, or makes them other than elsewhere."""
    for name, value in (
        ("system", host.operating_system),
        ("kernel", host.kernel),
        ("processor", host.cpu_model),
    ):
        yield Finding(section="machine", name=name, value=value or "not known")
    yield _cpus(host, machine)
    yield Finding(section="machine", name="memory", value=format_bytes(host.memory_bytes))
    yield _swap(host, machine)
    yield _choice(
        "governor",
        host.frequency_governor,
        fine={"performance"},
        advice="the clock follows the load, with a delay: cpupower frequency-set -g performance",
    )
    yield _choice(
        "huge pages",
        host.transparent_huge_pages,
        fine={"madvise", "never"},
        advice="always: the kernel moves memory together behind the server's back",
    )
    yield _choice(
        "time source",
        host.clock_source,
        bad=_SLOW_CLOCKS,
        advice="reading it takes a system call: boot with clocksource=tsc where that is stable",
    )
    if host.virtualization is not None:
        advice = "other guests share it: repeat, and compare only what ran in the same hour"
        yield Finding(
            section="machine", name="virtualization", value=host.virtualization,
            verdict="consider", advice=advice,
        )  # fmt: skip
    yield _share(
        "stolen", machine.steal, _STEAL_SHARE,
        "the hypervisor gives this CPU time to other guests: wait, or use another machine",
    )  # fmt: skip
    yield _share("busy", machine.busy, _BUSY_SHARE, "something else runs here: end it or wait")
    yield from _services(machine)


def judge_kernel(host: HostFacts, machine: Machine) -> Iterator[Finding]:
    """The kernel's settings beside published ones."""
    for fact in doctor_facts()["kernel"]:
        value = machine.kernel.get(fact["name"])
        if value is None:
            gone = f"gone since Linux {fact['gone']}" if "gone" in fact else "not there"
            yield Finding(
                section="kernel", name=fact["name"], value=gone, published=fact.get("published")
            )
            continue
        first = value.split()[0] if value else ""
        number = int(first) if first.lstrip("-").isdigit() else None
        matters = host.swap_bytes > 0 or not fact.get("with_swap", False)
        yield Finding(
            section="kernel",
            name=fact["name"],
            value=value,
            verdict=_by_rule(fact, value, number) if matters else "fact",
            published=fact.get("published"),
            advice=fact["advice"],
        )


def judge_limits(machine: Machine) -> Iterator[Finding]:
    """Limits of our processes, and whether we can limit those of a server."""
    for fact in doctor_facts()["limit"]:
        soft, hard = machine.limits[fact["name"]]
        shown = format_bytes if fact.get("unit") == "bytes" else str
        value = "unlimited" if soft is None else shown(soft)
        if soft != hard:
            value += f" (at most {'unlimited' if hard is None else shown(hard)})"
        verdict: Verdict = "fine" if soft is None else _by_rule(fact, value, soft)
        yield Finding(
            section="limits", name=fact["name"], value=value, verdict=verdict,
            published=fact["published"], advice=fact["advice"],
        )  # fmt: skip
    for name, reason in (
        ("--cpu-limit", machine.no_cpu_limit),
        ("--memory-limit", machine.no_memory_limit),
    ):
        yield Finding(section="limits", name=name, value=reason or "possible")


def judge_storage(storage: Sequence[StorageFacts]) -> Iterator[Finding]:
    """What lies below folders for data."""
    for each in storage:
        words = [each.filesystem, each.device, each.scheduler and f"scheduler {each.scheduler}"]
        words += [each.write_cache and f"cache {each.write_cache}"]
        if each.free_bytes is not None:
            words.append(f"{format_bytes(each.free_bytes)} free")
        value = ", ".join(word for word in words if word)
        verdict, advice = _storage_verdict(each)
        yield Finding(
            section="storage", name=each.folder, value=value, verdict=verdict, advice=advice
        )


def judge_clock(read_ns: float | None) -> Iterator[Finding]:
    """The time of one reading of the clock, where it was measured."""
    if read_ns is None:
        return
    slow = read_ns > _SLOW_READ_NS
    yield Finding(
        section="storage",
        name="clock",
        value=f"{read_ns:.0f} ns a reading",
        verdict="consider" if slow else "fine",
        advice="EXPLAIN ANALYZE and track_io_timing read it all the time" if slow else None,
    )


def judge_installations(found: Sequence[Installation]) -> Iterator[Finding]:
    """What `--pg` can choose."""
    for one in found:
        yield Finding(
            section="postgresql",
            name=one.version,
            value=f"{one.origin}, {one.bin_dir}",
            verdict="fact" if one.problem is None else "consider",
            advice=one.problem,
        )
    if not found:
        advice = "install one, or fetch one: pgdyno servers fetch 18"
        yield Finding(
            section="postgresql", name="none", value="was found", verdict="consider", advice=advice
        )


def judge_pooler(judged: Judged, fitted: Fit) -> Iterator[Finding]:
    """What a pooler lets through of a load."""
    value = f"{judged.capacity.kind} {judged.capacity.version}"
    if not fitted.problems:
        yield Finding(section="system", name="pooler", value=value, verdict="fine")
    for line in fitted.problems:
        yield Finding(section="system", name="pooler", value=value, verdict="problem", advice=line)
    for line in (*judged.notices, *fitted.notices):
        yield Finding(section="system", name="pooler", value=value, verdict="consider", advice=line)


def _storage_verdict(each: StorageFacts) -> tuple[Verdict, str | None]:
    options = (each.mount_options or "").split(",")
    if each.filesystem in {"tmpfs", "ramfs"}:
        return "consider", "memory: commits are not durable here, and no disk is measured"
    if each.filesystem in {"nfs", "nfs4", "cifs", "9p", "overlay"}:
        return "consider", f"{each.filesystem} is not a disk: its costs are measured as well"
    if {"nobarrier", "barrier=0"} & set(options):
        return "consider", "the disk's cache is never flushed: commits can be lost (class D0)"
    if not {"noatime", "relatime"} & set(options):
        return "consider", "every read of a file is written down: mount it with noatime"
    return "fine", None


def _cpus(host: HostFacts, machine: Machine) -> Finding:
    extra = []
    if machine.threads_per_core is not None and machine.threads_per_core > 1:
        extra.append(f"{machine.threads_per_core} threads a core")
    if machine.numa_nodes > 1:
        extra.append(f"{machine.numa_nodes} NUMA nodes")
    value = ", ".join([str(host.cpus), *extra])
    if host.cpus >= 2 and not extra:
        return Finding(section="machine", name="CPUs", value=value, verdict="fine")
    advice = (
        "server and load generator share one CPU: --dsn measures a server elsewhere"
        if host.cpus < 2
        else "pin both sides to whole cores of one node: --server-cpus, --engine-cpus"
    )
    return Finding(section="machine", name="CPUs", value=value, verdict="consider", advice=advice)


def _swap(host: HostFacts, machine: Machine) -> Finding:
    if not host.swap_bytes:
        return Finding(section="machine", name="swap", value="none", verdict="fine")
    used = machine.swap_used_bytes
    value = f"{format_bytes(host.swap_bytes)}, {format_bytes(used)} in use"
    verdict: Verdict = "consider" if used else "fine"
    advice = "what is swapped out comes back in the middle of a measurement: swapoff -a"
    return Finding(section="machine", name="swap", value=value, verdict=verdict, advice=advice)


def _choice(
    name: str,
    value: str | None,
    *,
    fine: frozenset[str] | set[str] = frozenset(),
    bad: frozenset[str] = frozenset(),
    advice: str,
) -> Finding:
    """A kernel's choice: one of the good words, or none of the bad ones."""
    if value is None:
        return Finding(section="machine", name=name, value="not known", verdict="unknown")
    good = value in fine if fine else value not in bad
    return Finding(
        section="machine", name=name, value=value,
        verdict="fine" if good else "consider", advice=None if good else advice,
    )  # fmt: skip


def _share(name: str, share: float | None, limit: float, advice: str) -> Finding:
    if share is None:
        return Finding(section="machine", name=name, value="not known", verdict="unknown")
    verdict: Verdict = "consider" if share > limit else "fine"
    value = f"{format_share(share)} of the CPUs, over half a second"
    return Finding(section="machine", name=name, value=value, verdict=verdict, advice=advice)


def _services(machine: Machine) -> Iterator[Finding]:
    facts = doctor_facts()["services"]
    names = ", ".join(machine.services)
    yield Finding(
        section="machine",
        name="services",
        value=names or "none of those that disturb",
        verdict="consider" if names else "fine",
        published=facts["published"],
        advice=facts["advice"],
    )


def _by_rule(fact: Mapping[str, Any], value: str, number: int | None) -> Verdict:
    """Whether a value is as the fact's rule wants it; without a rule it is a fact."""
    if "is" in fact:
        return "fine" if value == fact["is"] else "consider"
    if number is None or not {"at_least", "at_most"} & fact.keys():
        return "fact"
    good = number >= fact.get("at_least", number) and number <= fact.get("at_most", number)
    return "fine" if good else "consider"
