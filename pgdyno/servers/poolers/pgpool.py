"""pgpool-II: a pooler that sends reads to any server and writes to the primary.

Each client has a process of its own while it is connected, so `num_init_children` is how many there
can be; more wait in the queue of the socket and are told nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Final

from psycopg.conninfo import make_conninfo

from pgdyno.servers.poolers.base import LOOPBACK, Capacity, Limit, Plan, setting_of
from pgdyno.servers.poolers.facts import defaults_of, facts_of

CONFIGURATION: Final = "pgpool.conf"
_PASSWORDS: Final = "pool_passwd"
_SOCKETS_RENAMED: Final = (4, 4)
_ON: Final = frozenset({"on", "true", "yes", "1"})
_OFF: Final = frozenset({"off", "false", "no", "0"})


class Pgpool:
    """pgpool-II in streaming replication mode."""

    facts = facts_of("pgpool")
    # Fast: its children end with it, and its shared memory is given back.
    death_signal = signal.SIGINT

    def files(self, plan: Plan) -> dict[str, str]:
        """Its configuration, and files that it wants to be there."""
        rules = "local all all trust\n"
        if plan.tcp:
            rules += f"host all all {LOOPBACK}/32 scram-sha-256\n"
        passwords = "" if plan.password is None else f"{plan.user}:TEXT{plan.password}\n"
        lines = [f"{name} = {_quoted(value)}" for name, value in self._settings(plan).items()]
        return {
            CONFIGURATION: "\n".join(lines) + "\n",
            "pcp.conf": "",
            "pool_hba.conf": rules,
            _PASSWORDS: passwords,
        }

    def _settings(self, plan: Plan) -> dict[str, str]:
        """All settings: ours, those given where the person says nothing, the person's."""
        folder = str(plan.folder)
        renamed = plan.program.version >= _SOCKETS_RENAMED
        found = {
            "listen_addresses": LOOPBACK if plan.tcp else "",
            "port": str(plan.port),
            "unix_socket_directories" if renamed else "socket_dir": folder,
            "pcp_listen_addresses": "",
            "pcp_socket_dir": folder,
            "wd_ipc_socket_dir": folder,
            "pid_file_name": f"{folder}/pgpool.pid",
            "logdir": folder,
            "work_dir": folder,
            "enable_pool_hba": "on" if plan.tcp else "off",
            "pool_passwd": _PASSWORDS,
            "sr_check_user": plan.user,
            "health_check_user": plan.user,
            **self.facts.given,
        }
        for number, backend in enumerate(plan.backends):
            found[f"backend_hostname{number}"] = backend.host
            found[f"backend_port{number}"] = str(backend.port)
            found[f"backend_application_name{number}"] = backend.role
            found |= {f"{name}{number}": value for name, value in self.facts.given_each.items()}
        return found | dict(plan.settings)

    def words(self, plan: Plan) -> list[str]:
        """In the foreground, forgetting what an earlier one thought of the servers."""
        return [*_words(plan), "-n", "-D"]

    def words_to_judge(self, plan: Plan) -> list[str]:
        """A command that reads the configuration and ends: to stop one that does not run."""
        return [*_words(plan), "stop"]

    def capacity(self, plan: Plan) -> Capacity:
        """One client a process; each keeps `max_pool` connections to every server."""
        defaults = defaults_of(self.facts, plan.program.version)
        children = setting_of(plan, defaults, "num_init_children")
        reserved = setting_of(plan, defaults, "reserved_connections")
        clients = Limit(count=children - reserved, setting="num_init_children", restart=True)
        return Capacity(
            kind="pgpool",
            version=plan.program.shown,
            clients=clients,
            beyond="refused" if reserved else "wait",
            active=clients,
            to_each_server=children,
            worst=children * setting_of(plan, defaults, "max_pool"),
            observers=1,
            backends=tuple(backend.role for backend in plan.backends),
        )

    def statistics(self, plan: Plan) -> str:
        """It answers SHOW commands to any client."""
        return make_conninfo(
            host=LOOPBACK if plan.tcp else str(plan.folder),
            port=plan.port,
            user=plan.user,
            dbname=plan.database,
        )


def differences(settings: Mapping[str, str], in_force: Mapping[str, str]) -> list[str]:
    """Values that pgpool took for others, one line each; `in_force` as it shows them. Pure.

    >>> differences({"load_balance_mode": "maybe"}, {"load_balance_mode": "off"})
    ["pgpool takes setting 'load_balance_mode' = 'maybe' for 'off'"]
    """
    found = []
    for name, value in settings.items():
        shown = in_force.get(name, value)
        is_switch = shown in _ON | _OFF and shown.isalpha()
        if is_switch:
            differs = (value.lower() in _ON) != (shown in _ON) or value.lower() not in _ON | _OFF
        else:
            differs = value.isdigit() and shown.isdigit() and int(value) != int(shown)
        if differs:
            found.append(f"pgpool takes setting '{name}' = '{value}' for '{shown}'")
    return found


def _words(plan: Plan) -> list[str]:
    folder = plan.folder
    files = {"-f": CONFIGURATION, "-F": "pcp.conf", "-a": "pool_hba.conf"}
    words = [str(plan.program.path)]
    return words + [part for flag, name in files.items() for part in (flag, str(folder / name))]


def _quoted(value: str) -> str:
    """A value as its configuration wants it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
