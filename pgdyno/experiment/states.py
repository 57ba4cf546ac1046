"""Loaded states that trials share, each with its way of giving every trial the same one.

A state is made by the first trial that needs it, as phases of that trial, and kept until the
experiment ends. `ready` is the one verb: a running server with the data as they were loaded.

| state | made once | each trial |
|---|---|---|
| `Fresh` | nothing | a server of its own that loads, or the person's that may have the data |
| `Copies` | a stopped cluster | a server on a clone or a copy of its files |
| `OneServer` | a running cluster | a copy of its database, or the database as it was left |
| `Theirs` | a database on the person's server | the same there, or loaded again |
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import psycopg

from pgdyno.errors import PgdynoError, Problems
from pgdyno.experiment.context import Context, target_of
from pgdyno.experiment.inspecting import describe, refuse_unfit
from pgdyno.experiment.preparing import load_data
from pgdyno.experiment.resetting import Choice, choose_for_dsn
from pgdyno.hosts.base import Host
from pgdyno.model import (
    Limits,
    LoadReport,
    ResetMethod,
    ResetReport,
    StateIdentity,
    SystemChoice,
)
from pgdyno.servers import preflight, processes
from pgdyno.servers.base import Server
from pgdyno.servers.cluster import Cluster, Origin
from pgdyno.servers.copying import CopyMethod, disk_bytes
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.postmaster import running
from pgdyno.servers.provision import private_cluster, provision, settings_of
from pgdyno.servers.reloading import apply_settings
from pgdyno.servers.storage import keeps_files_elsewhere
from pgdyno.servers.trial_database import obstacle, trial_database
from pgdyno.workloads.making import make_functions
from pgdyno.workloads.target import connect, first_line


class State(Protocol):
    """A loaded state that gives itself to one trial after the other."""

    def ready(self, context: Context) -> AbstractContextManager[Server]:
        """The trial's server with its data, described, for as long as the context lasts."""
        ...

    def close(self) -> None:
        """Stop and remove whatever was kept for further trials."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What is known of a state since it was loaded, by which trial."""

    report: LoadReport
    identity: StateIdentity | None
    trial: int

    @staticmethod
    def by(context: Context, report: LoadReport) -> Loaded:
        """As the trial that loads it knows it."""
        trial = context.diary.trial
        return Loaded(report=report, identity=trial.state, trial=trial.number)

    def seen_from(self, context: Context) -> LoadReport:
        """The load as another trial tells it: its own data came from there."""
        if context.diary.trial.number == self.trial:
            return self.report
        reason = f"loaded for trial {self.trial} ({self.report.reason})"
        return self.report.model_copy(update={"reused": True, "reason": reason, "steps": ()})


class Fresh:
    """No state is shared: each trial loads, or finds what fits on the person's server."""

    def __init__(self, choice: Choice | None) -> None:
        self._choice = choice

    @contextmanager
    def ready(self, context: Context) -> Iterator[Server]:
        """A server as the variant says, with its data loaded."""
        variant, diary = context.variant, context.diary
        diary.begin("provision")
        with provision(variant.system, context.host, notice=diary.notice) as server:
            describe(context, server)
            refuse_unfit(context, server, data_bytes=context.workload.expected_bytes)
            began_s = time.monotonic()
            report = load_data(context, server, reload=variant.load.reload)
            if self._choice is not None:
                learn_reset(context, self._choice, time.monotonic() - began_s, report.data_bytes)
            yield server

    def close(self) -> None:
        """Nothing is kept."""


