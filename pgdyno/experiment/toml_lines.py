r"""Where in a TOML text each key and each element stands, which `tomllib` does not tell. Pure.

The text must be valid TOML, that is, `tomllib` has read it: nothing is judged here.

>>> lines = key_lines('clients = 4\n[factors]\n"set:fsync" = [\n  "on",\n  "off",\n]\n')
>>> lines[("clients",)], lines[("factors", "set:fsync")], lines[("factors", "set:fsync", 1)]
(1, 3, 5)
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

KeyPath = tuple[str | int, ...]
"""Keys of tables and numbers of elements (from 0), from the outside in."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BASIC = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_LITERAL = re.compile(r"'''.*?'{3,5}|'[^'\n]*'", re.DOTALL)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}\n#]+")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every table, key and element of an array."""
    reader = _Reader(text=text)
    reader.document()
    return reader.lines


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Goes through the text once; `at` is where it is."""

    text: str
    at: int = 0
    lines: dict[KeyPath, int] = field(default_factory=dict)
    elements: dict[KeyPath, int] = field(default_factory=dict)

    def document(self) -> None:
        """Tables and keys until the text ends."""
        table: KeyPath = ()
        self._blank()
        while self.at < len(self.text):
            if self._skip("[["):
                table = self._element(self._key())
                self._skip("]]")
            elif self._skip("["):
                table = self._inside(self._key())
                self._note_all(table, self.at)
                self._skip("]")
            else:
                self._pair(table)
            self._blank()

    def _pair(self, table: KeyPath) -> None:
        begin = self.at
        key = self._key()
        self._note_all((*table, *key), begin)
        self._blank()
        self._skip("=")
        self._blank()
        self._value((*table, *key))

    def _value(self, path: KeyPath) -> None:
        if self._skip("["):
            self._sequence(path)
        elif self._skip("{"):
            self._blank()
            while not self._skip("}"):
                self._pair(path)
                self._separator()
        elif not (self._match(_BASIC) or self._match(_LITERAL)):
            self._match(_BARE_VALUE)

    def _sequence(self, path: KeyPath) -> None:
        self._blank()
        number = 0
        while not self._skip("]"):
            self._note((*path, number), self.at)
            self._value((*path, number))
            self._separator()
            number += 1

    def _key(self) -> tuple[str, ...]:
        parts = []
        while True:
            self._blank()
            quoted = self._match(_BASIC) or self._match(_LITERAL)
            parts.append(tomllib.loads(f"_ = {quoted}")["_"] if quoted else self._match(_BARE_KEY))
            self._blank()
            if not self._skip("."):
                return tuple(parts)

    def _inside(self, key: tuple[str, ...]) -> KeyPath:
        """A table's path; a part that is an array of tables means its last element so far."""
        path: KeyPath = ()
        for part in key:
            path = (*path, part)
            if path in self.elements:
                path = (*path, self.elements[path])
        return path

    def _element(self, key: tuple[str, ...]) -> KeyPath:
        array = (*self._inside(key[:-1]), key[-1])
        self.elements[array] = self.elements.get(array, -1) + 1
        path = (*array, self.elements[array])
        self._note_all(path, self.at)
        return path

    def _note_all(self, path: KeyPath, at: int) -> None:
        """The line of a path and of every table around it that no earlier line has named."""
        for length in range(1, len(path) + 1):
            self._note(path[:length], at)

    def _note(self, path: KeyPath, at: int) -> None:
        self.lines.setdefault(path, self.text.count("\n", 0, at) + 1)

    def _separator(self) -> None:
        self._blank()
        self._skip(",")
        self._blank()

    def _blank(self) -> None:
        self._match(_BLANK)

    def _skip(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None or not found.group():
            return ""
        self.at = found.end()
        return found.group()
