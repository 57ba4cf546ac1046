r"""Numbers as the reports print them: with the digits that help; text made safe to show.

>>> [milliseconds(ns) for ns in (294, 899_903, 12_345_678, 1_234_567_890)]
['0.000294', '0.900', '12.346', '1 234.6']
>>> mean_milliseconds(2_554.0)
'0.002554'
>>> moment("2026-11-20T18:40:00+00:00")
'20 November 2026, 18:40 UTC'
>>> visible("a\x1b[31mred\nb")
'a␛[31mred b'
"""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, datetime

from pgdyno.units import format_count

# Not strftime's %B: a report's language does not depend on who renders it.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_CONTROLS = {code: 0x2400 + code for code in range(32)} | dict.fromkeys(
    # Delete, the C1 controls, and those that turn the direction of writing.
    (0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    "�",
)

# A number's groups of digits and its unit stay on one line.
_TOGETHER = re.compile(r"(?<=\d) (?=\d{3}(?!\d)|(?:µs|ms|s|min|h|bytes|[kMGT]B|tps|%)(?!\w))")
_NO_BREAK = "\u00a0"


def milliseconds(ns: float) -> str:
    """Nanoseconds as milliseconds: three decimals, six below 0.1 ms, one above a second."""
    ms = ns / 1e6
    if ms and ms < 0.1:
        return f"{ms:.6f}"
    return f"{ms:.3f}" if ms < 1000 else f"{ms:,.1f}".replace(",", " ")


def mean_milliseconds(ns: float) -> str:
    """Six decimals, as pgbench's users know a statement's mean; sums are exact, so they count."""
    return f"{ns / 1e6:.6f}"


def rate(per_s: float) -> str:
    """A rate without its unit: whole from 1000, one decimal from 10, else three digits."""
    if per_s >= 1000:
        return format_count(per_s)
    return f"{per_s:.1f}" if per_s >= 10 else f"{per_s:.3g}"


def moment(text: str) -> str:
    """An ISO 8601 time as people read it, in UTC; anything else as it is."""
    try:
        time = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return visible(text)
    return f"{time.day} {_MONTHS[time.month - 1]} {time:%Y, %H:%M} UTC"


def visible(text: str) -> str:
    """Text on one line, control characters made visible: a name cannot move the cursor."""
    return " ".join(text.split()).translate(_CONTROLS)


def prose(text: str) -> str:
    """Text of a sentence, made visible, in which no line breaks inside a quantity."""
    return _TOGETHER.sub(_NO_BREAK, visible(text))


def wrapped(text: str, width: int) -> str:
    """Text in lines of at most `width` characters that never break inside a quantity.

    >>> wrapped("moved between 1 738.0/s and 4 257.0/s in 20.0 s", 16).splitlines()
    ['moved between', '1 738.0/s and', '4 257.0/s in', '20.0 s']
    """
    joined = _TOGETHER.sub(_NO_BREAK, text)
    lines = textwrap.wrap(joined, max(width, 1), break_on_hyphens=False)
    return "\n".join(lines).replace(_NO_BREAK, " ")