class Copies:
    """Each trial runs on a copy of one stopped cluster, which was loaded with `settings`."""

    def __init__(self, choice: Choice, method: CopyMethod, settings: Mapping[str, str]) -> None:
        self._choice = choice
        self._method: CopyMethod = method
        self._settings = settings
        self._ledger = Ledger()
        self._kept = ExitStack()
        self._origin: Cluster | None = None
        self._loaded: Loaded | None = None

    @contextmanager
    def ready(self, context: Context) -> Iterator[Server]:
        """A server with the variant's settings on a copy of the files."""
        if self._origin is None or self._loaded is None:
            self._load(context)
        origin, loaded = self._origin, self._loaded
        assert origin is not None and loaded is not None
        diary, system = context.diary, context.variant.system
        with ExitStack() as stack:
            with diary.phase("reset"):
                self._insist_on_room(origin)
                began_s = time.monotonic()
                root = None if system.data is None else origin.data
                cluster = stack.enter_context(
                    private_cluster(
                        system.model_copy(update={"data": None}),
                        context.host,
                        ledger=self._ledger,
                        notice=diary.notice,
                        origin=Origin(data=origin.data, method=self._method, root=root),
                    )
                )
                server = stack.enter_context(
                    running(
                        cluster,
                        cluster.choice.settings,
                        context.host,
                        self._ledger,
                        ending="at once",
                    )
                )
                taken_s = time.monotonic() - began_s
                copied_bytes = None if cluster.copied is None else cluster.copied.bytes
                learn_reset(context, self._choice, taken_s, copied_bytes)
                take_over(context, server, loaded)
            yield server

    def _load(self, context: Context) -> None:
        """Make the cluster, load it, and stop it so that its files are whole."""
        system = context.variant.system.model_copy(
            update={
                "settings": dict(self._settings),
                "tcp": False,
                "port": None,
                "limits": Limits(),
            }
        )
        diary, host = context.diary, context.host
        diary.begin("provision", "starting the server that loads the data")
        with ExitStack() as making:
            cluster = making.enter_context(
                private_cluster(system, host, ledger=self._ledger, notice=diary.notice)
            )
            settings = cluster.choice.settings
            with running(cluster, settings, host, self._ledger, ending="clean") as server:
                describe(context, server)
                twice = 2 if self._method == "copy" else 1
                refuse_unfit(context, server, data_bytes=twice * context.workload.expected_bytes)
                report = load_data(context, server, reload=context.variant.load.reload)
                diary.begin("reset", "stopping the server that loaded the data")
            shutil.copyfile(cluster.log, context.stored.folder / "logs" / "loading-server.log")
            diary.end()
            if keeps_files_elsewhere(cluster.data, cluster.storage.all):
                raise PgdynoError(
                    f"'{cluster.data}' keeps files elsewhere, which its copies would share",
                    hint="say reset 'load' or 'template'",
                )
            self._origin, self._loaded = cluster, Loaded.by(context, report)
            self._kept = making.pop_all()

    def _insist_on_room(self, origin: Cluster) -> None:
        """Raise `Problems` where a copy would fill the disk; a clone takes next to nothing."""
        if self._method == "copy":
            free_bytes = preflight.free_bytes(origin.data)
            if problems := preflight.check_disk(disk_bytes(origin.data), free_bytes):
                raise Problems(problems)

    def close(self) -> None:
        """Remove the stopped cluster, unless its folder is the person's."""
        self._kept.close()


class OneServer:
    """A private server that keeps running; trials have copies of its database, or share it."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._ledger = Ledger()
        self._folders = ExitStack()
        self._life = ExitStack()
        self._cluster: Cluster | None = None
        self._server: Server | None = None
        self._settings: Mapping[str, str] = {}
        self._loaded: Loaded | None = None

    @contextmanager
    def ready(self, context: Context) -> Iterator[Server]:
        """The server with the variant's settings; it is restarted only where they need it."""
        context.diary.begin("provision")
        server = self._running(context)
        describe(context, server)
        times = 2 if self._choice.method == "template" else 1
        refuse_unfit(context, server, data_bytes=times * context.workload.expected_bytes)
        loaded = self._loaded
        if loaded is None:
            report = load_data(context, server, reload=context.variant.load.reload)
            self._loaded = Loaded.by(context, report)
        with given_back(context, server, self._choice, loaded) as given:
            yield given

    def _running(self, context: Context) -> Server:
        """The running server, started or started again where that is needed."""
        host = context.host
        if self._cluster is None:
            self._cluster = self._folders.enter_context(
                private_cluster(
                    context.variant.system,
                    host,
                    ledger=self._ledger,
                    notice=context.diary.notice,
                )
            )
        elif self._server is not None and self._serves(context.variant.system, host):
            return self._server
        else:
            self._life.close()
            cpus = context.variant.system.cpus
            chosen = replace(self._cluster.choice, cpus=cpus)
            self._cluster = replace(self._cluster, choice=chosen, used_before=True)
        settings = settings_of(context.variant.system, self._cluster.choice.installation)
        self._server = self._life.enter_context(
            running(self._cluster, settings, host, self._ledger, ending="clean")
        )
        self._settings = settings
        return self._server

    def _serves(self, system: SystemChoice, host: Host) -> bool:
        """Whether the server runs as the variant wants it, or need only read its settings."""
        assert self._server is not None and self._cluster is not None
        pid = self._server.postmaster_pid
        if pid is None or processes.identify(pid) is None:
            return False
        if system.cpus != self._cluster.choice.cpus:
            return False
        settings = settings_of(system, self._cluster.choice.installation)
        if settings == self._settings:
            return True
        self._settings = settings
        return apply_settings(self._cluster, self._server, settings, host)

    def close(self) -> None:
        """Stop the server and remove its folders, unless they are the person's."""
        try:
            self._life.close()
        finally:
            self._folders.close()


