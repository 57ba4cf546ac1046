"""A person's own server, by `--dsn`: a conninfo string or a URI, tried before anything else.

What libpq fills in by itself (PG* variables, a service file, a password file) is read back from the
connection, so that the engine, which is not libpq, is told all of it. The password is taken out
and travels by environment.
"""

from __future__ import annotations

import ipaddress
import os
import re

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.errors import InvalidInput, PgdynoError, nearest_hint
from pgdyno.hosts.base import Host
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import major_version

OLDEST_VERSION_NUM = 90600
CONNECT_DEADLINE_S = 10.0
# Read back from elsewhere, meaningless to the engine, or secret.
_LEFT_OUT = (
    *("password", "sslpassword", "passfile", "service", "servicefile"),
    *("client_encoding", "connect_timeout"),
)

# What libpq says, what it means, what helps. The first that matches counts; {place} is filled in.
_CAUSES = (
    (r"could not translate host name|Name or service not known", "the host of {place} is unknown",
     "check the spelling of the host name"),
    (r"Connection refused|No such file or directory", "nothing listens on {place}",
     "start the server, or check host and port"),
    (r"timeout expired|timed out", "{place} did not answer in time",
     "a firewall between, or the wrong host?"),
    (r"password authentication failed", "{place} refused the password",
     "check user and password; a password is given in the dsn, PGPASSWORD or ~/.pgpass"),
    (r"no password supplied|fe_sendauth", "{place} wants a password",
     "give it in the dsn, PGPASSWORD or ~/.pgpass"),
    (r"[Pp]eer authentication failed|[Ii]dent authentication failed",
     "{place} lets this account of the machine in under its own name only",
     "connect by host=localhost with a password, or change pg_hba.conf"),
    (r"no pg_hba.conf entry", "{place} has no rule that lets us in",
     "add a line for this user, database and address to pg_hba.conf"),
    (r"role \".*\" does not exist", "{place} does not know the user",
     "give another user, or make it with createuser"),
    (r"too many clients|remaining connection slots", "{place} has no connection left",
     "raise max_connections, or end other sessions"),
    (r"SSL|certificate", "{place} and we do not agree on TLS", "check sslmode and sslrootcert"),
)  # fmt: skip


def connect_remote(dsn: str, host: Host, *, deadline_s: float = CONNECT_DEADLINE_S) -> Server:
    """Connect once and describe the server. Raises `InvalidInput` for a dsn that cannot be read,
    `PgdynoError` with the likely cause when there is no connection.
    """
    parameters = parse_dsn(dsn)
    timeout_s = max(2, round(deadline_s))  # libpq takes no less than 2.
    try:
        with psycopg.connect(make_conninfo(**parameters), connect_timeout=timeout_s) as connection:
            info = connection.info
            found = Server(
                conninfo=_complete(info),
                password=info.password or None,
                version_num=info.server_version,
                version=(info.parameter_status("server_version") or "").split(" ")[0],
                host_name=host.name if is_here(info.host, info.hostaddr) else info.host,
                private=False,
            )
    except psycopg.OperationalError as error:
        raise _explained(parameters, str(error), timeout_s) from error
    if found.version_num < OLDEST_VERSION_NUM:
        raise PgdynoError(
            f"the server is PostgreSQL {found.version}; "
            f"{major_version(OLDEST_VERSION_NUM)} is the oldest that can be measured"
        )
    return found


def parse_dsn(dsn: str) -> dict[str, str]:
    """Parameters of a conninfo or URI; raises `InvalidInput` without repeating any secret."""
    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except psycopg.ProgrammingError as error:
        said = str(error).strip()
        if "invalid connection option" not in said and "invalid URI query parameter" not in said:
            said = re.sub(r'"[^"]*"', '"…"', said)  # It may quote a password.
        raise InvalidInput(
            f"the dsn cannot be read: {said}",
            hint="write it as 'host=db port=5432 dbname=bench user=me' "
            "or postgresql://me@db:5432/bench",
        ) from error
    if "@" in parameters.get("host", ""):
        # The part before it belongs to a password, so nothing of it is repeated.
        raise InvalidInput(
            "the dsn cannot be read: its host contains an '@'",
            hint="write an '@' inside a password as %40: postgresql://me@db:5432/bench",
        )
    return parameters


