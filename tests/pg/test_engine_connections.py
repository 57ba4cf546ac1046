"""How the engine connects: every sslmode, every authentication, several hosts; as libpq does."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.pg.commands import Place
from tests.pg.engine_runs import assert_adds_up, end_engine, start_engine, write_plan
from tests.pg.tls_servers import (
    HOST,
    PASSWORD,
    Became,
    Secured,
    answers,
    openssl,
    relay,
    secured_server,
    standby_of,
    with_engine,
    with_libpq,
)

pytestmark = pytest.mark.pg

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
REACTORS = ("io_uring", "epoll")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_server(tmp_path_factory.mktemp("tls")) as server:
        yield server


@pytest.fixture(scope="module")
def standby(secured: Secured) -> Iterator[int]:
    with standby_of(secured) as port:
        yield port


def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def assert_both(secured: Secured, conninfo: str, what: str, **words: str) -> Became:
    """The engine's sessions became this, and libpq's did, too."""
    engine = with_engine(secured.folder, conninfo, **words)
    libpq = with_libpq(secured.folder, conninfo)
    assert (engine.what, libpq.what) == (what, what), (engine.said, libpq.said)
    return engine


@pytest.mark.parametrize("reactor", REACTORS)
@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("anybody", ("plain", "plain", "tls", "tls", "tls", "tls")),
        ("only_tls", ("refused", "tls", "tls", "tls", "tls", "tls")),
        ("only_plain", ("plain", "plain", "plain", "refused", "refused", "refused")),
    ],
)
def test_every_sslmode_with_a_server_that_encrypts(
    secured: Secured, user: str, expected: tuple[str, ...], reactor: str
) -> None:
    for mode, what in zip(MODES, expected, strict=True):
        conninfo = secured.conninfo(user, sslmode=mode, sslrootcert=secured.authority.certificate)
        assert_both(secured, conninfo, what, reactor=reactor)


@pytest.mark.parametrize("reactor", REACTORS)
def test_every_sslmode_with_a_server_that_does_not(secured: Secured, reactor: str) -> None:
    secured.administer("ALTER SYSTEM SET ssl = off")
    try:
        for mode in MODES:
            what = "plain" if mode in ("disable", "allow", "prefer") else "refused"
            root = secured.authority.certificate
            conninfo = secured.conninfo("anybody", sslmode=mode, sslrootcert=root)
            engine = assert_both(secured, conninfo, what, reactor=reactor)
            if what == "refused":
                assert "the server does not use TLS" in engine.said
                assert "hint: set ssl = on in the server" in engine.said
    finally:
        secured.present_usual()


def test_a_socket_is_never_encrypted(secured: Secured) -> None:
    with secured.superuser() as connection:
        row = connection.execute("SHOW unix_socket_directories").fetchone()
    assert row is not None
    root = str(secured.authority.certificate)
    conninfo = make_conninfo(
        host=str(row[0]), port=secured.port, user="anybody", dbname="postgres",
        sslmode="verify-full", sslrootcert=root,
    )  # fmt: skip
    owner = Path(str(secured.server.data)).owner()
    assert_both(secured, make_conninfo(conninfo, requirepeer=owner), "plain")
    engine = assert_both(secured, make_conninfo(conninfo, requirepeer="daemon"), "refused")
    assert "belongs to another user than requirepeer" in engine.said


@pytest.mark.parametrize("reactor", REACTORS)
def test_the_name_counts_in_verify_full_only(secured: Secured, reactor: str) -> None:
    root = secured.authority.certificate
    for mode, what in (("verify-ca", "tls"), ("verify-full", "refused")):
        conninfo = secured.conninfo("anybody", host="other.test", sslmode=mode, sslrootcert=root)
        engine = assert_both(secured, conninfo, what, reactor=reactor)
    assert f"is for '{HOST}', '127.0.0.1', not for host 'other.test'" in engine.said
    by_number = secured.conninfo(
        "anybody", host="127.0.0.1", sslmode="verify-full", sslrootcert=root
    )
    assert_both(secured, by_number, "tls", reactor=reactor)


def test_the_authority_counts_where_it_is_named(secured: Secured) -> None:
    wrong = secured.folder / "wrong.crt"
    for mode in ("require", "verify-ca", "verify-full"):
        conninfo = secured.conninfo("anybody", sslmode=mode, sslrootcert=wrong)
        engine = assert_both(secured, conninfo, "refused")
        assert "is not from an authority in sslrootcert" in engine.said
        assert "hint: sslrootcert must name the authority" in engine.said
    # As libpq: prefer then goes on in the clear, and without a root file anybody is trusted.
    prefer = secured.conninfo("anybody", sslmode="prefer", sslrootcert=wrong)
    assert_both(secured, prefer, "plain")
    assert_both(secured, secured.conninfo("anybody", sslmode="require"), "tls")
    missing = secured.conninfo("anybody", sslmode="verify-ca", sslrootcert="/nowhere.crt")
    engine = assert_both(secured, missing, "refused")
    assert "/nowhere.crt is not there" in engine.said


@pytest.mark.parametrize("kind", ["first version", "of its own", "wildcard", "expired"])
def test_certificates_as_people_make_them(secured: Secured, kind: str) -> None:
    folder, authority = secured.folder, secured.authority
    root, what = authority.certificate, "tls"
    if kind == "first version":
        shown = authority.sign("v1", HOST, extensions=None)
    elif kind == "wildcard":
        shown = authority.sign("wild", "x", extensions="subjectAltName=DNS:*.test\n")
    elif kind == "expired":
        shown = (folder / "old.crt", folder / "usual.key")
        words = ["-in", folder / "usual.csr", "-out", shown[0], "-days", "-1", "-set_serial", "7"]
        signer = ["-CA", authority.certificate, "-CAkey", folder / "right.key"]
        openssl("x509", "-req", *words, *signer)
        what = "refused"
    else:
        shown = (folder / "own.crt", folder / "own.key")
        words = ["-keyout", shown[1], "-out", shown[0], "-days", "30", "-subj", f"/CN={HOST}"]
        openssl("req", "-x509", "-nodes", "-newkey", "rsa:2048", *words)
        root = shown[0]
    secured.present(*shown)
    try:
        conninfo = secured.conninfo("anybody", sslmode="verify-full", sslrootcert=root)
        assert_both(secured, conninfo, what)
        other = secured.conninfo("anybody", sslmode="verify-ca", sslrootcert=folder / "wrong.crt")
        assert_both(secured, other, "refused")
    finally:
        secured.present_usual()


@pytest.mark.parametrize("reactor", REACTORS)
def test_client_certificates(secured: Secured, reactor: str) -> None:
    root = secured.authority.certificate
    words = {"sslmode": "verify-full", "sslrootcert": root}
    own = {"sslcert": secured.folder / "client.crt", "sslkey": secured.folder / "client.key"}
    (secured.folder / "client.key").chmod(0o600)
    conninfo = secured.conninfo("with_certificate", **words, **own)
    assert_both(secured, conninfo, "tls", reactor=reactor)
    without = assert_both(secured, secured.conninfo("with_certificate", **words), "refused")
    assert "valid client certificate" in without.said
    assert "hint: name your certificate and key" in without.said
    # A certificate nobody there trusts.
    own = {"sslcert": secured.folder / "wrong.crt", "sslkey": secured.folder / "wrong.key"}
    (secured.folder / "wrong.key").chmod(0o600)
    assert_both(secured, secured.conninfo("with_certificate", **words, **own), "refused")
    (secured.folder / "wrong.key").chmod(0o644)
    open_to_others = with_engine(secured.folder, secured.conninfo("anybody", **words, **own))
    assert "can be read by others" in open_to_others.said


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_versions_of_tls(secured: Secured, version: str) -> None:
    words = {"ssl_min_protocol_version": version, "ssl_max_protocol_version": version}
    root = secured.authority.certificate
    conninfo = secured.conninfo("anybody", sslmode="verify-full", sslrootcert=root, **words)
    question = (
        f"SELECT (version = '{version}')::text AS answer"
        " FROM pg_stat_ssl WHERE pid = pg_backend_pid();"
    )
    assert answers(secured.folder, conninfo, question) == (6, 0, "")


def test_scram_is_bound_to_tls(secured: Secured) -> None:
    for user, words, what in (
        ("anybody", {"sslmode": "require"}, "tls"),
        ("anybody", {"sslmode": "disable"}, "refused"),
        ("with_md5", {"sslmode": "require"}, "refused"),
        ("in_clear", {"sslmode": "require"}, "refused"),
        ("trusted", {"sslmode": "require"}, "refused"),
    ):
        conninfo = secured.conninfo(user, channel_binding="require", **words)
        engine = assert_both(secured, conninfo, what)
        assert what == "tls" or "channel_binding=require" in engine.said
    unbound = secured.conninfo("anybody", channel_binding="disable", sslmode="require")
    assert_both(secured, unbound, "tls")


@pytest.mark.parametrize("user", ["anybody", "with_md5", "in_clear", "trusted"])
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_every_authentication(secured: Secured, user: str, mode: str) -> None:
    what = "plain" if mode == "disable" else "tls"
    assert_both(secured, secured.conninfo(user, sslmode=mode), what)


def test_require_auth(secured: Secured) -> None:
    for user, methods, allowed in (
        ("anybody", "scram-sha-256", True),
        ("anybody", "md5,password", False),
        ("with_md5", "md5", True),
        ("with_md5", "!md5", False),
        ("in_clear", "!scram-sha-256", True),
        ("trusted", "none", True),
        ("trusted", "!none", False),
    ):
        conninfo = secured.conninfo(user, sslmode="disable", require_auth=methods)
        assert_both(secured, conninfo, "plain" if allowed else "refused")


def test_a_wrong_password_is_told(secured: Secured) -> None:
    wrong = {"PGPASSWORD": "guess"}
    engine = with_engine(secured.folder, secured.conninfo("anybody"), environment=wrong)
    assert 'password authentication failed for user "anybody"' in engine.said


def test_a_password_file_and_a_service(secured: Secured) -> None:
    home = secured.folder / "home"
    home.mkdir(exist_ok=True)
    escaped = PASSWORD.replace("\\", "\\\\")
    (home / ".pgpass").write_text(f"{HOST}:{secured.port}:*:anybody:{escaped}\n")
    (home / ".pgpass").chmod(0o600)
    (home / ".pg_service.conf").write_text(
        f"[bench]\nhost={HOST}\nhostaddr=127.0.0.1\nport={secured.port}\n"
        f"user=anybody\ndbname=postgres\nsslmode=require\n"
    )
    environment = {"HOME": str(home), "PGPASSWORD": "", "PGSERVICE": "bench"}
    assert with_engine(secured.folder, "", environment=environment) == Became(what="tls")
    (home / ".pgpass").chmod(0o644)
    engine = with_engine(secured.folder, "service=bench", environment=environment)
    assert "others may read it (chmod 600)" in engine.said


@pytest.mark.parametrize("reactor", REACTORS)
def test_hosts_that_are_away_are_passed_over(secured: Secured, reactor: str) -> None:
    ports = f"{closed_port()},{secured.port}"
    conninfo = secured.conninfo(
        "anybody",
        host=f"{HOST},{HOST}",
        hostaddr="127.0.0.1,127.0.0.1",
        port=ports,
        sslmode="require",
    )
    assert_both(secured, conninfo, "tls", reactor=reactor)
    unknown = make_conninfo(conninfo, host="no-such-host.invalid,127.0.0.1")
    unknown = unknown.replace("hostaddr='127.0.0.1,127.0.0.1'", "").replace(
        "hostaddr=127.0.0.1,127.0.0.1", ""
    )
    assert_both(secured, unknown, "tls", reactor=reactor)


def test_nobody_there_names_everybody(secured: Secured) -> None:
    first, second = closed_port(), closed_port()
    conninfo = make_conninfo(host="127.0.0.1,127.0.0.1", port=f"{first},{second}", user="anybody")
    engine = with_engine(secured.folder, conninfo)
    for port in (first, second):
        assert f"127.0.0.1, port {port}: Connection refused" in engine.said


@pytest.mark.parametrize("reactor", REACTORS)
def test_a_silent_host_is_given_up(secured: Secured, reactor: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ports = f"{silent.getsockname()[1]},{secured.port}"
        conninfo = secured.conninfo(
            "anybody", host=f"{HOST},{HOST}", hostaddr="127.0.0.1,127.0.0.1", port=ports,
            connect_timeout="2", sslmode="require",
        )  # fmt: skip
        begin = time.monotonic()
        assert with_engine(secured.folder, conninfo, reactor=reactor) == Became(what="tls")
        assert 1.9 < time.monotonic() - begin < 10


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("any", "primary"),
        ("read-write", "primary"),
        ("primary", "primary"),
        ("read-only", "standby"),
        ("standby", "standby"),
        ("prefer-standby", "standby"),
    ],
)
@pytest.mark.parametrize("reactor", REACTORS)
def test_the_wanted_kind_of_server_is_found(
    secured: Secured, standby: int, kind: str, found: str, reactor: str
) -> None:
    question = "SELECT pg_is_in_recovery()::text AS answer;"
    for ports in ((secured.port, standby), (standby, secured.port)):
        conninfo = make_conninfo(
            host="127.0.0.1,127.0.0.1", port=",".join(map(str, ports)), user="anybody",
            dbname="postgres", target_session_attrs=kind,
        )  # fmt: skip
        expected = found == "standby"
        if kind == "any":
            expected = ports[0] == standby
        told = (6, 0, "") if expected else (0, 6, "")
        assert answers(secured.folder, conninfo, question, reactor=reactor) == told
        with psycopg.connect(conninfo, password=PASSWORD) as connection:
            assert connection.execute("SELECT pg_is_in_recovery()").fetchone() == (expected,)


def test_the_wanted_kind_may_not_be_there(secured: Secured) -> None:
    conninfo = secured.conninfo("anybody", target_session_attrs="standby")
    engine = assert_both(secured, conninfo, "refused")
    assert "the server is not a standby" in engine.said
    assert_both(secured, secured.conninfo("anybody", target_session_attrs="prefer-standby"), "tls")


def test_hosts_share_clients_at_random(secured: Secured, standby: int, tmp_path: Path) -> None:
    conninfo = make_conninfo(
        host="127.0.0.1,127.0.0.1", port=f"{secured.port},{standby}", user="anybody",
        dbname="postgres", load_balance_hosts="random",
    )  # fmt: skip
    plan = write_plan(tmp_path, conninfo, "SELECT pg_sleep(0.1);", clients=32, duration_s=2.0)
    engine = start_engine("run", plan, environment={"PGPASSWORD": PASSWORD})
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno-engine'"
    deadline, seen = time.monotonic() + 20, [0, 0]
    while sum(seen) < 32:
        assert time.monotonic() < deadline, f"never 32 sessions on both servers: {seen}"
        for index, port in enumerate((secured.port, standby)):
            with psycopg.connect(
                secured.server.conninfo, port=port, password=secured.server.password
            ) as one:
                row = one.execute(query).fetchone()
                seen[index] = 0 if row is None else int(row[0])
    run = end_engine(engine, tmp_path)
    # With fair chances, fewer than 4 of 32 on one side come once in 390,000 times.
    assert min(seen) >= 4
    assert run.status == 0
    assert_adds_up(run)


@pytest.mark.parametrize("reactor", REACTORS)
def test_large_results_and_statements_go_through_tls(
    secured: Secured, tmp_path: Path, reactor: str
) -> None:
    text = "x" * 100_000
    script = (
        f"SELECT length('{text}') AS n \\gset\n"
        "SELECT repeat('y', 300000) AS wide \\gset\n"
        "SELECT g, repeat('z', 100) FROM generate_series(1, 5000) g;\n"
        "SELECT 1 / (:n = 100000 AND length(:wide) = 300000)::int;\n"
    )
    conninfo = secured.conninfo("anybody", sslmode="require")
    plan = write_plan(tmp_path, conninfo, script, transactions_per_client=5, reactor=reactor)
    run = end_engine(start_engine("run", plan, environment={"PGPASSWORD": PASSWORD}), tmp_path)
    assert run.status == 0, run.error
    assert (run.summary.measurement.committed, run.summary.measurement.failed.total) == (20, 0)
    assert_adds_up(run)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_every_protocol_through_tls(secured: Secured, tmp_path: Path, protocol: str) -> None:
    script = (
        "\\set n random(1, 1000)\nBEGIN;\nSELECT :n AS m \\gset\nSELECT 1/(:m = :n)::int;\nEND;\n"
    )
    conninfo = secured.conninfo("anybody", sslmode="require")
    plan = write_plan(tmp_path, conninfo, script, protocol=protocol, clients=16)
    run = end_engine(start_engine("run", plan, environment={"PGPASSWORD": PASSWORD}), tmp_path)
    assert run.status == 0, run.error
    assert run.summary.measurement.committed > 16
    assert run.summary.measurement.failed.total == 0
    assert_adds_up(run)


def test_statements_are_cancelled_through_tls(secured: Secured, tmp_path: Path) -> None:
    """Over a connection that only TLS opens, so that a cancel in the clear would not do."""
    conninfo = secured.conninfo("only_tls", sslmode="require")
    script = "SELECT pg_sleep(300);"
    plan = write_plan(tmp_path, conninfo, script, duration_s=0.3, drain_deadline_s=0.3)
    engine = start_engine("run", plan, environment={"PGPASSWORD": PASSWORD})
    run = end_engine(engine, tmp_path)
    assert run.summary.measurement.in_flight_at_end == 4
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(300)%'"
    deadline = time.monotonic() + 10
    with secured.superuser() as connection:
        while connection.execute(asleep).fetchone() != (0,):
            assert time.monotonic() < deadline, "the server still works for clients that are gone"
            time.sleep(0.05)


def test_a_signal_ends_sessions_in_good_order(secured: Secured, tmp_path: Path) -> None:
    conninfo = secured.conninfo("anybody", sslmode="require")
    plan = write_plan(tmp_path, conninfo, "SELECT pg_sleep(0.01);", duration_s=600.0)
    engine = start_engine("run", plan, environment={"PGPASSWORD": PASSWORD})
    deadline = time.monotonic() + 30
    while not (tmp_path / "out/intervals.jsonl").exists():
        assert time.monotonic() < deadline, "the measurement never began"
        time.sleep(0.05)
    time.sleep(0.5)
    before = (secured.server.log or Path()).read_text()
    engine.send_signal(signal.SIGINT)
    run = end_engine(engine, tmp_path)
    assert run.summary.outcome == "interrupted"
    said = (secured.server.log or Path()).read_text().removeprefix(before)
    assert "unexpected EOF" not in said and "SSL error" not in said


def test_a_run_by_dsn_verifies_the_server(secured: Secured, place: Place) -> None:
    """From the command line to the report: the lab, the loader and the engine connect alike."""
    secured.administer("DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench OWNER only_tls")
    root = place.folder / "root.crt"
    root.write_text(secured.authority.certificate.read_text())
    dsn = secured.conninfo(
        "only_tls", dbname="bench", sslmode="verify-full", sslrootcert=root,
        channel_binding="require", password=PASSWORD,
    )  # fmt: skip
    words = ("--param", "scale=1", "--clients", "4", "--time", "2s", "--warmup", "1s")
    ended = place.pgdyno("run", "select-only", "--dsn", dsn, *words)
    assert ended.status == 0, ended.error
    assert PASSWORD not in "".join(
        file.read_text(errors="replace") for file in place.runs.rglob("*.json")
    )
    wrong = place.pgdyno(
        "run", "select-only", "--dsn", make_conninfo(dsn, host="other.test"), *words
    )
    assert wrong.status != 0
    assert "TLS" in wrong.error


@pytest.mark.parametrize("reactor", REACTORS)
def test_tls_from_the_first_byte(secured: Secured, reactor: str) -> None:
    """Against a relay that ends TLS as servers from 17 on do; sessions behind it are plain."""
    root = secured.authority.certificate
    with relay(secured, protocols=["postgresql"]) as port:
        conninfo = secured.conninfo(
            "trusted",
            port=str(port),
            sslmode="verify-full",
            sslrootcert=root,
            sslnegotiation="direct",
        )
        assert_both(secured, conninfo, "plain", reactor=reactor)
    with relay(secured, protocols=[]) as port:
        conninfo = make_conninfo(conninfo, port=port)
        engine = assert_both(secured, conninfo, "refused", reactor=reactor)
        assert "does not take TLS from the first byte" in engine.said


@pytest.mark.parametrize("reactor", REACTORS)
@pytest.mark.parametrize("cut", [1, 100, 1500])
def test_a_connection_that_ends_in_the_handshake_is_told(
    secured: Secured, reactor: str, cut: int
) -> None:
    with relay(secured, protocols=["postgresql"], cut=cut) as port:
        conninfo = secured.conninfo(
            "trusted", port=str(port), sslmode="require", sslnegotiation="direct"
        )
        engine = with_engine(secured.folder, conninfo, reactor=reactor)
        assert "no client could connect" in engine.said
        assert "the server closed the connection" in engine.said or "broke" in engine.said
