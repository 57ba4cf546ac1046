"""What a definition says about judging and ending: responses, replicates, precision, budget. Pure.

Each function returns what is meant together with the problems found, as (place, text), so that all
problems of a file are told at once.
"""

from __future__ import annotations

from typing import Final

from pgdyno.errors import InvalidInput
from pgdyno.experiment.definition import Definition, ResponseEntry
from pgdyno.experiment.levels import seconds_above_zero, share
from pgdyno.experiment.responses import METRICS, metric
from pgdyno.experiment.toml_lines import KeyPath
from pgdyno.model import Response, Stopping

DEFAULT_REPLICATES: Final = 10
DEFAULT_MAX_REPLICATES: Final = 50
DEFAULT_MATTERS: Final = 0.02
# A budget's least: with one trial of each variant nothing can be said about noise.
BUDGET_REPLICATES: Final = 2

Problem = tuple[KeyPath, str]


def responses_of(definition: Definition) -> tuple[tuple[Response, ...], list[Problem]]:
    """What is judged, in the person's order; the first decides about precision."""
    problems: list[Problem] = []
    usual, said = _share(definition.file.matters, ("matters",))
    problems += said
    found: dict[str, Response] = {}
    for number, entry in enumerate(definition.file.responses):
        place = ("responses", number)
        if entry.metric in found:
            problems.append((place, f"metric '{entry.metric}' is named twice"))
        response, said = _response(entry, place, usual or DEFAULT_MATTERS)
        problems += said
        if response is not None:
            found[entry.metric] = response
    return tuple(found.values()), problems


def stopping_of(definition: Definition) -> tuple[Stopping, list[Problem]]:
    """When there are trials enough: at most one of replicates, precision and budget."""
    file = definition.file
    ways = [name for name in ("replicates", "precision", "budget") if name in definition.given]
    problems: list[Problem] = [
        ((name,), f"{' and '.join(ways)} cannot be used together: give one") for name in ways[1:]
    ]
    if file.max_replicates is not None and file.precision is None:
        problems.append((("max_replicates",), "max_replicates needs precision"))
    if file.precision is not None:
        width, said = _share(file.precision, ("precision",))
        if not file.responses:
            said = [*said, (("precision",), "precision needs a response to reach it in")]
        most = file.max_replicates or DEFAULT_MAX_REPLICATES
        stopping = Stopping(policy="precision", precision=width, max_replicates=most)
        return stopping, problems + said
    if file.budget is not None:
        try:
            budget_s = seconds_above_zero(file.budget, {})
        except InvalidInput as error:
            hint = f"; {error.hint}" if error.hint else ""
            return Stopping(), [*problems, (("budget",), f"budget: {error.message}{hint}")]
        budget = Stopping(policy="budget", budget_s=budget_s, replicates=BUDGET_REPLICATES)
        return budget, problems
    return Stopping(replicates=file.replicates or DEFAULT_REPLICATES), problems


def _response(
    entry: ResponseEntry, place: KeyPath, usual: float
) -> tuple[Response | None, list[Problem]]:
    problems: list[Problem] = []
    matters: float | None = usual
    if entry.matters is not None:
        matters, problems = _share(entry.matters, (*place, "matters"))
    if entry.metric not in METRICS:
        try:
            metric(entry.metric)
        except InvalidInput as error:
            problems.append(((*place, "metric"), f"{error.message}; {error.hint}"))
        return None, problems
    direction = entry.direction or METRICS[entry.metric].direction
    response = Response(metric=entry.metric, direction=direction, matters=matters or usual)
    return response, problems


def _share(level: object, place: KeyPath) -> tuple[float | None, list[Problem]]:
    try:
        return share(level), []  # type: ignore[arg-type]
    except InvalidInput as error:
        return None, [(place, f"{place[-1]}: {error.message}; {error.hint}")]
