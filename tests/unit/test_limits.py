"""Control groups: where they can be made, from the kernel's own texts; what is written there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model import Limits
from pgdyno.servers import limits

pytestmark = pytest.mark.unit

V1 = (
    "25 20 0:22 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
    "26 20 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "27 20 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
V1_OWN = "4:memory:/jobs/7\n2:cpu,cpuacct:/\n0::/\n"


def test_version_1_has_a_tree_for_each_controller() -> None:
    found = limits.hierarchies(V1_OWN, V1)
    own = {name: str(tree.own) for tree in found for name in tree.controllers}
    assert own == {
        "cpu": "/sys/fs/cgroup/cpu,cpuacct",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
        "memory": "/sys/fs/cgroup/memory/jobs/7",
    }


def test_a_container_sees_its_group_as_the_root() -> None:
    mounts = "26 20 0:23 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
    (tree,) = limits.hierarchies("0::/docker/ab/inner\n", mounts)
    assert (tree.version, str(tree.own)) == (2, "/sys/fs/cgroup/inner")


def test_version_2_takes_the_nearest_that_hands_its_controller_on(tmp_path: Path) -> None:
    # A tree of folders as the kernel shows it: the user's manager hands on, the scope does not.
    manager = tmp_path / "user.slice" / "manager"
    own = manager / "app.scope"
    own.mkdir(parents=True)
    for folder, handed_on in ((tmp_path, "cpu memory"), (manager, "memory"), (own, "")):
        (folder / "cgroup.subtree_control").write_text(handed_on + "\n")
    tree = limits.Hierarchy(version=2, mount=tmp_path, own=own, controllers=frozenset())
    assert limits._parent("memory", [tree]) == manager
    assert limits._parent("cpu", [tree]) == tmp_path
    assert limits._parent("io", [tree]) is None


def test_what_is_written() -> None:
    wanted = Limits(cpu_share=1.5, memory_bytes=2 * 1024**3)
    assert dict(limits.limit_files(wanted)) == {
        "cpu.max": "150000 100000",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "150000",
        "memory.max": "2147483648",
        "memory.limit_in_bytes": "2147483648",
    }


def test_the_kernel_refuses_less_than_a_millisecond() -> None:
    assert dict(limits.limit_files(Limits(cpu_share=0.001)))["cpu.max"] == "1000 100000"


def test_no_limit_needs_no_group() -> None:
    assert limits.group_folders(Limits(), "pgdyno-x") == ()
    assert limits.why_not(Limits()) is None


def test_an_ordinary_folder_is_no_group(tmp_path: Path) -> None:
    assert not limits.is_group(tmp_path)
