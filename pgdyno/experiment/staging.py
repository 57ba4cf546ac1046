"""Gives every trial of an experiment its server with the data loaded, and remembers what it shares.

Trials whose server build, initdb options and data are the same share a loaded state (`states.py`),
whatever their settings: the data are loaded with the settings that all of these variants have in
common, so that no variant starts from files that another one's settings have shaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from pgdyno.errors import InvalidInput, Problems
from pgdyno.experiment.context import Context
from pgdyno.experiment.policies import blocks_at_most
from pgdyno.experiment.pooling import Pooling, judge_poolers
from pgdyno.experiment.resetting import choose_for_private
from pgdyno.experiment.states import Copies, Fresh, OneServer, State, Theirs
from pgdyno.experiment.surroundings import surrounded
from pgdyno.hosts.base import Host
from pgdyno.model import Experiment, StateIdentity, SystemChoice, Variant
from pgdyno.servers import folders, preflight
from pgdyno.servers.base import System
from pgdyno.servers.copying import can_clone
from pgdyno.servers.privileges import server_user
from pgdyno.servers.provision import cluster_choice, refuse_contradictions
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.state import digest_of

Key = tuple[str, ...]
# Of an only variant nothing has to be told apart, and its server says itself what is wrong.
_ONLY: Key = ()


class Staging:
    """A context for a whole experiment: what is shared is removed when it ends."""

    def __init__(
        self,
        experiment: Experiment,
        workloads: Mapping[str, ResolvedWorkload],
        host: Host,
        notice: Callable[[str], None],
    ) -> None:
        self._experiment = experiment
        self._host = host
        self._keys: dict[str, Key] = {}
        if len(experiment.variants) > 1:
            self._keys = state_keys(experiment.variants, workloads, host, notice)
            if experiment.reset in ("template", "none"):
                # A server that keeps running keeps its limits.
                self._keys = {
                    each.name: (*self._keys[each.name], each.system.limits.model_dump_json())
                    for each in experiment.variants
                }
            self._refuse_mixed_folders()
        self._pooling = judge_poolers(experiment, workloads, host)
        self._states: dict[Key, State] = {}
        self._kept = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._kept.close()

    @contextmanager
    def ready(self, context: Context) -> Iterator[System]:
        """The trial's system with its data in the loaded state, for as long as the trial lasts."""
        pooling = self._pooling.get(context.variant.name, Pooling())
        context.sessions = pooling.sessions
        for notice in pooling.notices:
            context.diary.notice(notice)
        key = self._keys.get(context.variant.name, _ONLY)
        state = self._states.get(key)
        if state is None:
            state = self._new_state(context, key)
            self._kept.callback(state.close)
            self._states[key] = state
        with state.ready(context) as server, surrounded(context, server) as system:
            yield system

    def _new_state(self, context: Context, key: Key) -> State:
        variant, asked = context.variant, self._experiment.reset
        if not self._is_shared(key):
            return Fresh(None)
        if variant.system.dsn is not None:
            others = {other[0] for other in self._keys.values() if other != key}
            return Theirs(asked, alone=not key or key[0] not in others)
        place = _place(variant, self._host)
        choice = choose_for_private(
            asked,
            can_clone=can_clone(place),
            data_bytes=context.workload.expected_bytes,
            free_bytes=preflight.free_bytes(place),
        )
        match choice.method:
            case "clone" | "copy" as method:
                return Copies(choice, method, self._common_settings(key))
            case "template" | "none":
                return OneServer(choice)
            case "load":
                return Fresh(choice)

    def _is_shared(self, key: Key) -> bool:
        """Whether more than one trial will want this state."""
        variants = Counter(self._keys.values())[key] if self._keys else 1
        return variants * blocks_at_most(self._experiment) > 1

    def _refuse_mixed_folders(self) -> None:
        """One kept folder holds one state: another would replace it between two trials."""
        for folder in {key[1] for key in self._keys.values() if key[1]}:
            keys = {key for key in self._keys.values() if key[1] == folder}
            if len(keys) > 1 and any(self._is_shared(key) for key in keys):
                raise InvalidInput(
                    f"data folder '{folder}' cannot hold the data of {len(keys)} kinds of variants",
                    hint="leave data out, or make it another folder for each",
                )

    def _common_settings(self, key: Key) -> dict[str, str]:
        """Settings that all variants of this state have, with the same value."""
        variants = self._experiment.variants
        sharing = [each for each in variants if self._keys.get(each.name, _ONLY) == key]
        first = sharing[0].system.settings
        return {
            name: value
            for name, value in first.items()
            if all(each.system.settings.get(name) == value for each in sharing)
        }


def state_keys(
    variants: tuple[Variant, ...],
    workloads: Mapping[str, ResolvedWorkload],
    host: Host,
    notice: Callable[[str], None],
) -> dict[str, Key]:
    """Variant → what must be equal for two variants to share a loaded state.

    Finds and asks the programs of every private server; raises `Problems` with all that is wrong
    with versions and settings of all variants, before the first of them runs.
    """
    builds: dict[str, str] = {}
    problems: list[str] = []
    keys = {}
    for variant in variants:
        system, workload = variant.system, workloads[variant.name]
        asked = system.model_dump_json(exclude={"data", "tcp"})
        if asked not in builds:
            try:
                builds[asked] = _build(system, host, notice)
            except InvalidInput as error:
                problems += [f"{variant.name}: {line}" for line in str(error).splitlines()]
                continue
        keys[variant.name] = (
            builds[asked],
            system.data or "",
            # A server that keeps running cannot change where it listens.
            f"{system.tcp} {system.port}",
            # What it was made with and where its files lie.
            system.model_dump_json(include={"initdb", "storage"}),
            _data_digest(workload),
            *workload.extensions,
        )
    if problems:
        raise Problems(problems)
    return keys


def _build(system: SystemChoice, host: Host, notice: Callable[[str], None]) -> str:
    """Which server it is; a private one is found, and asked whether it takes the settings."""
    if system.dsn is not None:
        return f"dsn {system.dsn}"
    refuse_contradictions(system)
    return str(cluster_choice(system, host, notice).installation.bin_dir)


def _data_digest(workload: ResolvedWorkload) -> str:
    """What the data are, apart from the server they lie on."""
    nowhere = StateIdentity(
        digest="",
        server_version_num=0,
        block_size=0,
        wal_block_size=0,
        workload=workload.data_name,
        data_version=workload.data_version,
        parameters=workload.data_parameters,
    )
    return digest_of(nowhere, workload)


def _place(variant: Variant, host: Host) -> Path:
    """The folder on whose file system the data of a private server will lie."""
    if variant.system.data is not None:
        return Path(variant.system.data).expanduser().absolute()
    return folders.temporary_root(host, server_user())
