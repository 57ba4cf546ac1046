"""What a pooler did with the load, in words: clients that were active, and who got the statements.

How many clients were active is computed, N = X·R: one that a pooler leaves without an answer to its
start-up is in no transaction, which shows nowhere else; one that waits inside its transaction is
active, and its waiting is told. Which server got how much is the pooler's own count of statements
where it has one, else the servers' count of commits.
"""

from __future__ import annotations

from pgdyno.model import PoolerChoice
from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.measured import Measured
from pgdyno.reports.observed import observed
from pgdyno.reports.timeline import TimeAxis
from pgdyno.stats.rates import Rows
from pgdyno.units import format_count, format_duration_s, format_share

_CLIENTS = "clients"


def pooling(
    documents: TrialDocuments, measured: Measured | None, axis: TimeAxis | None
) -> list[tuple[str, str]]:
    """Label and words, a line each; none where there was no pooler."""
    choice = documents.variant.system.pooler if documents.variant else None
    if choice is None:
        return []
    found = [("pooler", _pooler(choice))]
    if measured is not None and measured.littles_law is not None:
        law = measured.littles_law
        asked = documents.load.clients if documents.load else round(law.concurrency)
        active = f"{law.accounted:.1f} of {asked} clients on average (N = X·R)"
        found.append(("active", active))
    if axis is None:
        return found
    sides = observed(documents, axis, "pooler")
    front = sides.select("side", _CLIENTS).measured()
    if waiting := _waiting(front):
        found.append(("waiting", waiting))
    servers = [side for side in sides.labels("side") if side != _CLIENTS]
    statements = {
        side: _growth(sides.select("side", side).measured(), "statements") for side in servers
    }
    if shares := _shares(statements):
        found.append(("statements", f"{shares}, as {choice.kind} counts them"))
    elif shares := _shares(_commits(documents, axis)):
        found.append(("commits", f"{shares}, as the servers count them"))
    return found


def _pooler(choice: PoolerChoice) -> str:
    mode = f", {choice.mode} pooling" if choice.mode else ""
    settings = ", ".join(f"{name} = {value}" for name, value in choice.settings.items())
    return f"{choice.kind}{mode}" + (f"; {settings}" if settings else "")


def _waiting(front: Rows) -> str:
    """Clients that waited for a server connection; empty where it is not known."""
    counts = [row["waiting"] for row in front if isinstance(row.get("waiting"), int)]
    words = []
    if counts:
        words.append(f"{format_count(max(int(str(one)) for one in counts))} clients at most")
    waited_us, transactions = _growth(front, "wait_time_us"), _growth(front, "transactions")
    if waited_us is not None and transactions:
        each = format_duration_s(waited_us / 1e6 / transactions)
        words.append(f"{each} a transaction on average")
    return ", ".join(words)


def _commits(documents: TrialDocuments, axis: TimeAxis) -> dict[str, int | None]:
    """Growth of every server's commits, by role."""
    found = {}
    for name in documents.observations:
        if name == "database" or name.endswith("_database"):
            role = name.removesuffix("database").removesuffix("_") or "primary"
            found[role] = _growth(observed(documents, axis, name).measured(), "commits")
    return found


def _growth(rows: Rows, counter: str) -> int | None:
    """How far a counter came; None where it is not known."""
    values = [int(str(row[counter])) for row in rows if isinstance(row.get(counter), int)]
    return values[-1] - values[0] if len(values) > 1 and values[-1] >= values[0] else None


def _shares(counts: dict[str, int | None]) -> str:
    """Each server's share; empty where there is nothing to share."""
    known = {role: count for role, count in counts.items() if count is not None}
    total = sum(known.values())
    if len(known) < 2 or not total:
        return ""
    return ", ".join(f"{role} {format_share(count / total)}" for role, count in known.items())
