"""How the server was compiled: a build for finding faults is slower than one for use.

Assertions (`--enable-cassert`) and a missing optimisation (`-O0`) cost more than most of what is
ever compared, and nobody sees them in a throughput.
"""

from __future__ import annotations

import re

from pgdyno.errors import PgdynoError
from pgdyno.observers.session import Session

_LEVEL = re.compile(r"(?:^|\s)-O(\w*)")
_UNOPTIMISED = ("0", "g")


def read_compiler_flags(session: Session) -> str | None:
    """What the C compiler was told; None where the server does not tell us."""
    try:
        return str(session.ask_one("compiler_flags")["flags"])
    except PgdynoError:
        return None


def build_concerns(assertions: str | None, compiler_flags: str | None) -> tuple[str, ...]:
    """What makes a build unfit for judging speed, a sentence each. Pure.

    `assertions` is the setting `debug_assertions`; None for what is not known. Of several levels of
    optimisation the compiler takes the last.

    >>> build_concerns("on", "-Wall -O2 -g -O0")  # doctest: +NORMALIZE_WHITESPACE
    ('the server was built with assertions, which slow it down: its numbers are for comparing with
      its own kind only',
     'the server was compiled without optimisation (-O0): its numbers are for comparing with its own
      kind only')
    >>> build_concerns("off", "-O2")
    ()
    """
    concerns = []
    only = "its numbers are for comparing with its own kind only"
    if assertions == "on":
        concerns.append(f"the server was built with assertions, which slow it down: {only}")
    if compiler_flags is not None:
        levels = _LEVEL.findall(compiler_flags)
        if not levels or levels[-1] in _UNOPTIMISED:
            said = f"-O{levels[-1]}" if levels else "no -O"
            concerns.append(f"the server was compiled without optimisation ({said}): {only}")
    return tuple(concerns)
