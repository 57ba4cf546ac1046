"""Charts as data: panels of lines with units, encoded for the page. No drawing here, no HTML.

Values travel as base64 of little-endian Float32 (horizontal: Float64), NaN where there is none: a
third of the size of JSON numbers and quicker to read. `assets/report.js` is the one reader.
"""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series of a panel. `colour` names a CSS variable of the page's palette: `blue`."""

    label: str
    about: str
    colour: str
    values: Values
    dashed: bool = False
    filled: bool = False
    steps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart: lines over one horizontal axis.

    `unit` is printed with every value. `stacked` lines are drawn on top of each other, in order.
    `scale` of values: linear from zero, or logarithmic; `share` is linear from 0 to 100 %.
    """

    key: str
    title: str
    about: str
    unit: str
    scale: Literal["linear", "log", "share"]
    horizontal: Values
    lines: tuple[Line, ...]
    stacked: bool = False


def encode_panel(panel: Panel) -> dict[str, Any]:
    """A panel as the page reads it."""
    return {
        "title": panel.title,
        "unit": panel.unit,
        "scale": panel.scale,
        "stacked": panel.stacked,
        "x": encode_values(panel.horizontal, "d"),
        "lines": [
            {
                "label": line.label,
                "about": line.about,
                "colour": line.colour,
                "dashed": line.dashed,
                "filled": line.filled,
                "steps": line.steps,
                "values": encode_values(line.values, "f"),
            }
            for line in panel.lines
        ],
    }


def encode_values(values: Values, kind: Literal["d", "f"]) -> str:
    """Base64 of the values as little-endian Float64 (`d`) or Float32 (`f`).

    >>> encode_values([1.0, None], "f")
    'AACAPwAAwH8='
    """
    packed = array(kind, (math.nan if value is None else value for value in values))
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes()).decode("ascii")
