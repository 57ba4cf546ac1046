"""Where the programs of poolers are, and which versions; which package gives a missing one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.poolers.facts import Facts, Version

# Distributions keep them where an ordinary account's PATH does not lead.
_MORE_FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin")
_ASK_DEADLINE_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One pooler's program and its version, as numbers to compare."""

    path: Path
    version: Version

    @property
    def shown(self) -> str:
        """The version as people write it."""
        return ".".join(str(part) for part in self.version)


def find_program(facts: Facts, host: Host) -> Program:
    """The program of a kind; raises `PgdynoError` naming the package where there is none."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), *_MORE_FOLDERS])
    found = shutil.which(facts.program, path=folders)
    if found is None:
        package = facts.package
        raise PgdynoError(
            f"{facts.program} is not on this machine",
            hint=f"install it: apt-get install {package['debian']} (Debian, Ubuntu), "
            f"dnf install {package['fedora']} (Fedora, RHEL)",
        )
    done = host.run(Command(words=[found, *_VERSION_WORDS[facts.kind]]), deadline_s=_ASK_DEADLINE_S)
    match = facts.version.search(done.output + done.error)
    if match is None:
        said = (done.output + done.error).strip().splitlines() or ["nothing"]
        raise PgdynoError(f"'{found}' does not say its version, but: {said[0][:80]}")
    # Its processes are recognised by the file they execute, so links are followed.
    path = Path(found).resolve()
    return Program(path=path, version=tuple(int(part) for part in match.group(1).split(".")))


_VERSION_WORDS: Final = {"pgpool": ["--version"], "pgbouncer": ["--version"], "haproxy": ["-v"]}
