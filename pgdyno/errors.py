"""Errors a person can act on: one lower-case line saying what is wrong and where, then hints.

Everything raised on purpose is a `PgdynoError`; the command line prints it without a traceback
and exits with its `exit_code`. Anything else that escapes is a bug and keeps its traceback.

>>> print(PgdynoError("workload 'tpbc' does not exist", hint="did you mean 'tpcb'?"))
workload 'tpbc' does not exist
hint: did you mean 'tpcb'?
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

EXIT_DONE = 0
EXIT_COULD_NOT = 1
EXIT_USAGE = 2
EXIT_CHECK_FAILED = 3
EXIT_INTERRUPTED = 130


class PgdynoError(Exception):
    """It could not be done (exit code 1): a server that does not start, a disk that is full."""

    exit_code = EXIT_COULD_NOT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class InvalidInput(PgdynoError):
    """What was asked for is wrong (exit code 2); nothing was started."""

    exit_code = EXIT_USAGE


class Problems(InvalidInput):
    """All problems of one file or command line at once, one line each."""

    def __init__(self, problems: Sequence[str], *, hint: str | None = None) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems), hint=hint)


class Interrupted(PgdynoError):
    """Ctrl-C or a termination signal; results so far are kept and what was started is stopped."""

    exit_code = EXIT_INTERRUPTED


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """Name the known words nearest to a mistyped one, or list them all when none is near.

    >>> nearest_hint("tpbc", ["noop", "tpcb", "userlogin"])
    "did you mean 'tpcb'?"
    >>> nearest_hint("x", ["noop", "tpcb"])
    'there are noop, tpcb'
    """
    words = sorted(known)
    near = difflib.get_close_matches(name, words, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(f"'{word}'" for word in near) + "?"
    if len(words) == 1:
        return f"there is only {words[0]}"
    shown = ", ".join(words[:20]) + (", …" if len(words) > 20 else "")
    return f"there are {shown}" if words else "there are none"
