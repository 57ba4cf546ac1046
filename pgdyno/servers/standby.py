"""A standby's files: a base backup of a running primary, made to stream from it.

Primary and standby reach each other by the primary's private socket, so nothing secret is written.
What makes it a standby is written here and not by `pg_basebackup -R`: the program may be newer than
the server, and would then write connection options that the server does not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command
from pgdyno.servers.initdb import Account
from pgdyno.servers.settings import render_settings

_DEADLINE_S = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseBackup:
    """What to copy, and by what. `conninfo` names the standby as its application_name.

    `version_num` is the server's, which need not be the program's.

    `password` is the superuser's, which a copy has as well. `tablespaces` are the primary's folders
    of that kind.
    """

    program: Path
    version_num: int
    conninfo: str
    slot: str | None = None
    password: str | None = field(default=None, repr=False)
    tablespaces: tuple[str, ...] = ()


def make_standby(account: Account, backup: BaseBackup, data: Path) -> None:
    """Copy a running primary's files into a folder that does not exist; `PgdynoError` if not."""
    words = [str(backup.program), f"--pgdata={data}", f"--dbname={backup.conninfo}"]
    words += ["--checkpoint=fast", "-X", "stream", "--no-password"]
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
    _follow(account, backup, data)


def _follow(account: Account, backup: BaseBackup, data: Path) -> None:
    """Make the copy a standby: from 12 on by a signal file and settings, before by recovery.conf.

    Source: PostgreSQL's chapter on standby server settings.
    """
    settings = {"primary_conninfo": backup.conninfo}
    if backup.slot is not None:
        settings["primary_slot_name"] = backup.slot
    if backup.version_num < 120000:
        text = render_settings({"standby_mode": "on", **settings})
        account.write(data / "recovery.conf", text)
        return
    file = data / "postgresql.auto.conf"
    before = account.host.read_text(file)
    if before is None:
        raise PgdynoError(f"cannot read '{file}'")
    account.write(file, before + render_settings(settings))
    account.write(data / "standby.signal", "")


def _escaped(path: str) -> str:
    """A path inside a mapping, where '=' stands between two."""
    return path.replace("=", "\\=")
