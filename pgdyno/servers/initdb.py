"""A new cluster: initdb, who may connect, and the mark that says it is ours.

What it is made with is decided in `initdb_options`. Files are synced as
initdb does by default: leaving that out saves nothing measurable (0.60 s to 0.64 s with and
without, PostgreSQL 15), and a kept cluster must survive a power cut.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.binaries import Installation
from pgdyno.servers.initdb_options import DEFAULT_OPTIONS
from pgdyno.servers.orphans import MARKER

SUPERUSER = "postgres"
SETTINGS_FILE = "pgdyno.conf"
_MARKER_FORMAT = 1
_INITDB_DEADLINE_S = 120.0
_WRITE_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Where the files of a cluster lie and whose they are."""

    host: Host
    user: str | None

    def write(self, path: Path, text: str) -> None:
        """Write a file as the cluster's account, readable by it alone; `PgdynoError` if not."""
        words = ["sh", "-c", 'umask 077 && exec cat > "$0"', str(path)]
        command = Command(words=words, user=self.user, input_text=text)
        done = self.host.run(command, deadline_s=_WRITE_DEADLINE_S)
        if done.status != 0:
            raise PgdynoError(f"cannot write '{path}': {done.error.strip()}")


def access_rules(version_num: int) -> str:
    """Text of pg_hba.conf: trust inside the private socket folder, a password on loopback.

    >>> access_rules(90600).splitlines()[-1].split()
    ['host', 'replication', 'all', '::1/128', 'md5']
    """
    method = "scram-sha-256" if version_num >= 100000 else "md5"
    lines = ["# The socket lies in a folder of mode 0700; loopback asks for a generated password."]
    for database in ("all", "replication"):
        lines.append(f"local {database} all trust")
        lines += [f"host {database} all {net} {method}" for net in ("127.0.0.1/32", "::1/128")]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How initdb makes a cluster: what stays part of it, and words about where files go."""

    options: tuple[str, ...] = DEFAULT_OPTIONS
    places: tuple[str, ...] = ()


def make_cluster(account: Account, installation: Installation, data: Path, making: Making) -> None:
    """Make a cluster in a folder that does not exist; `PgdynoError` with initdb's words if not."""
    words = [str(installation.bin_dir / "initdb"), "-D", str(data), f"--username={SUPERUSER}"]
    words += ["--auth=trust", *making.options, *making.places]
    done = account.host.run(
        Command(words=words, user=account.user, environment={"LC_ALL": "C"}),
        deadline_s=_INITDB_DEADLINE_S,
    )
    if done.status != 0:
        said = " · ".join(line.strip() for line in done.error.strip().splitlines()[-3:])
        raise PgdynoError(f"initdb of PostgreSQL {installation.version} failed in '{data}': {said}")
    account.write(data / "pg_hba.conf", access_rules(installation.version_num))
    account.write(data / SETTINGS_FILE, "")
    configuration = account.host.read_text(data / "postgresql.conf")
    if configuration is None:
        raise PgdynoError(f"cannot read '{data / 'postgresql.conf'}'")
    account.write(
        data / "postgresql.conf",
        configuration.rstrip("\n") + f"\n\n# What was given to pgdyno with --set.\n"
        f"include '{SETTINGS_FILE}'\n",
    )
    mark = {"format": _MARKER_FORMAT, "version": installation.version, "options": making.options}
    account.write(data / MARKER, json.dumps(mark) + "\n")


def make_kept_cluster(
    account: Account, installation: Installation, staging: Path, making: Making
) -> None:
    """Make a cluster in `staging` and move it to the folder above, which is to be kept.

    What is interrupted leaves only `staging`, which is ours to remove; the person's folder is never
    emptied. `PG_VERSION` moves last: until then it is not a cluster.
    """
    make_cluster(account, installation, staging, making)
    try:
        for one in sorted(staging.iterdir(), key=lambda one: one.name == "PG_VERSION"):
            one.rename(staging.parent / one.name)
        staging.rmdir()
    except OSError as error:
        raise PgdynoError(
            f"cannot move the new cluster to '{staging.parent}': {error.strerror}"
        ) from error


def options_of(host: Host, data: Path) -> tuple[str, ...]:
    """The initdb options a cluster of ours was made with."""
    text = host.read_text(data / MARKER)
    try:
        options = json.loads(text or "")["options"]
    except (ValueError, KeyError, TypeError) as error:
        raise PgdynoError(f"'{data / MARKER}' is damaged") from error
    return tuple(str(option) for option in options)
