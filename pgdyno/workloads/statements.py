r"""Splits SQL text into its statements, and a `load.sql` into its sections. Pure.

Indexes are built side by side, each statement on a connection of its own, so they must be told
apart; a semicolon inside quotes, dollar quotes or comments ends nothing.

>>> split_statements("create index on t (a); -- one; two\nselect ';' , $q$ ; $q$;")
('create index on t (a)', "select ';' , $q$ ; $q$")
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pgdyno.contract import LoadSection
from pgdyno.errors import PgdynoError, Problems
from pgdyno.expressions import Value, evaluate_whole

_TOKEN = re.compile(
    r"""
    --[^\n]*                                    # a comment to the end of the line
  | /\*                                         # a comment that may hold others
  | [eE]'(?:[^'\\]|\\.|'')*'                    # a string with escapes
  | '(?:[^']|'')*'                              # a string
  | "(?:[^"]|"")*"                              # a quoted identifier
  | \$(?P<tag>[A-Za-z_][A-Za-z_0-9]*)?\$        # the beginning of a dollar quote
  | [A-Za-z_0-9$\u0080-\uffff]+                 # a word, so that its $ and e begin nothing
  | .                                           # anything else
    """,
    re.VERBOSE | re.DOTALL,
)
_NESTED = re.compile(r"/\*|\*/")
_SECTION = re.compile(
    r"^--[ \t]*section[ \t]+(\w+)[ \t]*:[ \t]*(.+?)[ \t]+rows[ \t]*$", re.MULTILINE
)


def split_statements(text: str) -> tuple[str, ...]:
    """The statements of `text` in order, without comments around them and without semicolons."""
    statements, current, at = [], "", 0
    while match := _TOKEN.match(text, at):
        token, at = match.group(), match.end()
        if token == "/*":
            at = _after_comment(text, at)
            token = " "
        elif token.startswith("--"):
            token = " "
        elif token.startswith("$") and token.endswith("$"):
            end = text.find(token, at)
            at = len(text) if end < 0 else end + len(token)
            token = text[match.start() : at]
        if token == ";":
            statements.append(current.strip())
            current = ""
        else:
            current += token
    statements.append(current.strip())
    return tuple(statement for statement in statements if statement)


def _after_comment(text: str, at: int) -> int:
    depth = 1
    while depth:
        match = _NESTED.search(text, at)
        if match is None:
            return len(text)
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at


def split_sections(text: str, source: str, names: Mapping[str, Value]) -> tuple[LoadSection, ...]:
    """The sections of a `load.sql`, each begun by a line `-- section NAME: EXPRESSION rows`.

    `names` are what the row counts are computed from. Raises `Problems` with every wrong section.
    """
    sections: list[LoadSection] = []
    problems: list[str] = []
    heads = list(_SECTION.finditer(text))
    before = text[: heads[0].start()] if heads else text
    if split_statements(before):
        problems.append(f"{source}: SQL stands before the first '-- section NAME: EXPRESSION rows'")
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        script = text[head.end() : following.start() if following else len(text)].strip("\n")
        name, at = head.group(1), f"{source}:{text.count(chr(10), 0, head.start()) + 1}"
        if name in {section.name for section in sections}:
            problems.append(f"{at}: there are two sections '{name}'")
        elif not split_statements(script):
            problems.append(f"{at}: section '{name}' is empty")
        else:
            try:
                rows = evaluate_whole(head.group(2), names)
                if rows < 0:
                    problems.append(f"{at}: section '{name}' has {rows} rows")
                    continue
                sections.append(
                    LoadSection(name=name, rows=rows, source=source, script=script + "\n")
                )
            except PgdynoError as error:
                problems.append(f"{at}: {error.message}")
    if problems:
        raise Problems(problems)
    return tuple(sections)
