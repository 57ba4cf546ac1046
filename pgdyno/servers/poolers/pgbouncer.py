"""PgBouncer: a pooler in front of one server; one thread.

A client keeps a server connection for its session, a transaction or a statement, as its mode says.
"""

from __future__ import annotations

import signal
from typing import Final

from psycopg.conninfo import make_conninfo

from pgdyno.servers.poolers.base import LOOPBACK, Capacity, Limit, Mode, Plan, setting_of
from pgdyno.servers.poolers.facts import defaults_of, facts_of

CONFIGURATION: Final = "pgbouncer.ini"
CONSOLE: Final = "pgbouncer"
"""The database that is its console."""


class Pgbouncer:
    """PgBouncer, its console open to the load's account."""

    facts = facts_of("pgbouncer")
    death_signal = signal.SIGKILL

    def files(self, plan: Plan) -> dict[str, str]:
        """Its configuration, and who may connect with what password."""
        folder = plan.folder
        (backend,) = plan.backends
        settings = {
            "listen_addr": LOOPBACK if plan.tcp else "",
            "listen_port": str(plan.port),
            "unix_socket_dir": "" if plan.tcp else str(folder),
            "auth_type": "trust" if plan.password is None else "scram-sha-256",
            "auth_file": str(folder / "userlist.txt"),
            "admin_users": plan.user,
            "pool_mode": self._mode(plan),
            **self.facts.given,
            **plan.settings,
        }
        lines = ["[databases]", f"* = host={backend.host} port={backend.port}", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in settings.items()]
        password = (plan.password or "").replace('"', '""')
        return {
            CONFIGURATION: "\n".join(lines) + "\n",
            "userlist.txt": f'"{plan.user}" "{password}"\n',
        }

    def words(self, plan: Plan) -> list[str]:
        """In the foreground."""
        return [str(plan.program.path), str(plan.folder / CONFIGURATION)]

    def capacity(self, plan: Plan) -> Capacity:
        """Clients by `max_client_conn`, server connections by the smallest of its pools."""
        version = plan.program.version
        defaults = defaults_of(self.facts, version)
        pool = setting_of(plan, defaults, "default_pool_size") + setting_of(
            plan, defaults, "reserve_pool_size"
        )
        caps = {"default_pool_size": pool}
        for name in ("max_db_connections", "max_user_connections"):
            if (count := setting_of(plan, defaults, name)) > 0:
                caps[name] = count
        narrowest = min(caps, key=lambda name: caps[name])
        mode = self._mode(plan)
        return Capacity(
            kind="pgbouncer",
            version=plan.program.shown,
            clients=Limit(
                count=setting_of(plan, defaults, "max_client_conn"),
                setting="max_client_conn",
                restart=False,
            ),
            active=Limit(count=caps[narrowest], setting=narrowest, restart=False),
            keeps=mode == "session",
            to_each_server=caps[narrowest],
            worst=caps[narrowest],
            # It lets its console in beyond the limit, and counts it.
            observers=1,
            mode=mode,
            prepared=None if mode == "session" else self._no_prepared(plan, defaults),
            backends=tuple(backend.role for backend in plan.backends),
        )

    def statistics(self, plan: Plan) -> str:
        """Its console."""
        return make_conninfo(
            host=LOOPBACK if plan.tcp else str(plan.folder),
            port=plan.port,
            user=plan.user,
            dbname=CONSOLE,
        )

    def _mode(self, plan: Plan) -> Mode:
        return plan.mode or "session"

    def _no_prepared(self, plan: Plan, defaults: dict[str, str]) -> str | None:
        """Why a named prepared statement is lost between two transactions."""
        first = tuple(self.facts.since["prepared_statements"])
        if plan.program.version < first:
            needed = ".".join(str(part) for part in first)
            return f"it knows nothing of prepared statements before {needed}"
        if setting_of(plan, defaults, "max_prepared_statements") == 0:
            return "its max_prepared_statements is 0"
        return None
