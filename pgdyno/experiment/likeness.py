"""Whether two variants would run the same thing, however their settings are spelled. Pure.

Quantities are compared by what they amount to, words for true and false by what they mean. What
only a server knows, such as that 131072 of its pages are 1 GB, is not known here.

>>> canonical("1GB") == canonical("1024 MB"), canonical("60s") == canonical("1min")
(True, True)
>>> canonical("true"), canonical("pg_catalog, public")
('on', 'pg_catalog, public')
"""

from __future__ import annotations

import re
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from pgdyno.model import Variant

# PostgreSQL's units, which it reads with exactly these letters.
_BYTES: Final = MappingProxyType(
    {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
)  # fmt: skip
_MICROSECONDS: Final = MappingProxyType(
    {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
)
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_TRUTH: Final = MappingProxyType(
    {**dict.fromkeys(("on", "true", "yes"), "on"), **dict.fromkeys(("off", "false", "no"), "off")}
)


def likeness(variant: Variant) -> str:
    """What a variant runs, without its name: equal for two that cannot differ but by chance."""
    settings = {
        name.lower(): canonical(value) for name, value in sorted(variant.system.settings.items())
    }
    system = variant.system.model_copy(update={"settings": settings})
    bare = {"name": "", "levels": {}, "system": system}
    return variant.model_copy(update=bare).model_dump_json()


def canonical(value: str) -> str:
    """A setting's value in one spelling."""
    text = value.strip()
    match = _QUANTITY.fullmatch(text)
    if match is not None:
        for units, unit in ((_BYTES, "B"), (_MICROSECONDS, "us")):
            if match[2] in units:
                return f"{(Decimal(match[1]) * units[match[2]]).normalize():f}{unit}"
    return _TRUTH.get(text.lower(), text)
