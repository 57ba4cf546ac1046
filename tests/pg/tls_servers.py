"""A server with TLS and every way to authenticate, its certificates, and what a session became.

The engine and libpq (psycopg) are asked the same question, so that a test holds one to the other.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.contract import Failure, TransactionType
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision
from tests.pg.engine_runs import end_engine, start_engine, write_plan

HOST = "db.test"
PASSWORD = "a b'c\\ü"
# Role, how its password is stored, what pg_hba.conf wants of it, and over which connections.
ROLES = (
    ("anybody", "scram-sha-256", "host", "scram-sha-256"),
    ("only_tls", "scram-sha-256", "hostssl", "scram-sha-256"),
    ("only_plain", "scram-sha-256", "hostnossl", "scram-sha-256"),
    ("with_md5", "md5", "host", "md5"),
    ("in_clear", "scram-sha-256", "host", "password"),
    ("with_certificate", "scram-sha-256", "hostssl", "cert"),
    ("trusted", "scram-sha-256", "host", "trust"),
)
_WHAT = ("all", "replication")
_START_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority in a folder, and what it signs."""

    folder: Path
    name: str

    @property
    def certificate(self) -> Path:
        """What `sslrootcert` names."""
        return self.folder / f"{self.name}.crt"

    def sign(self, name: str, subject: str, *, extensions: str | None) -> tuple[Path, Path]:
        """A certificate and its key. Without extensions it is of X.509's first version."""
        key, request, certificate = (self.folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        openssl(
            "req", "-new", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={subject}"
        )
        words: list[str | Path] = ["-in", request, "-out", certificate, "-days", "30"]
        if extensions is not None:
            file = self.folder / f"{name}.ext"
            file.write_text(extensions)
            words += ["-extfile", file]
        serial = str(zlib.crc32(name.encode()) + 1)
        signer = ["-CA", self.certificate, "-CAkey", self.folder / f"{self.name}.key"]
        openssl("x509", "-req", *words, *signer, "-set_serial", serial)
        return certificate, key


_NEW_KEY = ("-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def openssl(*words: str | Path) -> None:
    """Run openssl; its words are shown when it fails."""
    command = ["openssl", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr


def new_authority(folder: Path, name: str) -> Authority:
    """An authority whose certificate is its own."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    words = ["-keyout", key, "-out", certificate, "-days", "30", "-subj", f"/CN={name} authority"]
    openssl("req", "-x509", *_NEW_KEY, *words)
    return Authority(folder=folder, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """The server, and where everything is."""

    server: Server
    authority: Authority
    folder: Path

    @property
    def port(self) -> int:
        """Its port on loopback."""
        return int(conninfo_to_dict(self.server.conninfo)["port"])

    def conninfo(self, user: str, **words: str | Path) -> str:
        """As this user, by the name in the certificate, unless told otherwise."""
        usual = {"host": HOST, "hostaddr": "127.0.0.1", "port": self.port}
        parts = {**usual, "user": user, "dbname": "postgres", **words}
        return make_conninfo(**{name: str(value) for name, value in parts.items()})

    def administer(self, *statements: str) -> None:
        """Run statements as superuser over the private socket, then have settings read again."""
        with self.superuser() as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)

    def superuser(self) -> psycopg.Connection[tuple[object, ...]]:
        """A session that may do everything."""
        return psycopg.connect(
            self.server.conninfo, password=self.server.password, autocommit=True, connect_timeout=5
        )

    def present(self, certificate: Path, key: Path) -> None:
        """Let the server show this certificate, and wait until it does."""
        assert self.server.data is not None
        for source, name in ((certificate, "server.crt"), (key, "server.key")):
            put(source.read_text(), self.server.data / name)
        self.administer("ALTER SYSTEM SET ssl = on")

    def present_usual(self) -> None:
        """Let it show the certificate for `HOST` and 127.0.0.1."""
        self.present(self.folder / "usual.crt", self.folder / "usual.key")


def put(text: str, file: Path) -> None:
    """A file of the server's own, that nobody else can read."""
    file.write_text(text)
    owner = file.parent.stat()
    os.chown(file, owner.st_uid, owner.st_gid)
    file.chmod(0o600)


@contextlib.contextmanager
def secured_server(folder: Path) -> Iterator[Secured]:
    """A server with TLS on, roles for every way to authenticate, and certificates in `folder`."""
    authority = new_authority(folder, "right")
    new_authority(folder, "wrong")
    names = f"subjectAltName=DNS:{HOST},IP:127.0.0.1\n"
    authority.sign("usual", "server", extensions=names)
    authority.sign("client", "with_certificate", extensions="extendedKeyUsage=clientAuth\n")
    ledger = Ledger(folder / "ledger")
    with provision(SystemChoice(tcp=True), Local(), ledger=ledger) as server:
        secured = Secured(server=server, authority=authority, folder=folder)
        assert server.data is not None
        put(authority.certificate.read_text(), server.data / "clients.crt")
        rules = "".join(
            f"{kind} all {role} 127.0.0.1/32 {method}\n" for role, _, kind, method in ROLES
        )
        others = "local all all trust\n"
        others += "".join(f"host {what} postgres 127.0.0.1/32 scram-sha-256\n" for what in _WHAT)
        put(rules + others, server.data / "pg_hba.conf")
        literal = PASSWORD.replace("'", "''")
        for role, stored, _, _ in ROLES:
            # Parameters of utility statements cannot be bound.
            with secured.superuser() as connection:
                connection.execute(f"SET password_encryption = '{stored}'")
                connection.execute(
                    f"CREATE ROLE {role} LOGIN PASSWORD E'{literal.replace(chr(92), chr(92) * 2)}'"
                )
        secured.administer("ALTER SYSTEM SET ssl_ca_file = 'clients.crt'")
        secured.present_usual()
        yield secured


@contextlib.contextmanager
def standby_of(secured: Secured) -> Iterator[int]:
    """A standby with everything its primary has; its port."""
    server = secured.server
    assert server.bin_dir is not None and server.data is not None
    owner = server.data.stat()
    folder = Path(tempfile.mkdtemp(prefix="standby-", dir=server.data.parent))
    os.chown(folder, owner.st_uid, owner.st_gid)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {"PGPASSWORD": str(server.password), "LC_ALL": "C", "PATH": os.environ["PATH"]}
    account = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    data = folder / "data"
    words = [server.bin_dir / "pg_basebackup", "-D", data, "-R", "-X", "stream", "-c", "fast"]
    subprocess.run(
        [*words, "-d", server.conninfo],
        env=environment, cwd="/", check=True, timeout=120, capture_output=True, **account,
    )  # fmt: skip
    log = (folder / "log").open("w")
    options = [("port", port), ("listen_addresses", "127.0.0.1")]
    options += [("unix_socket_directories", folder), ("hot_standby", "on")]
    settings = [word for name, value in options for word in ("-c", f"{name}={value}")]
    process = subprocess.Popen(
        [server.bin_dir / "postgres", "-D", data, *settings],
        env=environment, cwd="/", stdout=log, stderr=log, **account,
    )  # fmt: skip
    try:
        wait_until_open(make_conninfo(server.conninfo, port=port), server.password)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_open(conninfo: str, password: str | None) -> None:
    """Until a session can be opened."""
    deadline = time.monotonic() + _START_DEADLINE_S
    while True:
        try:
            psycopg.connect(conninfo, password=password, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the standby never let anybody in"
            time.sleep(0.1)


@contextlib.contextmanager
def relay(secured: Secured, *, protocols: list[str], cut: int | None = None) -> Iterator[int]:
    """A relay that takes TLS from the first byte and talks to the server in the clear; its port.

    It agrees on one of `protocols`. With `cut` it lets that many bytes of its own out and closes.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secured.folder / "usual.crt", secured.folder / "usual.key")
    if protocols:
        context.set_alpn_protocols(protocols)
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.settimeout(_START_DEADLINE_S)
            thread = threading.Thread(
                target=_relay_one, args=(context, client, secured.port, cut), daemon=True
            )
            thread.start()
            threads.append(thread)

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [accepting, *threads]:
            thread.join(timeout=_START_DEADLINE_S)


def _relay_one(context: ssl.SSLContext, client: socket.socket, port: int, cut: int | None) -> None:
    """Carry one connection until either side closes it, or only its first bytes."""
    with client, contextlib.suppress(OSError):
        if cut is not None:
            return _cut_off(context, client, cut)
        with socket.create_connection(("127.0.0.1", port)) as server:
            _carry(context, client, server)


def _cut_off(context: ssl.SSLContext, client: socket.socket, cut: int) -> None:
    """Send the first bytes of the handshake's answer, and no more."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(client.recv(65536))
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    client.sendall(outgoing.read()[:cut])
    client.shutdown(socket.SHUT_WR)


def _carry(context: ssl.SSLContext, client: socket.socket, server: socket.socket) -> None:
    """Open what the client sends, seal what the server answers."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        ready = select.select([client, server], [], [], _START_DEADLINE_S)[0]
        if client in ready:
            received = client.recv(65536)
            if not received:
                return
            incoming.write(received)
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                while opened := tls.read(65536):
                    server.sendall(opened)
        if server in ready:
            answered = server.recv(65536)
            if not answered:
                return
            tls.write(answered)
        client.sendall(outgoing.read())
        if not ready:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Became:
    """What a session became: `tls`, `plain` or `refused`, and what was said."""

    what: str
    said: str = ""


def with_engine(
    folder: Path, conninfo: str, *, environment: Mapping[str, str] | None = None, **words: str
) -> Became:
    """What the engine's sessions became; all of them became the same."""
    question = "SELECT ssl::text AS answer FROM pg_stat_ssl WHERE pid = pg_backend_pid();"
    yes, no, said = answers(folder, conninfo, question, environment=environment, **words)
    if said:
        return Became(what="refused", said=said)
    assert yes == 0 or no == 0
    return Became(what="tls" if yes else "plain")


def answers(
    folder: Path,
    conninfo: str,
    question: str,
    *,
    environment: Mapping[str, str] | None = None,
    **words: str,
) -> tuple[int, int, str]:
    """How many transactions were answered `true`, how many not; and the error, if there was one."""
    kind = TransactionType(
        name="t", weight=1, source="t.sql", script=question + "\n",
        failure=Failure(column="answer", success="true"),
    )  # fmt: skip
    environment = {"PGPASSWORD": PASSWORD, "HOME": str(folder)} | dict(environment or {})
    with tempfile.TemporaryDirectory(dir=folder) as place:
        plan = write_plan(
            Path(place), conninfo, [kind],
            clients=3, transactions_per_client=2, session_settings=[], **words,
        )  # fmt: skip
        run = end_engine(start_engine("run", plan, environment=environment), Path(place))
        if run.status != 0:
            return 0, 0, run.error
        counters = run.summary.measurement
        assert counters.committed + counters.failed.other == 6
        return counters.committed, counters.failed.other, ""


def with_libpq(folder: Path, conninfo: str) -> Became:
    """What libpq's session became."""
    try:
        with psycopg.connect(conninfo, password=PASSWORD, connect_timeout=10) as connection:
            query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            encrypted = connection.execute(query).fetchone() == (True,)
            return Became(what="tls" if encrypted else "plain")
    except psycopg.Error as error:
        return Became(what="refused", said=str(error))
