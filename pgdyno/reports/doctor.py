"""What `pgdyno doctor` found, in the terminal and as JSON.

Each finding, what a published benchmark had, and advice where it matters. Colour only repeats what
the words say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgdyno.servers.findings import Finding
from pgdyno.units import format_counted

_TITLES: Final[Mapping[str, str]] = {
    "machine": "machine",
    "kernel": "kernel settings",
    "limits": "limits of processes",
    "storage": "storage",
    "postgresql": "PostgreSQL on this machine",
    "system": "the system to be measured",
}
_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "fine": ("ok", "green"),
    "consider": ("consider", "yellow"),
    "problem": ("problem", "bold red"),
    "unknown": ("?", "dim"),
    "fact": ("", "dim"),
}
_MARK_WIDTH: Final = 8
_NAME_WIDTH: Final = 14
_NAME_WIDTH_MAX: Final = 30
_ADVICE_INDENT: Final = 3


def render_doctor(findings: Sequence[Finding], console: Console) -> None:
    """Print all findings by section, then how many there are."""
    for section, group in groupby(findings, key=lambda finding: finding.section):
        found = list(group)
        console.print(Text(_TITLES[section], style="bold"))
        width = min(max(len(finding.name) for finding in found), _NAME_WIDTH_MAX)
        for finding in found:
            _print(finding, max(width, _NAME_WIDTH), console)
        console.print()
    console.print(Text(conclusion(findings)))


def doctor_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """The same for programs: `findings`, and how many are problems and worth a thought."""
    return {
        "problems": _count(findings, "problem"),
        "consider": _count(findings, "consider"),
        "findings": [asdict(finding) for finding in findings],
    }


def conclusion(findings: Sequence[Finding]) -> str:
    """How many findings matter, in one line."""
    problems, consider = _count(findings, "problem"), _count(findings, "consider")
    first = "no problem" if not problems else format_counted(problems, "problem")
    return f"{first}, {consider} to consider; nothing was changed"


def advice_of(finding: Finding) -> str | None:
    """Advice worth its line: not where all is well, nor for a fact that is as published."""
    if finding.verdict in {"consider", "problem"}:
        return finding.advice
    differs = finding.published is not None and finding.published != finding.value
    return finding.advice if finding.verdict == "fact" and differs else None


def _print(finding: Finding, name_width: int, console: Console) -> None:
    """A line of mark, name and value, and below it the advice."""
    mark, style = _MARKS[finding.verdict]
    row = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    row.add_column(width=_MARK_WIDTH, no_wrap=True)
    row.add_column(width=name_width, overflow="fold")
    row.add_column(overflow="fold")
    row.add_row(Text(mark, style=style), finding.name, _value(finding))
    console.print(row)
    advice = advice_of(finding)
    if advice is not None:
        line = Text(advice, style="dim" if finding.verdict == "fact" else style)
        console.print(Padding(line, (0, 0, 0, _MARK_WIDTH + _ADVICE_INDENT)))


def _value(finding: Finding) -> Text:
    """The value, and what was published."""
    text = Text(finding.value)
    if finding.published is not None:
        same = finding.published == finding.value
        beside = "as published" if same else f"published: {finding.published}"
        text.append(f"  ({beside})", style="dim")
    return text


def _count(findings: Sequence[Finding], verdict: str) -> int:
    return sum(1 for finding in findings if finding.verdict == verdict)
