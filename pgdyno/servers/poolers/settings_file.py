"""A pooler's settings from a file as people keep it: pgpool.conf, pgbouncer.ini.

What says where that pooler's servers and files were is pgdyno's to choose, so it is left out with a
notice each. HAProxy's file has sections of its own: its lines are given as settings instead.
"""

from __future__ import annotations

import configparser
from pathlib import Path

from pgdyno.errors import InvalidInput, Problems
from pgdyno.servers.poolers.facts import facts_of
from pgdyno.servers.poolers.translation import base_name
from pgdyno.servers.settings_file import SettingsFile, parse_settings

_SECTION = "pgbouncer"


def read_pooler_file(kind: str, path: Path) -> SettingsFile:
    """Read a file of one kind; `InvalidInput` where it cannot be read or is none."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"cannot read the settings file '{path}': {reason}") from error
    return parse_pooler_file(kind, text, str(path))


def parse_pooler_file(kind: str, text: str, name: str) -> SettingsFile:
    r"""Settings from a file's text; `name` is for messages.

    >>> found = parse_pooler_file("pgpool", "max_pool = 4 // each\nbackend_port0 = 1\n", "p.conf")
    >>> found.settings
    {'max_pool': '4'}
    """
    if kind == "haproxy":
        raise InvalidInput(
            f"'{name}' cannot be read: haproxy's lines are given as settings",
            hint='write balance = "leastconn", "global.nbthread" = 2, "server.maxconn" = 50',
        )
    read = parse_settings(text, name) if kind == "pgpool" else _sections(text, name)
    owned = facts_of(kind).owned
    left_out = {
        one: reason
        for one in read.settings
        if (reason := owned.get(one, owned.get(base_name(one), "")))
    }
    notices = [
        f"{name}: {one} = '{read.settings[one]}' is left out: it is pgdyno's to choose ({reason})"
        for one, reason in left_out.items()
    ]
    kept = {one: value for one, value in read.settings.items() if one not in left_out}
    return SettingsFile(settings=kept, notices=(*read.notices, *notices))


def _sections(text: str, name: str) -> SettingsFile:
    """The section of PgBouncer's own settings; databases and users are left out."""
    parser = configparser.ConfigParser(
        interpolation=None, delimiters=("=",), comment_prefixes=(";", "#"), strict=False
    )
    try:
        parser.read_string(text, name)
    except configparser.Error as error:
        raise Problems([str(error).splitlines()[0]]) from error
    others = [one for one in parser.sections() if one != _SECTION and parser.items(one)]
    notices = [f"{name}: section [{one}] is left out: pgdyno knows its servers" for one in others]
    settings = dict(parser.items(_SECTION)) if parser.has_section(_SECTION) else {}
    return SettingsFile(settings=settings, notices=tuple(notices))
