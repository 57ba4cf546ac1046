"""What the doctor makes of a machine and a system, and how it tells it in 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from pgdyno.model import HostFacts, Limits, StandbyChoice, StorageFacts, SystemChoice
from pgdyno.reports.doctor import advice_of, conclusion, doctor_document, render_doctor
from pgdyno.servers.findings import (
    Finding,
    judge_kernel,
    judge_limits,
    judge_machine,
    judge_storage,
)
from pgdyno.servers.machine import Machine, doctor_facts
from pgdyno.servers.preflight import ConnectionLimits, check_cpus, check_memory, shared_cpus
from pgdyno.servers.preflight_system import SystemFacts, judge_system, roles

pytestmark = pytest.mark.unit

GB = 1024**3
HOST = HostFacts(
    name="local", cpu_model="a processor", cpus=4, memory_bytes=16 * GB, kernel="6.1",
    operating_system="an OS", frequency_governor="performance",
    transparent_huge_pages="madvise", clock_source="tsc",
)  # fmt: skip
MACHINE = Machine(
    kernel={each["name"]: None for each in doctor_facts()["kernel"]},
    limits={each["name"]: (None, None) for each in doctor_facts()["limit"]},
    steal=0.0, busy=0.02, swap_used_bytes=0, numa_nodes=1, threads_per_core=1,
    services=(), no_cpu_limit=None, no_memory_limit=None,
)  # fmt: skip
SYSTEM = SystemFacts(
    version="15.18",
    limits=ConnectionLimits(
        max_connections=100, superuser_reserved_connections=3, reserved_connections=0,
        in_use=0, superuser=True, role_limit=-1, database_limit=-1,
    ),
    shared_buffers_bytes=GB,
    extensions=frozenset({"pg_prewarm", "pg_stat_statements"}),
    private=True,
)  # fmt: skip


def verdict(findings: list[Finding], name: str) -> tuple[str, str]:
    (found,) = [each for each in findings if each.name == name]
    return found.value, found.verdict


def test_a_quiet_machine_has_nothing_to_consider() -> None:
    findings = list(judge_machine(HOST, MACHINE))
    assert {each.verdict for each in findings} == {"fact", "fine"}


@pytest.mark.parametrize(
    ("host", "machine", "name"),
    [
        ({"frequency_governor": "powersave"}, {}, "governor"),
        ({"transparent_huge_pages": "always"}, {}, "huge pages"),
        ({"clock_source": "hpet"}, {}, "time source"),
        ({"virtualization": "KVM"}, {}, "virtualization"),
        ({"swap_bytes": GB}, {"swap_used_bytes": 5}, "swap"),
        ({"cpus": 1}, {}, "CPUs"),
        ({}, {"numa_nodes": 2}, "CPUs"),
        ({}, {"steal": 0.02}, "stolen"),
        ({}, {"busy": 0.5}, "busy"),
        ({}, {"services": ("avahi-daemon",)}, "services"),
    ],
)
def test_what_disturbs_is_worth_a_thought(
    host: dict[str, object], machine: dict[str, object], name: str
) -> None:
    facts = HOST.model_copy(update=host)
    findings = list(judge_machine(facts, replace(MACHINE, **machine)))  # type: ignore[arg-type]
    wrong = [each for each in findings if each.verdict == "consider"]
    assert [each.name for each in wrong] == [name]
    assert advice_of(wrong[0])


def test_kernel_settings_are_judged_by_their_rule() -> None:
    kernel = {
        **MACHINE.kernel,
        "fs.file-max": "10000",
        "vm.zone_reclaim_mode": "0",
        "vm.swappiness": "60",
        "net.ipv4.ip_local_port_range": "32768 60999",
    }
    findings = list(judge_kernel(HOST, replace(MACHINE, kernel=kernel)))
    assert verdict(findings, "fs.file-max") == ("10000", "consider")
    assert verdict(findings, "vm.zone_reclaim_mode") == ("0", "fine")
    assert verdict(findings, "vm.swappiness") == ("60", "fact")  # There is no swap.
    assert verdict(findings, "net.ipv4.ip_local_port_range")[1] == "fact"
    assert verdict(findings, "net.ipv4.tcp_tw_recycle")[0] == "gone since Linux 4.12"
    swapping = HOST.model_copy(update={"swap_bytes": GB})
    again = list(judge_kernel(swapping, replace(MACHINE, kernel=kernel)))
    assert verdict(again, "vm.swappiness") == ("60", "consider")


def test_limits_of_processes() -> None:
    limits = {**MACHINE.limits, "nofile": (1024, 4096), "memlock": (8 * 1024**2, None)}
    machine = replace(MACHINE, limits=limits, no_cpu_limit="this machine cannot limit CPU time")
    findings = list(judge_limits(machine))
    assert verdict(findings, "nofile") == ("1024 (at most 4096)", "consider")
    assert verdict(findings, "memlock") == ("8.0 MB (at most unlimited)", "fact")
    assert verdict(findings, "core") == ("unlimited", "fine")
    assert verdict(findings, "--cpu-limit")[0] == "this machine cannot limit CPU time"


@pytest.mark.parametrize(
    ("filesystem", "options", "expected"),
    [
        ("ext4", "rw,relatime", "fine"),
        ("ext4", "rw", "consider"),
        ("ext4", "rw,noatime,nobarrier", "consider"),
        ("tmpfs", "rw,relatime", "consider"),
        ("nfs4", "rw,relatime", "consider"),
    ],
)
def test_storage(filesystem: str, options: str, expected: str) -> None:
    facts = StorageFacts(folder="/srv", filesystem=filesystem, mount_options=options)
    (found,) = judge_storage([facts])
    assert found.verdict == expected


def system(choice: SystemChoice, facts: SystemFacts, connections: int = 22) -> list[Finding]:
    cpus = roles(choice, (3,))
    return list(judge_system(choice, facts, HOST, connections=connections, cpus=cpus))


def test_a_system_that_fits_has_no_problem() -> None:
    choice = SystemChoice(cpus=(0, 1), standbys=(StandbyChoice(name="standby-1", cpus=(2,)),))
    findings = system(choice, SYSTEM)
    assert {each.verdict for each in findings} == {"fact", "fine"}
    assert verdict(findings, "placement")[0] == "primary 0,1; engine 3; standby-1 2"


def test_all_that_a_run_would_refuse_is_a_problem() -> None:
    choice = SystemChoice(cpus=(7,), limits=Limits(memory_bytes=GB))
    facts = replace(SYSTEM, problems=("setting 'x' does not exist",), creates=False)
    problems = [each for each in system(choice, facts, 400) if each.verdict == "problem"]
    assert [each.name for each in problems] == [
        *("refused", "connections", "memory", "placement", "rights"),
    ]
    assert "--set max_connections=400" in str(problems[1].advice)


def test_who_is_not_pinned_shares_with_the_load_generator() -> None:
    findings = system(SystemChoice(), SYSTEM)
    (placement,) = [each for each in findings if each.name == "placement"]
    assert placement.verdict == "consider"
    assert str(placement.advice).startswith("server and load generator share CPU 3:")


def test_memory_and_cpus_before_a_run() -> None:
    assert check_memory(GB, 8 * GB) == []
    assert "would kill the server" in check_memory(8 * GB, 8 * GB)[0]
    assert check_cpus({"server": (), "engine": (1,)}, (0, 1)) == []
    assert shared_cpus({"server": (0, 1), "engine": (1, 2)}, (0, 1, 2)) == [
        "server and load generator share CPU 1"
    ]


def test_it_is_told_in_80_columns_and_as_json() -> None:
    findings = [
        *judge_machine(HOST, MACHINE),
        *judge_kernel(HOST, MACHINE),
        *judge_limits(MACHINE),
        Finding(
            section="system", name="rights", value="none", verdict="problem", advice="go " * 60
        ),
    ]
    screen = io.StringIO()
    render_doctor(findings, Console(file=screen, width=80))
    lines = screen.getvalue().splitlines()
    assert max(len(line) for line in lines) <= 80
    assert [line for line in lines if line.startswith("problem")] == [
        "problem  rights         none"
    ]
    assert lines[-1] == conclusion(findings) == "1 problem, 0 to consider; nothing was changed"
    document = doctor_document(findings)
    assert (document["problems"], len(document["findings"])) == (1, len(findings))


def test_every_fact_of_the_doctor_has_advice() -> None:
    facts = doctor_facts()
    for each in (*facts["kernel"], *facts["limit"]):
        assert each["advice"], each["name"]
    assert all(len(name) <= 15 for name in facts["services"]["names"])
