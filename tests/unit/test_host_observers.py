"""Parsers of /proc on sample texts, and the host's facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.observers import host as host_observers_module
from pgdyno.observers.environment import (
    host_facts,
    mount_of,
    parse_mountinfo,
    storage_facts,
)
from pgdyno.observers.host import (
    host_observers,
    parse_cpu,
    parse_disks,
    parse_memory,
    parse_network,
    parse_tasks,
)
from pgdyno.observers.process import ProcessGroup, ProcessObserver
from tests.observer_samples import (
    DISKSTATS,
    LOADAVG,
    MEMINFO,
    MOUNTINFO,
    NETWORK,
    STAT,
    TextHost,
    proc_files,
)

pytestmark = pytest.mark.unit


def test_cpu_of_all_and_of_each() -> None:
    rows = parse_cpu(STAT)
    assert [row["cpu"] for row in rows] == ["all", "0", "1"]
    assert rows[0] == {
        "cpu": "all", "user_jiffies": 1020, "sys_jiffies": 320, "wait_jiffies": 400,
        "steal_jiffies": 7, "idle_jiffies": 50000,
    }  # fmt: skip


def test_an_old_kernel_prints_fewer_kinds_of_cpu_time() -> None:
    assert parse_cpu("cpu  1 2 3 4\n")[0]["steal_jiffies"] == 0


def test_tasks() -> None:
    assert parse_tasks(STAT, LOADAVG) == [
        {"running": 4, "blocked": 1, "context_switches": 1337085, "forks": 9383, "load_1min": 0.63}
    ]


def test_memory_is_in_bytes_and_huge_pages_are_pages() -> None:
    (row,) = parse_memory(MEMINFO)
    assert row["total_bytes"] == 1_000_000 * 1024
    assert row["swap_used_bytes"] == 1000 * 1024
    assert (row["huge_pages_total"], row["huge_pages_free"]) == (12, 3)


def test_disks_are_whole_disks_that_did_something() -> None:
    rows = {row["device"]: row for row in parse_disks(DISKSTATS)}
    assert set(rows) == {"sda", "sdb", "nvme0n1"}
    assert rows["sda"]["read_bytes"] == 2000 * 512
    assert rows["sda"]["write_bytes"] == 7000 * 512
    assert (rows["sda"]["in_flight"], rows["sda"]["busy_time_ms"]) == (2, 1579)
    assert (rows["sda"]["flushes"], rows["sda"]["flush_time_ms"]) == (31, 41)
    assert rows["sdb"]["flushes"] is None


def test_network_interfaces_that_carried_something() -> None:
    rows = {row["interface"]: row for row in parse_network(NETWORK)}
    assert set(rows) == {"lo", "eth0"}
    assert rows["eth0"] == {
        "interface": "eth0", "received_bytes": 242000460, "received_packets": 7843,
        "received_errors": 3, "sent_bytes": 511846, "sent_packets": 4749, "sent_errors": 7,
    }  # fmt: skip


def test_a_host_without_a_file_leaves_that_observer_out() -> None:
    texts = TextHost(files={"/proc/stat": STAT})
    by_name = {observer.table.name: observer for observer in host_observers(texts)}
    by_name["host_cpu"].begin()
    with pytest.raises(PgdynoError, match="host 'texts' has no readable /proc/diskstats"):
        by_name["host_disk"].begin()


def test_tables_of_a_second_host_have_names_of_their_own() -> None:
    names = [one.table.name for one in host_observers(TextHost(), prefix="standby1")]
    assert names == [f"standby1_{n}" for n in ("cpu", "tasks", "memory", "disk", "network")]
    assert host_observers_module.CPU.name == "cpu"


def test_a_group_is_a_process_and_its_children_with_those_it_waited_for() -> None:
    observer = ProcessObserver(
        host=TextHost(files=proc_files()),
        groups=(
            ProcessGroup(role="server", root=lambda: 4711),
            ProcessGroup(role="engine", root=lambda: None),
        ),
        page_bytes=4096,
    )
    # 4713 has ended between the listing and its turn.
    assert list(observer.sample()) == [
        {
            "role": "server", "processes": 2, "threads": 10, "user_jiffies": 660,
            "sys_jiffies": 264, "rss_bytes": 4 * 1024**2, "private_bytes": 2 * 1024**2,
            "read_bytes": 8192, "written_bytes": 16384,
        }
    ]  # fmt: skip


def test_cpu_of_a_child_that_is_between_two_files_is_not_lost() -> None:
    files = proc_files()
    group = ProcessGroup(role="server", root=lambda: 4711)
    observer = ProcessObserver(host=TextHost(files=files), groups=(group,))
    (before,) = observer.sample()
    del files["/proc/4712/stat"]
    (after,) = observer.sample()
    assert (before["processes"], after["processes"]) == (2, 1)
    assert after["user_jiffies"] == before["user_jiffies"]


def test_traffic_that_may_not_be_read_is_unknown() -> None:
    files = proc_files()
    del files["/proc/4712/io"]
    group = ProcessGroup(role="server", root=lambda: 4711)
    (row,) = ProcessObserver(host=TextHost(files=files), groups=(group,)).sample()
    assert (row["processes"], row["read_bytes"], row["written_bytes"]) == (2, None, None)


def test_host_facts() -> None:
    texts = TextHost(
        files={
            **proc_files(),
            "/proc/cpuinfo": "model name\t: Some CPU @ 2GHz\nflags\t: fpu hypervisor\n",
            "/proc/sys/kernel/osrelease": "6.1.0\n",
            "/etc/os-release": 'NAME="X"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
            "/sys/class/dmi/id/sys_vendor": "QEMU\n",
            "/sys/class/dmi/id/product_name": "Standard PC\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        }
    )
    facts = host_facts(texts)
    assert (facts.cpus, facts.memory_bytes, facts.kernel) == (2, 1_000_000 * 1024, "6.1.0")
    assert (facts.cpu_model, facts.virtualization) == ("Some CPU @ 2GHz", "QEMU Standard PC")
    assert facts.operating_system == "Debian GNU/Linux 12 (bookworm)"
    assert (facts.transparent_huge_pages, facts.frequency_governor) == ("madvise", None)


def test_a_folder_lies_on_the_longest_mount_point_and_the_newest_of_equal_ones() -> None:
    mounts = parse_mountinfo(MOUNTINFO)

    def filesystem(folder: str) -> str:
        found = mount_of(Path(folder), mounts)
        assert found is not None
        return f"{found.filesystem} {found.source}"

    assert filesystem("/var/lib") == "ext4 /dev/sda1"
    assert filesystem("/mnt/fast disk/data") == "tmpfs tmpfs"
    assert filesystem("/data/18") == "xfs /dev/mapper/vg-new"
    assert filesystem("/database") == "ext4 /dev/sda1"


def test_storage_of_a_partition_is_told_from_its_disk() -> None:
    texts = TextHost(
        files={
            "/proc/self/mountinfo": MOUNTINFO,
            "/sys/dev/block/8:1/../queue/scheduler": "none [mq-deadline]\n",
            "/sys/dev/block/8:1/../queue/write_cache": "write back\n",
        },
        outputs={"df": "    Avail\n123456\n"},
    )
    facts = storage_facts(texts, Path("/var/lib/data"))
    assert (facts.filesystem, facts.device) == ("ext4", "/dev/sda1")
    assert (facts.scheduler, facts.write_cache) == ("mq-deadline", "write back")
    assert facts.mount_options == "rw,relatime,discard"
    assert facts.free_bytes == 123456
    assert storage_facts(texts, Path("/mnt/fast disk")).device is None


def test_this_machine_can_be_read() -> None:
    facts = host_facts(Local())
    assert facts.cpus >= 1
    assert facts.memory_bytes > 2**26
    storage = storage_facts(Local(), Path(__file__).parent)
    assert storage.free_bytes is not None
    assert storage.filesystem
    with pytest.raises(PgdynoError, match="no folder /nowhere"):
        storage_facts(Local(), Path("/nowhere"))
