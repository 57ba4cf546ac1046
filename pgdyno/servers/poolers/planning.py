"""Which servers a pooler stands before, and with which settings: all that can be said without it.

Pure. What the program itself says of its configuration is found out in `judging.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.errors import InvalidInput, Problems, nearest_hint
from pgdyno.model import PoolerChoice
from pgdyno.servers.poolers.facts import Facts
from pgdyno.servers.poolers.programs import Program
from pgdyno.servers.poolers.translation import owned_problems, translate
from pgdyno.servers.translation import Translated


def backend_roles(choice: PoolerChoice, roles: Sequence[str]) -> tuple[str, ...]:
    """Roles of the servers that it sends to, the one that takes the writes first in `roles`.

    pgpool knows them all and sends reads to any; PgBouncer stands before one, the primary unless
    another is named; HAProxy is a port for reading over the standbys, where there are any.
    Raises `InvalidInput` for roles that there are not, and for those that the kind cannot serve.
    """
    primary, *standbys = roles
    chosen = (
        choice.backends
        or {
            "pgpool": tuple(roles),
            "pgbouncer": (primary,),
            "haproxy": tuple(standbys) or (primary,),
        }[choice.kind]
    )
    for role in chosen:
        if role not in roles:
            raise InvalidInput(
                f"{choice.kind} cannot send to '{role}', there is no such server",
                hint=nearest_hint(role, roles),
            )
    if choice.kind == "pgbouncer" and len(chosen) > 1:
        raise InvalidInput(
            f"pgbouncer stands before one server, not {len(chosen)}",
            hint="name one as its backend; pgpool and haproxy stand before several",
        )
    if choice.kind == "pgpool" and chosen[0] != primary:
        raise InvalidInput(
            f"the first backend of pgpool must be '{primary}': it asks it who replicates",
            hint="backend_weight0 = 0 keeps reads away from it",
        )
    return chosen


def settings_for(choice: PoolerChoice, facts: Facts, program: Program) -> Translated:
    """The person's settings in the program's words of today; `Problems` for what is not theirs."""
    problems = owned_problems(choice.settings, facts)
    if choice.mode is not None and choice.kind != "pgbouncer":
        problems.append(
            f"{choice.kind} has no mode '{choice.mode}': a client keeps its server connection for "
            "its session; pgbouncer has modes"
        )
    problems += [
        f"{choice.kind}: setting '{name}' has a line break"
        for name, value in choice.settings.items()
        if "\n" in name + value
    ]
    if problems:
        raise Problems(problems)
    translated = translate(choice.settings, facts, program.version)
    clustering = translated.settings.get("backend_clustering_mode")
    if clustering not in {None, "streaming_replication", "raw"}:
        raise InvalidInput(
            f"pgpool cannot run with backend_clustering_mode = '{clustering}' here: "
            "the standbys stream from their primary",
            hint="leave it out, or say streaming_replication",
        )
    return translated
