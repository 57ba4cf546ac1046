"""HAProxy: a balancer that passes bytes on; each connection belongs to one server to its end.

It stands before the standbys, where there are any: a port for reading.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

from pgdyno.servers.poolers.base import LOOPBACK, Backend, Capacity, Limit, Plan
from pgdyno.servers.poolers.facts import facts_of

CONFIGURATION: Final = "haproxy.cfg"
SECTION: Final = "pgdyno"
STATISTICS: Final = "statistics.sock"
_GLOBAL, _SERVER = "global.", "server."


class Haproxy:
    """HAProxy with one section `listen`."""

    facts = facts_of("haproxy")
    death_signal = signal.SIGKILL

    def files(self, plan: Plan) -> dict[str, str]:
        """Its configuration."""
        return {CONFIGURATION: "\n".join(line for line, _ in self.lines(plan)) + "\n"}

    def lines(self, plan: Plan) -> Iterator[tuple[str, str | None]]:
        """Lines of its configuration, each with the person's setting that it comes from."""
        given = {name: value.format(user=plan.user) for name, value in self.facts.given.items()}
        settings = given | dict(plan.settings)
        socket = plan.folder / STATISTICS
        yield "global", None
        yield f"  stats socket {socket} mode 600 level operator", None
        yield "  log stdout format raw local0", None
        yield from self._of(plan, settings, _GLOBAL)
        yield f"listen {SECTION}", None
        yield "  mode tcp", None
        by_socket = f"unix@{plan.folder / f'.s.PGSQL.{plan.port}'} mode 600"
        yield f"  bind {f'{LOOPBACK}:{plan.port}' if plan.tcp else by_socket}", None
        yield from self._of(plan, settings, "")
        options = [(n.removeprefix(_SERVER), v) for n, v in settings.items() if _is(n, _SERVER)]
        for name, value in options:
            # A line for each, so that what is wrong with one has its own number.
            line = f"  default-server {name} {value}".rstrip()
            yield line, _SERVER + name if _SERVER + name in plan.settings else None
        for backend in plan.backends:
            yield f"  server {backend.role} {_address(backend)}", None

    def _of(
        self, plan: Plan, settings: dict[str, str], prefix: str
    ) -> Iterator[tuple[str, str | None]]:
        """Lines of one section."""
        for name, value in settings.items():
            if _is(name, prefix):
                line = f"  {name.removeprefix(prefix)} {value}".rstrip()
                yield line, name if name in plan.settings else None

    def words(self, plan: Plan) -> list[str]:
        """One process in the foreground."""
        return [str(plan.program.path), "-db", "-f", str(plan.folder / CONFIGURATION)]

    def words_to_judge(self, plan: Plan) -> list[str]:
        """A command that reads the configuration and ends."""
        return [str(plan.program.path), "-c", "-f", str(plan.folder / CONFIGURATION)]

    def capacity(self, plan: Plan) -> Capacity:
        """Connections by `maxconn`; without one by the files it may open, so that many fit."""
        limits = [
            Limit(count=int(plan.settings[name]), setting=name, restart=True)
            for name in ("maxconn", "global.maxconn")
            if plan.settings.get(name, "").isdigit()
        ]
        clients = min(limits, key=lambda limit: limit.count, default=None)
        each = plan.settings.get("server.maxconn", "")
        served = (
            Limit(count=int(each) * len(plan.backends), setting="server.maxconn", restart=True)
            if each.isdigit() and int(each) > 0
            else clients
        )
        return Capacity(
            kind="haproxy",
            version=plan.program.shown,
            clients=clients,
            beyond="wait",
            active=served,
            to_each_server=int(each) if each.isdigit() and int(each) > 0 else None,
            backends=tuple(backend.role for backend in plan.backends),
        )

    def statistics(self, plan: Plan) -> str:
        """The socket that takes its commands."""
        return str(plan.folder / STATISTICS)


def _is(name: str, prefix: str) -> bool:
    """Whether a setting belongs to the section whose settings begin so; none: `listen`."""
    if prefix:
        return name.startswith(prefix)
    return not name.startswith((_GLOBAL, _SERVER))


def _address(backend: Backend) -> str:
    if backend.by_socket:
        return f"unix@{backend.host}/.s.PGSQL.{backend.port}"
    return f"{backend.host}:{backend.port}"
