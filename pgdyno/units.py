"""Quantities as people write and read them: "10s", "512MB", "5000/s"; 1.25 ms, 3.2 GB.

Parsing returns SI base numbers (seconds, bytes, per second) and raises `InvalidInput`.
Formatting never decides anything: it takes a number with its unit and returns text.

>>> parse_duration_s("1m30s"), parse_duration_s("250ms"), parse_duration_s("60")
(90.0, 0.25, 60.0)
>>> format_duration_ns(1_234_567), format_bytes(3 * 1024**3), format_count(1234567)
('1.235 ms', '3.0 GB', '1 234 567')
"""

from __future__ import annotations

import re

from pgdyno.errors import InvalidInput

_SECONDS = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*")
_BYTES = {"": 1, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


def parse_duration_s(text: str) -> float:
    """Seconds in a duration such as `10s`, `2min`, `1h30m`, `250ms`; a bare number is seconds."""
    whole = text.strip()
    rest, total_s = whole, 0.0
    while rest:
        part = _DURATION_PART.match(rest)
        unit = part.group(2) if part else ""
        bare = part is not None and not unit and part.group(0) == whole
        if part is None or not (bare or unit in _SECONDS):
            raise _not_a_duration(text)
        total_s += float(part.group(1)) * _SECONDS[unit or "s"]
        rest = rest[part.end() :]
    if not whole:
        raise _not_a_duration(text)
    return total_s


def _not_a_duration(text: str) -> InvalidInput:
    return InvalidInput(f"'{text}' is not a duration", hint="write it as 60s, 2min or 250ms")


def parse_rate_per_s(text: str) -> float:
    """Events per second in `5000`, `5000/s` or `300/min`; must be above zero."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*(s|min|h))?\s*", text)
    if match is None or float(match.group(1)) <= 0:
        raise InvalidInput(f"'{text}' is not a rate", hint="write it as 5000/s")
    return float(match.group(1)) / _SECONDS[match.group(2) or "s"]


def parse_count(text: str) -> int:
    """A whole number; `_` or `,` between thousands and `k`, `M`, `G` allowed: `2_000_000`, `2M`."""
    match = re.fullmatch(r"\s*(\d[\d_,]*(?:\.\d+)?)\s*([kMG]?)\s*", text)
    if match is not None:
        value = float(match.group(1).replace("_", "").replace(",", ""))
        value *= {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match.group(2)]
        if value == int(value):
            return int(value)
    raise InvalidInput(
        f"'{text}' is not a whole number", hint="write it as 2000000, 2_000_000 or 2M"
    )


def parse_bytes(text: str) -> int:
    """Bytes in `512MB`, `2 GB`, `8kB` (powers of 1024, as PostgreSQL counts)."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?B?)\s*", text)
    unit = match.group(2).upper() if match else ""
    unit = unit if unit in _BYTES else unit + "B"
    if match is None or unit not in _BYTES:
        raise InvalidInput(f"'{text}' is not a size", hint="write it as 512MB or 2GB")
    return int(float(match.group(1)) * _BYTES[unit])


def format_duration_ns(ns: float) -> str:
    """Nanoseconds in the unit people compare: µs below 1 ms, ms below 1 s, then s."""
    if ns < 1e6:
        return f"{ns / 1e3:.1f} µs"
    if ns < 1e9:
        return f"{ns / 1e6:.3f} ms"
    return f"{ns / 1e9:.2f} s"


def format_duration_s(seconds: float) -> str:
    """Seconds as people say them: `850 ms`, `12.3 s`, `4 min 05 s`, `2 h 03 min`."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


def format_bytes(count: float) -> str:
    """Bytes with PostgreSQL's unit names (powers of 1024)."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(count) < 1024:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"


def format_count(count: float) -> str:
    """A whole number with thin groups: `1 234 567`."""
    return f"{count:,.0f}".replace(",", " ")


def format_counted(count: int, noun: str) -> str:
    """A count with its noun: `1 client`, `2 000 clients`."""
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def format_per_s(rate: float) -> str:
    """A rate with as many digits as help: `14 506.3/s`, `0.52/s`."""
    return f"{format_count(rate)}/s" if rate >= 100_000 else f"{rate:,.1f}/s".replace(",", " ")


def format_share(share: float) -> str:
    """A fraction in [0, 1] as percent: `23.4 %`."""
    return f"{share * 100:.1f} %"
