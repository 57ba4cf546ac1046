"""Where a person's server settings come from: a named profile, a file, single words; later wins.

Profiles are in `profiles.toml`, in the words of the version they were published for; they are
translated when a server gets them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from pgdyno.errors import InvalidInput, nearest_hint
from pgdyno.servers.settings_file import SettingsFile, read_settings_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named set of settings, and in one sentence what it was made for."""

    name: str
    about: str
    settings: Mapping[str, str]


@cache
def profiles() -> Mapping[str, Profile]:
    """All profiles by name."""
    facts = tomllib.loads(files("pgdyno.servers").joinpath("profiles.toml").read_text())
    return {
        name: Profile(
            name=name,
            about=each["about"],
            settings={setting: str(value) for setting, value in each["settings"].items()},
        )
        for name, each in facts.items()
    }


def profile(name: str) -> Profile:
    """One profile; raises `InvalidInput` where there is none of that name."""
    found = profiles().get(name)
    if found is None:
        raise InvalidInput(
            f"profile '{name}' does not exist", hint=nearest_hint(name, list(profiles()))
        )
    return found


def settings_from(
    profile_name: str | None, file: Path | None, given: Mapping[str, str]
) -> SettingsFile:
    """Settings of a profile, then of a file, then those given one by one; the later wins.

    Raises `InvalidInput` for an unknown profile or a file that cannot be read.
    """
    parts: list[Mapping[str, str]] = []
    notices: tuple[str, ...] = ()
    if profile_name is not None:
        parts.append(profile(profile_name).settings)
    if file is not None:
        read = read_settings_file(file)
        parts.append(read.settings)
        notices = read.notices
    together: dict[str, str] = {}
    for part in (*parts, given):
        for name, value in part.items():
            # Names are the same whatever their case; the last spelling is kept.
            for other in [each for each in together if each.lower() == name.lower()]:
                del together[other]
            together[name] = value
    return SettingsFile(settings=together, notices=notices)
