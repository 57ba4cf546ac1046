"""Facts of each kind of pooler, read from the `.toml` file of its name beside this one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one kind. `version` is a pattern of what the program says of itself.

    `owned`, `given`, `given_each`, `defaults` and `gone` are by a setting's name; the rest is as
    the file says.
    """

    kind: str
    program: str
    version: re.Pattern[str]
    package: Mapping[str, str]
    owned: Mapping[str, str]
    given: Mapping[str, str]
    given_each: Mapping[str, str]
    defaults: Mapping[str, str]
    gone: Mapping[str, str]
    renamed: tuple[Mapping[str, Any], ...]
    united: Mapping[str, Any] | None
    since: Mapping[str, Any]


@cache
def facts_of(kind: str) -> Facts:
    """Read one kind's file."""
    read = tomllib.loads(files("pgdyno.servers.poolers").joinpath(f"{kind}.toml").read_text())
    return Facts(
        kind=kind,
        program=read["program"],
        version=re.compile(read["version"]),
        package=read["package"],
        owned=read["owned"],
        given=read["given"],
        given_each=read.get("given_each", {}),
        defaults=read["defaults"],
        gone=read["gone"],
        renamed=tuple(read.get("renamed", ())),
        united=read.get("united"),
        since=read.get("since", {}),
    )


def defaults_of(facts: Facts, version: Version) -> dict[str, str]:
    """The defaults of a version, of the settings that pgdyno reckons with."""
    changed = {
        one["name"]: one["value"]
        for one in facts.since.get("defaults", ())
        if version >= tuple(one["since"])
    }
    return {**facts.defaults, **changed}
