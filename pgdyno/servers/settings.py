"""`--set name=value`, checked against the server program itself before anything is started.

`postgres -C` reads settings, judges them and ends within milliseconds, without a data folder. So
every version judges by its own rules, and no list of ours can grow old.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from pgdyno.errors import PgdynoError, Problems
from pgdyno.hosts.base import Command, Completed, Host
from pgdyno.servers.binaries import Installation
from pgdyno.servers.translation import Translated, comparable_locale, translate

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*")
_CHECK_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSetting:
    """One line of `postgres --describe-config`; the limits are empty where the type has none.

    `context` says when a change counts: `postmaster` at a start, `sighup` at a reload, `user` …
    """

    name: str
    type: str
    lowest: str
    highest: str
    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFacts:
    """`settings.toml`: settings that are ours, and words for types."""

    owned: Mapping[str, str]
    types: Mapping[str, str]


def setting_facts() -> SettingFacts:
    """Read `settings.toml`."""
    facts = tomllib.loads(files("pgdyno.servers").joinpath("settings.toml").read_text())
    return SettingFacts(owned=facts["owned"], types=facts["types"])


def parse_description(text: str) -> dict[str, KnownSetting]:
    """Settings by name from the tab-separated output of `postgres --describe-config`."""
    known = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) >= 7:
            known[fields[0]] = KnownSetting(
                name=fields[0], type=fields[3], lowest=fields[5], highest=fields[6],
                context=fields[1],
            )  # fmt: skip
    return known


def known_settings(
    installation: Installation, host: Host, user: str | None
) -> dict[str, KnownSetting]:
    """Every setting that the server program knows, asked of the program itself."""
    described = host.run(
        Command(words=[str(installation.bin_dir / "postgres"), "--describe-config"], user=user),
        deadline_s=_CHECK_DEADLINE_S,
    )
    return parse_description(described.output)


def understood(settings: Mapping[str, str], version_num: int, host: Host) -> Translated:
    """Settings in the words of that version, with a line for each that was changed or dropped."""
    return translate(settings, version_num, installed_locales(host))


def installed_locales(host: Host) -> frozenset[str] | None:
    """The operating system's locales as they can be compared; None where it does not list them."""
    try:
        listed = host.run(Command(words=["locale", "-a"]), deadline_s=_CHECK_DEADLINE_S)
    except PgdynoError:
        return None
    names = frozenset(comparable_locale(line.strip()) for line in listed.output.splitlines())
    return names if listed.status == 0 and names else None


def check_settings(
    settings: Mapping[str, str], installation: Installation, host: Host, user: str | None
) -> None:
    """Raise `Problems` with every name that does not exist and every value that is impossible.

    Old names and values are translated first, as they are when the server gets them.
    """
    if not settings:
        return
    facts = setting_facts()
    problems = [
        f"setting '{name}' is pgdyno's to choose: {facts.owned[name.lower()]}"
        for name in settings
        if name.lower() in facts.owned
    ]
    theirs = {name: value for name, value in settings.items() if name.lower() not in facts.owned}
    rest = understood(theirs, installation.version_num, host).settings
    judged_together = _judge(rest, installation, host, user) if rest else None
    if judged_together is not None and judged_together.status != 0:
        known = known_settings(installation, host, user)
        for name, value in rest.items():
            judged = _judge({name: value}, installation, host, user)
            if judged.status != 0:
                problems.append(
                    explain(name, value, judged.error, known)
                    + f" (postgresql {installation.version})"
                )
    if problems:
        raise Problems(problems)


def explain(name: str, value: str, said: str, known: Mapping[str, KnownSetting]) -> str:
    """One line for a refused setting, from what the server wrote to its log.

    >>> explain("max_conn", "1", 'FATAL:  unrecognized configuration parameter "max_conn"', {})
    "setting 'max_conn' does not exist"
    """
    fatal = re.search(r"FATAL:\s+(.*)", said)
    reason = fatal.group(1).strip() if fatal else (said.strip().splitlines() or ["refused"])[-1]
    if "unrecognized configuration parameter" in reason:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
        guess = f"; did you mean '{near[0]}'?" if near else ""
        return f"setting '{name}' does not exist{guess}"
    hints = re.findall(r"HINT:\s+(.*)", said)
    allowed = hints[-1].strip() if hints else _allowed(known.get(name.lower()), reason)
    return f"setting '{name}' cannot be '{value}': {reason}" + (f"; {allowed}" if allowed else "")


def render_settings(settings: Mapping[str, str]) -> str:
    r"""Lines of a configuration file; backslash and quote have a meaning there.

    >>> print(render_settings({"search_path": r"it's, \x"}), end="")
    search_path = 'it''s, \\x'
    """
    return "".join(
        "{} = '{}'\n".format(name, value.replace("\\", "\\\\").replace("'", "''"))
        for name, value in settings.items()
    )


def _allowed(setting: KnownSetting | None, reason: str) -> str:
    """What the type of a setting allows; nothing where the server has said so already."""
    if setting is None or "valid range" in reason or "cannot be changed" in reason:
        return ""
    words = setting_facts().types.get(setting.type.upper(), "")
    return (
        "allowed: " + words.format(lowest=setting.lowest, highest=setting.highest) if words else ""
    )


def _judge(
    settings: Mapping[str, str], installation: Installation, host: Host, user: str | None
) -> Completed:
    """Let the server program read settings and end. Status 0: it would start with them."""
    impossible = [
        name for name, value in settings.items() if not _NAME.fullmatch(name) or "\n" in value
    ]
    if impossible:
        name = impossible[0]
        said = (
            f'FATAL:  unrecognized configuration parameter "{name}"'
            if not _NAME.fullmatch(name)
            else "FATAL:  a value is one line"
        )
        return Completed(status=1, output="", error=said)
    words = [str(installation.bin_dir / "postgres"), "-C", "data_directory"]
    words += ["-c", "config_file=/dev/null"]
    for name, value in settings.items():
        words += ["-c", f"{name}={value}"]
    return host.run(
        # Its messages are read here, so they must be in English.
        Command(words=[*words, "-D", "/"], user=user, environment={"LC_ALL": "C"}),
        deadline_s=_CHECK_DEADLINE_S,
    )