def without_password(dsn: str) -> str:
    """The same dsn as conninfo, fit to be stored and shown.

    >>> without_password("postgresql://me:hush@db/bench")
    'user=me dbname=bench host=db'
    """
    return make_conninfo(**{k: v for k, v in parse_dsn(dsn).items() if k != "password"})


def take_password(dsn: str) -> str:
    """The dsn without its password, which moves to PGPASSWORD of this process.

    From there libpq and the engine find it, and no file ever holds it. Raises `InvalidInput` for a
    dsn that cannot be read, or holds a secret that no variable can carry.
    """
    parameters = parse_dsn(dsn)
    if parameters.get("sslpassword"):
        raise InvalidInput(
            "the dsn holds an sslpassword, which cannot be kept out of files",
            hint="use a client key without a passphrase, readable by you alone",
        )
    password = parameters.get("password")
    if password is None:
        return dsn
    os.environ["PGPASSWORD"] = password
    return without_password(dsn)


def is_here(name: str, address: str) -> bool:
    """Whether a connection to this host name and address stays on this machine, as far as known.

    >>> is_here("/run/postgresql", ""), is_here("db", "127.0.0.1"), is_here("db", "10.0.0.7")
    (True, True, False)
    """
    if not name or name.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(address or name).is_loopback
    except ValueError:
        return name == "localhost"


def explain(said: str, place: str) -> tuple[str, str] | None:
    """Likely cause and help for what libpq said; None: not known.

    >>> explain("connection failed: Connection refused", "db:5432")
    ('nothing listens on db:5432', 'start the server, or check host and port')
    """
    for pattern, meaning, help_text in _CAUSES:
        if re.search(pattern, said):
            return meaning.format(place=place), help_text
    return None


def _complete(info: psycopg.ConnectionInfo) -> str:
    """Conninfo with everything that was in force, without the password."""
    parameters = {k: v for k, v in info.get_parameters().items() if k not in _LEFT_OUT}
    parameters.update(host=info.host, port=str(info.port), user=info.user, dbname=info.dbname)
    if "," in parameters.get("hostaddr", ""):
        del parameters["hostaddr"]  # Of several hosts the one that answered is measured.
    return make_conninfo(**parameters)


def _explained(parameters: dict[str, str], said: str, timeout_s: int) -> PgdynoError:
    """The error for a connection that failed."""
    missing = re.search(r'database "(.*)" does not exist', said)
    if missing is not None:
        name = missing.group(1)
        return PgdynoError(
            f"database '{name}' does not exist on {_place(parameters)}",
            hint=_database_hint(parameters, name, timeout_s),
        )
    cause = explain(said, _place(parameters))
    detail = " ".join(said.removeprefix("connection failed: ").split())
    if cause is None:
        return PgdynoError(f"no connection to {_place(parameters)}: {detail}")
    return PgdynoError(f"{cause[0]}: {detail}", hint=cause[1])


def _place(parameters: dict[str, str]) -> str:
    """How a person names the server: host:port."""
    host = parameters.get("host") or parameters.get("hostaddr") or "the default host"
    port = parameters.get("port")
    return f"{host}:{port}" if port else host


def _database_hint(parameters: dict[str, str], name: str, timeout_s: int) -> str:
    """Nearest existing databases, where we may look, and how to make it."""
    make = f"createdb '{name}' makes it"
    try:
        with psycopg.connect(
            make_conninfo(**{**parameters, "dbname": "postgres"}), connect_timeout=timeout_s
        ) as connection:
            rows = connection.execute("SELECT datname FROM pg_database WHERE datallowconn")
            return f"{nearest_hint(name, [str(row[0]) for row in rows])}; {make}"
    except psycopg.Error:
        return make
