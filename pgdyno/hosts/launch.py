"""The last step before a command runs: enter its control groups, become its user, pin it, tie
its life to the lab's, execute.

Run as a script with `python -I -S launch.py FD SPEC`; imports nothing of pgdyno. What goes wrong is
written to the descriptor FD, which closes by itself when the command has been executed: an empty
answer means that it runs. The process number stays the same, so the lab can signal the command.

A launcher does what `preexec_fn` would, without running Python between fork and exec of a process
with threads. Order matters: Linux forgets the death signal when a process changes its user.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_REFUSED_STATUS = 126


def _become(user: str) -> dict[str, str]:
    """Change to `user` with its groups; returns the environment that belongs to it."""
    entry = pwd.getpwnam(user)
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    return {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user}


def _enter(cgroups: list[str]) -> None:
    """Enter control groups, while we may: a server's account has no right to. 0 means ourselves."""
    for folder in cgroups:
        with open(os.path.join(folder, "cgroup.procs"), "w") as members:  # noqa: PTH118, PTH123
            members.write("0")


def _tie_to(parent_pid: int, death_signal: int) -> None:
    """Ask for `death_signal` when the parent dies; ends at once when it is dead already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def launch(spec: dict[str, Any]) -> None:
    """Execute `spec["words"]`; returns only by raising `OSError`, `KeyError` or `ValueError`."""
    environment = dict(os.environ)
    _enter(spec["cgroups"])
    if spec["user"] is not None:
        own = _become(spec["user"])
        environment.update({name: own[name] for name in own if name not in spec["given_names"]})
    if spec["cpus"]:
        os.sched_setaffinity(0, spec["cpus"])
    if spec["folder"] is not None:
        os.chdir(spec["folder"])
    _tie_to(spec["parent_pid"], spec["death_signal"])
    # Python ignores these two; a command expects them as they come.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execvpe(spec["words"][0], spec["words"], environment)


def main() -> int:
    """Launch; on refusal write one line to the descriptor and return a status."""
    error_fd = int(sys.argv[1])
    os.set_inheritable(error_fd, False)  # noqa: FBT003
    try:
        launch(json.loads(sys.argv[2]))
    except FileNotFoundError as error:
        message = f"not found: {error.filename or error}"
    except KeyError as error:
        message = f"no such user or field: {error}"
    except (OSError, ValueError) as error:
        message = str(error)
    os.write(error_fd, message.encode())
    return _REFUSED_STATUS


if __name__ == "__main__":
    sys.exit(main())