class Theirs:
    """The person's own server, where the data are loaded once, or found.

    `alone`: no other state of the experiment lies in the same database.
    """

    def __init__(self, asked: ResetMethod, *, alone: bool) -> None:
        self._asked = asked
        self._alone = alone
        self._choice: Choice | None = None
        self._loaded: Loaded | None = None

    @contextmanager
    def ready(self, context: Context) -> Iterator[Server]:
        """The server with a copy of the database, or the database itself."""
        variant, diary = context.variant, context.diary
        diary.begin("provision")
        with provision(variant.system, context.host, notice=diary.notice) as server:
            describe(context, server)
            refuse_unfit(context, server, data_bytes=context.workload.expected_bytes)
            loaded = self._loaded
            if loaded is None or self._choice is None:
                report = load_data(context, server, reload=variant.load.reload)
                self._loaded = Loaded.by(context, report)
                self._choice = self._choose(context, server, report)
            with given_back(context, server, self._choice, loaded) as given:
                yield given

    def _choose(self, context: Context, server: Server, report: LoadReport) -> Choice:
        in_the_way = obstacle(server, report.data_bytes or 0)
        if not self._alone:
            in_the_way = "variants with other data use the same database"
        return choose_for_dsn(
            self._asked,
            has_data=bool(context.workload.tables),
            adopted=report.adopted,
            obstacle=in_the_way,
        )

    def close(self) -> None:
        """The data stay, as after any run on that server."""


@contextmanager
def given_back(
    context: Context, server: Server, choice: Choice, loaded: Loaded | None
) -> Iterator[Server]:
    """The loaded state inside a server that runs. `loaded` None: this very trial loaded it."""
    if choice.method != "template":
        began_s = time.monotonic()
        if loaded is not None:
            load_data(context, server, reload=choice.method == "load")
        report = context.diary.trial.load
        size = None if report is None else report.data_bytes
        learn_reset(context, choice, time.monotonic() - began_s, size)
        yield server
        return
    with ExitStack() as stack:
        with context.diary.phase("reset"):
            copy = stack.enter_context(trial_database(server, context.diary.notice))
            learn_reset(context, choice, copy.duration_s, copy.bytes)
            if loaded is not None:
                context.diary.learn(load=loaded.seen_from(context), state=loaded.identity)
            context.snapshot = None
            _renew_functions(context, copy.server)
        yield copy.server


def take_over(context: Context, server: Server, loaded: Loaded) -> None:
    """Describe a server on copied files, and what its data are."""
    context.diary.learn(load=loaded.seen_from(context), state=loaded.identity)
    describe(context, server)
    refuse_unfit(context, server, data_bytes=0)
    context.snapshot = None
    _renew_functions(context, server)


def learn_reset(context: Context, choice: Choice, duration_s: float, size: int | None) -> None:
    """Write down how the trial came by its state."""
    report = ResetReport(
        method=choice.method, duration_s=round(duration_s, 3), bytes=size, reason=choice.reason
    )
    context.diary.learn(reset=report)


def _renew_functions(context: Context, server: Server) -> None:
    """Make the variant's functions: variants that differ in them only share their data."""
    try:
        with connect(target_of(server)) as connection:
            make_functions(connection, context.workload)
    except psycopg.Error as error:
        raise PgdynoError(f"the functions could not be made: {first_line(error)}") from error
