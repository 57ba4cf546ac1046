"""What every host promises, and what the local one promises on top."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host, Noop
from pgdyno.hosts.local import Local

pytestmark = pytest.mark.unit

HOSTS = [Local, Noop]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def within(deadline_s: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@pytest.fixture(params=HOSTS, ids=lambda kind: kind.__name__)
def host(request: pytest.FixtureRequest) -> Host:
    made: Host = request.param()
    return made


def test_a_host_has_a_name(host: Host) -> None:
    assert host.name


def test_a_command_that_succeeds_has_status_0(host: Host) -> None:
    assert host.run(Command(words=["true"]), deadline_s=10).status == 0


def test_a_started_process_ends_with_a_status(host: Host) -> None:
    process = host.start(Command(words=["true"]), log=None, pipe=False)
    assert process.wait(deadline_s=10) == 0
    assert process.status() == 0
    process.send(signal.SIGTERM)


def test_a_missing_file_is_none(host: Host, tmp_path: Path) -> None:
    assert host.read_text(tmp_path / "nothing") is None


def test_every_host_class_is_under_contract() -> None:
    from pgdyno.hosts import base, local

    verbs = {"run", "start", "read_text", "put", "get", "name"}
    found = {
        member
        for module in (base, local)
        for member in vars(module).values()
        if isinstance(member, type) and verbs <= set(dir(member)) and member is not base.Host
    }
    assert found == set(HOSTS)


def test_output_error_and_status_are_returned() -> None:
    done = Local().run(
        Command(words=["sh", "-c", "cat; echo bad >&2; exit 3"], input_text="good"), deadline_s=10
    )
    assert (done.status, done.output, done.error) == (3, "good", "bad\n")


def test_environment_and_folder_reach_the_command(tmp_path: Path) -> None:
    words = ["sh", "-c", "echo $COLOUR; pwd"]
    done = Local().run(
        Command(words=words, environment={"COLOUR": "green"}, folder=tmp_path), deadline_s=10
    )
    assert done.output.splitlines() == ["green", str(tmp_path)]


def test_environment_values_are_not_in_the_process_list() -> None:
    process = Local().start(
        Command(words=["sleep", "30"], environment={"PGPASSWORD": "hush"}), log=None, pipe=False
    )
    try:
        assert "hush" not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert b"PGPASSWORD=hush" in Path(f"/proc/{process.pid}/environ").read_bytes()
    finally:
        process.send(signal.SIGKILL)
        process.wait(deadline_s=10)


def test_a_missing_program_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="cannot run 'no-such-program'"):
        Local().run(Command(words=["no-such-program"]), deadline_s=10)
    with pytest.raises(PgdynoError, match="cannot run '/etc/passwd'"):
        Local().start(Command(words=["/etc/passwd"]), log=None, pipe=False)


def test_a_missed_deadline_kills_the_command_and_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    words = ["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"]
    with pytest.raises(PgdynoError, match=r"'sh' did not end within 0\.5 s"):
        Local().run(Command(words=words), deadline_s=0.5)
    assert within(5, lambda: not alive(int(pid_file.read_text())))


def test_cpus_pin_the_command() -> None:
    cpu = min(os.sched_getaffinity(0))
    done = Local().run(
        Command(words=["grep", "Cpus_allowed_list", "/proc/self/status"], cpus=(cpu,)),
        deadline_s=10,
    )
    assert done.output.split() == ["Cpus_allowed_list:", str(cpu)]


def test_log_takes_errors_and_a_pipe_takes_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = ["sh", "-c", "echo out; echo err >&2"]
    process = Local().start(Command(words=words), log=log, pipe=True)
    assert process.output is not None
    with process.output as output:
        assert output.read() == b"out\n"
    assert process.wait(deadline_s=10) == 0
    assert log.read_text() == "err\n"
    Local().start(Command(words=words), log=log, pipe=False).wait(deadline_s=10)
    assert log.read_text() == "err\nout\nerr\n"


def test_a_process_that_outlasts_its_deadline_is_told() -> None:
    process = Local().start(Command(words=["sleep", "60"]), log=None, pipe=False)
    with pytest.raises(PgdynoError, match="still runs after"):
        process.wait(deadline_s=0.1)
    process.send(signal.SIGTERM)
    assert process.wait(deadline_s=10) == -signal.SIGTERM


def test_a_process_leads_its_own_session() -> None:
    process = Local().start(Command(words=["sleep", "60"]), log=None, pipe=False)
    try:
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
    finally:
        process.send(signal.SIGKILL)
        process.wait(deadline_s=10)


def test_a_process_outlives_the_thread_that_asked_for_it() -> None:
    found: list[int] = []
    process = None

    def ask() -> None:
        nonlocal process
        process = Local().start(Command(words=["sleep", "60"]), log=None, pipe=False)
        found.append(process.pid)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(timeout=10)
    time.sleep(0.2)
    assert process is not None
    try:
        assert alive(found[0])
    finally:
        process.send(signal.SIGKILL)
        process.wait(deadline_s=10)


def test_a_process_dies_with_the_lab() -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", _LAB],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert lab.stdout is not None
    with lab.stdout as answers:
        pid = int(answers.readline())
    assert alive(pid)
    lab.kill()
    lab.wait(timeout=10)
    assert within(5, lambda: not alive(pid))


_LAB = """
import time
from pgdyno.hosts.base import Command
from pgdyno.hosts.local import Local
print(Local().start(Command(words=["sleep", "60"]), log=None, pipe=False).pid, flush=True)
time.sleep(60)
"""


@needs_root
def test_another_user_gets_its_own_name_and_home() -> None:
    done = Local().run(
        Command(words=["sh", "-c", "id -un; id -Gn; echo $HOME; pwd"], user="nobody"), deadline_s=10
    )
    group = "nogroup" if pwd.getpwnam("nobody").pw_gid == 65534 else "nobody"
    assert done.output.splitlines() == ["nobody", group, pwd.getpwnam("nobody").pw_dir, "/"]


@needs_root
def test_a_process_of_another_user_dies_with_the_lab_too() -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", _LAB.replace('"60"]', '"60"], user="nobody"')],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert lab.stdout is not None
    with lab.stdout as answers:
        pid = int(answers.readline())
    assert alive(pid)
    lab.kill()
    lab.wait(timeout=10)
    assert within(5, lambda: not alive(pid))


@needs_root
def test_an_unknown_user_is_told() -> None:
    with pytest.raises(PgdynoError, match="as user no-such-user"):
        Local().run(Command(words=["true"], user="no-such-user"), deadline_s=10)


def test_copies_keep_content_and_name_both_ends_when_they_fail(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("text")
    Local().put(source, target)
    Local().get(target, tmp_path / "c")
    assert (tmp_path / "c").read_text() == "text"
    with pytest.raises(PgdynoError, match="cannot copy"):
        Local().put(tmp_path / "nothing", target)
