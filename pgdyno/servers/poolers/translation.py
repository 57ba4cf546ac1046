"""A pooler's settings in a person's words → settings that its version understands. Pure.

pgpool ignores a name that it does not know without a word: an old configuration balances nothing,
and nobody is told. So what is old is translated or dropped here, with a notice for each.

>>> old = {"master_slave_mode": "on", "master_slave_sub_mode": "stream", "max_pool": "4"}
>>> translate(old, facts_of("pgpool"), (4, 3, 5)).settings
{'max_pool': '4', 'backend_clustering_mode': 'streaming_replication'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pgdyno.servers.poolers.facts import Facts, Version, facts_of
from pgdyno.servers.translation import Translated

__all__ = ["base_name", "facts_of", "owned_problems", "translate"]


def translate(settings: Mapping[str, str], facts: Facts, version: Version) -> Translated:
    """Settings as a program of that version knows them; a new name wins over its old one."""
    shown = f"{facts.program} {'.'.join(str(part) for part in version)}"
    renamed = {one["name"]: one for one in facts.renamed if version >= tuple(one["since"])}
    result: dict[str, str] = {}
    notices = []
    for name, value in settings.items():
        said = f"setting {name} = '{value}'"
        if name in facts.gone:
            notices.append(f"{said} is dropped, {shown} ignores it: {facts.gone[name]}")
        elif name not in renamed:
            result[name] = value
        elif (new := renamed[name]["to"]) in settings:
            notices.append(f"{said} is dropped, {shown} ignores it: {new} is given as well")
        else:
            result[new] = value
            notices.append(f"{said} is now {new} = '{value}': {shown} ignores the old name")
    united, more = _unite(result, facts, version, shown)
    return Translated(settings=united, notices=(*notices, *more))


def _unite(
    settings: Mapping[str, str], facts: Facts, version: Version, shown: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Several old settings that have become one."""
    rule = facts.united
    old = {} if rule is None else {n: settings[n] for n in rule["defaults"] if n in settings}
    if rule is None or not old or version < tuple(rule["since"]):
        return dict(settings), ()
    rest = {name: value for name, value in settings.items() if name not in old}
    words = ", ".join(f"{name} = '{value}'" for name, value in old.items())
    said = f"settings {words}" if len(old) > 1 else f"setting {words}"
    if rule["to"] in rest:
        is_given = f"{rule['to']} is given as well"
        return rest, (f"{said}: dropped, {shown} ignores the old names; {is_given}",)
    in_force = {**rule["defaults"], **{name: _switch(value) for name, value in old.items()}}
    value = next(
        case["value"]
        for case in rule["cases"]
        if all(in_force[name] == wanted for name, wanted in case["when"].items())
    )
    rest[rule["to"]] = value
    return rest, (f"{said}: now {rule['to']} = '{value}', {shown} ignores the old names",)


def _switch(value: str) -> str:
    """A switch as on or off; anything else as it is."""
    words = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
    return words.get(value.lower(), value.lower())


def base_name(name: str) -> str:
    """A setting without its backend's number.

    >>> base_name("backend_weight1")
    'backend_weight'
    """
    return re.sub(r"\d+$", "", name)


def owned_problems(settings: Mapping[str, str], facts: Facts) -> list[str]:
    """A line for each setting that is pgdyno's to choose."""
    found = []
    for name in settings:
        first_word = name.split(" ")[0]
        for known in (name, base_name(name), first_word):
            if known in facts.owned:
                found.append(
                    f"{facts.program}: setting '{name}' is pgdyno's to choose: {facts.owned[known]}"
                )
                break
    return found
