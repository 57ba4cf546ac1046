"""What has to be done again to get from one variant to another: nothing, or up to a new server.

    build < initdb < load < restart < reload < run     (from the dearest to the cheapest)

Variants that differ only from `restart` on share one loaded state, which is made once. Trials are
not sorted by this: they stay in randomised blocks, and what they share is kept at hand. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pgdyno.model import SystemChoice, Variant
from pgdyno.workloads.definition import ResolvedWorkload

Redo = Literal["build", "initdb", "load", "restart", "reload", "run"]

DEAREST_FIRST: Final[tuple[Redo, ...]] = ("build", "initdb", "load", "restart", "reload", "run")
# PostgreSQL's context of settings (`postgres --describe-config`) that need a new start.
_NEEDS_RESTART: Final = "postmaster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Variants that share one loaded state, in the person's order."""

    variants: tuple[Variant, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(variant.name for variant in self.variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Tells what differs between variants.

    `workloads`: variant → its workload, resolved. `contexts`: setting → its context; a setting that
    is not there counts as one that needs a restart.
    """

    workloads: Mapping[str, ResolvedWorkload]
    contexts: Mapping[str, str]

    def redo(self, before: Variant, after: Variant) -> Redo:
        """What has to be done again after a trial of `before` to run `after`."""
        one, other = before.system, after.system
        if (one.pg, one.dsn) != (other.pg, other.dsn):
            return "build"
        if _made(one) != _made(other):
            return "initdb"
        if self._data(before) != self._data(after):
            return "load"
        changed = self._changed_settings(before, after)
        if _around(one) != _around(other) or any(
            self._context(name) == _NEEDS_RESTART for name in changed
        ):
            return "restart"
        return "reload" if changed else "run"

    def groups(self, variants: Sequence[Variant]) -> tuple[Group, ...]:
        """Variants by the loaded state that they share."""
        found: list[list[Variant]] = []
        for variant in variants:
            for group in found:
                if self.shares_state(group[0], variant):
                    group.append(variant)
                    break
            else:
                found.append([variant])
        return tuple(Group(variants=tuple(group)) for group in found)

    def shares_state(self, one: Variant, other: Variant) -> bool:
        """Whether both can start from the same loaded data folder."""
        return DEAREST_FIRST.index(self.redo(one, other)) > DEAREST_FIRST.index("load")

    def _data(self, variant: Variant) -> tuple[object, ...]:
        workload = self.workloads[variant.name]
        return (
            workload.data_name,
            workload.data_version,
            sorted(workload.data_parameters.items()),
            sorted(workload.extensions),
        )

    def _changed_settings(self, before: Variant, after: Variant) -> set[str]:
        one, other = before.system.settings, after.system.settings
        return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}

    def _context(self, name: str) -> str:
        return self.contexts.get(name.lower(), _NEEDS_RESTART)


def _made(system: SystemChoice) -> tuple[object, ...]:
    """What a loaded state is made with, and what its server is started with once and for all."""
    where = (system.data, system.storage, system.tcp, system.port)
    return (*where, system.initdb)


def _around(system: SystemChoice) -> tuple[object, ...]:
    """What is around a server while it runs a trial."""
    return system.cpus, system.limits, system.standbys, system.quorum, system.pooler
