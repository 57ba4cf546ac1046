"""As whom a private server runs: PostgreSQL refuses to run as root, so root steps down.

Root uses the account `postgres` where there is one, else `nobody`; anybody else stays who they are.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host

_ACCOUNTS = ("postgres", "nobody")
_TEST_DEADLINE_S = 10.0


def server_user() -> str | None:
    """Account a private server runs as; None: our own. Raises `PgdynoError` where root has none."""
    if os.geteuid() != 0:
        return None
    for account in _ACCOUNTS:
        try:
            if pwd.getpwnam(account).pw_uid != 0:
                return account
        except KeyError:
            continue
    raise PgdynoError(
        "a server cannot run as root, and there is no account 'postgres' or 'nobody'",
        hint="make one: useradd --system postgres",
    )


def can(host: Host, user: str | None, ability: str, path: Path) -> bool:
    """Whether `user` has an ability of test(1) on a path: `-r`, `-w`, `-x` or `-d`."""
    command = Command(words=["test", ability, str(path)], user=user)
    return host.run(command, deadline_s=_TEST_DEADLINE_S).status == 0
