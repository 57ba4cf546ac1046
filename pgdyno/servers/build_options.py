"""How a PostgreSQL is to be built, what that needs, and what its log says when it fails."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.errors import InvalidInput, Problems
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.cache import check_name

_BLOCK_KB = (1, 2, 4, 8, 16, 32)
_WAL_BLOCK_KB = (*_BLOCK_KB, 64)
_ASK_DEADLINE_S = 60.0
_OWNED = ("--prefix", "--with-blocksize", "--with-wal-blocksize")
# What says that a step failed, the most telling first.
_FAILURES = (r"^configure: error: (.*)", r"(.*: (?:fatal )?error: .*)", r"^(make.*\*\*\* .*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How to build. Sizes in kB; `configure`: further options of configure; patches in order."""

    block_kb: int = 8
    wal_block_kb: int = 8
    configure: tuple[str, ...] = ()
    patches: tuple[Path, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library that configure asks for by default; without it the server lacks one ability."""

    option: str
    header: str
    package: str
    lost: str


# PostgreSQL's configure.ac: what is on unless --without-… is given. ICU: since version 16.
_LIBRARIES = (
    Library(
        option="readline",
        header="readline/readline.h",
        package="libreadline-dev",
        lost="psql has no line editing",
    ),
    Library(
        option="zlib", header="zlib.h", package="zlib1g-dev", lost="no compression in pg_dump"
    ),
    Library(
        option="icu", header="unicode/ucol.h", package="libicu-dev", lost="no ICU collations"
    ),
)  # fmt: skip


def check_options(options: BuildOptions) -> None:
    """Raise `Problems` with everything that cannot be built. Reads whether patches exist."""
    problems = []
    for word, given, possible in (
        ("block size", options.block_kb, _BLOCK_KB),
        ("WAL block size", options.wal_block_kb, _WAL_BLOCK_KB),
    ):
        if given not in possible:
            sizes = ", ".join(map(str, possible))
            problems.append(f"a {word} of {given} kB is impossible: there are {sizes} kB")
    for word in options.configure:
        if not re.match(r"--[a-z]|[A-Z_]+=", word):
            problems.append(f"'{word}' is not an option of configure (--with-…, CFLAGS=…)")
        elif word.partition("=")[0] in _OWNED:
            problems.append(f"configure's {word.partition('=')[0]} is pgdyno's to choose")
    problems += [f"the patch '{one}' is not a file" for one in options.patches if not one.is_file()]
    if options.name is not None:
        try:
            check_name(options.name)
        except InvalidInput as error:
            problems.append(error.message)
    if problems:
        raise Problems(problems)


def configure_words(options: BuildOptions, switched_off: Sequence[str]) -> tuple[str, ...]:
    """Options of configure, but for the place.

    >>> configure_words(BuildOptions(block_kb=16, configure=("--with-lz4",)), ("icu",))
    ('--with-blocksize=16', '--without-icu', '--with-lz4')
    """
    sizes = (("--with-blocksize", options.block_kb), ("--with-wal-blocksize", options.wal_block_kb))
    words = [f"{word}={size}" for word, size in sizes if size != 8]
    return (*words, *(f"--without-{name}" for name in switched_off), *options.configure)


def missing_tools(tree: Path) -> tuple[str, ...]:
    """Programs that building this source needs and that are not on this machine.

    Releases before 17 bring what bison and flex make of their grammars.
    """
    needed = ["make", "gcc", "perl"]
    if not (tree / "src/backend/parser/gram.c").exists():
        needed += ["bison", "flex"]
    return tuple(name for name in needed if shutil.which(name) is None)


def failure_line(log: str) -> str:
    r"""The line of a log of configure or make that says why it ended.

    >>> failure_line("checking\nconfigure: error: no acceptable C compiler found\nSee config.log")
    'no acceptable C compiler found'
    >>> failure_line("a.c:7:1: error: expected ';'\nmake: *** [a.o] Error 1")
    "a.c:7:1: error: expected ';'"
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for pattern in _FAILURES:
        for line in lines:
            match = re.search(pattern, line)
            if match:
                return match.group(1)
    return lines[-1] if lines else "it said nothing"


def missing_libraries(options: BuildOptions, host: Host) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Abilities to switch off because their library is missing, and a line for each.

    What the person's own options say of a library holds.
    """
    asked = [
        one
        for one in _LIBRARIES
        if not any(re.match(rf"--with(out)?-{one.option}\b", word) for word in options.configure)
    ]
    questions = (
        f"#if !__has_include(<{one.header}>)\nmissing {one.option}\n#endif\n" for one in asked
    )
    command = Command(words=["gcc", "-E", "-P", "-x", "c", "-"], input_text="".join(questions))
    answer = host.run(command, deadline_s=_ASK_DEADLINE_S).output.split()
    missing = [one for one in asked if one.option in answer]
    lines = (
        f"built --without-{one.option}: {one.lost}; apt-get install {one.package} before "
        "building brings it"
        for one in missing
    )
    return tuple(one.option for one in missing), tuple(lines)
