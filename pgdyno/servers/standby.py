"""A standby's files: a base backup of a running primary, made to stream from it.

Primary and standby reach each other by the primary's private socket, so nothing secret is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command
from pgdyno.servers.initdb import Account

_DEADLINE_S = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseBackup:
    """What to copy, and by what. `conninfo` names the standby as its application_name.

    `password` is the superuser's, which a copy has as well. `tablespaces` are the primary's folders
    of that kind.
    """

    program: Path
    conninfo: str
    slot: str | None = None
    password: str | None = field(default=None, repr=False)
    tablespaces: tuple[str, ...] = ()


def make_standby(account: Account, backup: BaseBackup, data: Path) -> None:
    """Copy a running primary's files into a folder that does not exist; `PgdynoError` if not."""
    words = [str(backup.program), f"--pgdata={data}", f"--dbname={backup.conninfo}"]
    words += ["--write-recovery-conf", "--checkpoint=fast", "-X", "stream", "--no-password"]
    if backup.slot is not None:
        words.append(f"--slot={backup.slot}")
    for number, theirs in enumerate(backup.tablespaces, start=1):
        ours = data.parent / f"tablespace-{number}"
        words.append(f"--tablespace-mapping={_escaped(theirs)}={_escaped(str(ours))}")
    done = account.host.run(
        Command(words=words, user=account.user, environment={"LC_ALL": "C"}),
        deadline_s=_DEADLINE_S,
    )
    if done.status != 0:
        said = (done.error.strip().splitlines() or [f"status {done.status}"])[-1]
        raise PgdynoError(f"the base backup for a standby failed: {said}")


def _escaped(path: str) -> str:
    """A path inside a mapping, where '=' stands between two."""
    return path.replace("=", "\\=")
