"""A PostgreSQL built from source, once: named by its options, so that the next wish finds it.

configure, make and make install, for the server and contrib, as a person would by hand, with
PostgreSQL's own defaults (-O2, no assertions) unless the options say otherwise. Variables such as
CFLAGS do not reach it: what is not in the options must not change what is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.build_options import (
    BuildOptions,
    check_options,
    configure_words,
    failure_line,
    missing_libraries,
    missing_tools,
)
from pgdyno.servers.cache import Cache, Kept
from pgdyno.servers.sources import Source, apply_patches, digest_of_file, source_of, unpack

_STEP_DEADLINE_S = 2 * 3600.0
_ASK_DEADLINE_S = 20.0
_DIGEST_LETTERS = 10
# Raised when the steps below change what is built from the same options.
_RECIPE = 1
_UNWANTED = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBS", "COPT", "PROFILE", "MAKEFLAGS")


def build(
    given: str,
    options: BuildOptions,
    host: Host,
    *,
    cache: Cache,
    notice: Callable[[str], None],
) -> Kept:
    """The server built from a source with these options: found in the cache, or made now.

    `given` is what `source_of` takes. Raises `InvalidInput` for options and sources that cannot be
    meant, `PgdynoError` where it does not compile, naming its log.
    """
    check_options(options)
    source = source_of(given, cache.downloads(), host)
    order = _order(source, options, host)
    if cache.find("built", order.digest) is None:
        for line in order.lacking:
            notice(line)
        _Builder(host=host, cache=cache, notice=notice).make(order)
    kept = cache.find("built", order.digest)
    if kept is None:
        raise PgdynoError(f"the build {order.digest} is gone from '{cache.root}' again")
    if options.name is None:
        return kept
    return cache.give_name(options.name, kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """One build to be made. `wish`: everything that decides what comes out."""

    source: Source
    options: BuildOptions
    wish: dict[str, Any]
    lacking: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Short name of the wish: another letter in it is another name."""
        text = json.dumps(self.wish, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LETTERS]


def _order(source: Source, options: BuildOptions, host: Host) -> _Order:
    """What is to be built; which libraries there are decides it too."""
    switched_off, lacking = missing_libraries(options, host)
    wish = {
        "recipe": _RECIPE,
        "machine": platform.machine(),
        "source": source.identity,
        "patches": [digest_of_file(one) for one in options.patches],
        "configure": list(configure_words(options, switched_off)),
    }
    return _Order(source=source, options=options, wish=wish, lacking=lacking)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Builder:
    """Where builds are made and who is told."""

    host: Host
    cache: Cache
    notice: Callable[[str], None]

    def make(self, order: _Order) -> None:
        """Build and put in place; whoever wants the same meanwhile waits and then finds it."""
        with self.cache.making(order.digest) as work:
            if self.cache.find("built", order.digest) is not None:
                return
            began_s = time.monotonic()
            tree = work / "source"
            unpack(order.source, tree, self.host)
            apply_patches(order.options.patches, tree, self.host)
            _need_tools(tree)
            version = version_of(tree)
            name = f"{version}-{order.digest}"
            log = self.cache.log(name)
            log.write_text(f"{order.source.title}: {order.source.identity}\n")
            made = self._compile(order, tree, self.cache.place("built", name), log)
            facts = {
                "version": version,
                **_facts(order),
                **_compiled_as(made, tree, self.host),
                "duration_s": round(time.monotonic() - began_s, 1),
                "log": str(log),
            }
            self.cache.publish(made, "built", name, facts)

    def _compile(self, order: _Order, tree: Path, prefix: Path, log: Path) -> Path:
        """From source to files as they will lie at `prefix`; returns where they are meanwhile."""
        cpus = len(os.sched_getaffinity(0))
        self.notice(f"building {prefix.name} from {order.source.title} on {cpus} CPUs, log: {log}")
        steps = _Steps(tree=tree, log=log, host=self.host)
        steps.run(
            ["./configure", f"--prefix={prefix}", *order.wish["configure"]], "configure refused"
        )
        staging = tree.with_name("installed")
        for folder in (".", "contrib"):
            failing = f"{'the server' if folder == '.' else folder} does not compile"
            steps.run(["make", "-C", folder, f"-j{cpus}", "all"], failing)
            install = ["make", "-C", folder, "install", f"DESTDIR={staging}"]
            steps.run(install, "it cannot be installed")
        return staging / prefix.relative_to("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """One build's commands: where they run and where they say what they do."""

    tree: Path
    log: Path
    host: Host

    def run(self, words: Sequence[str], failing: str) -> None:
        """One command, told to the log; raises `PgdynoError` where it fails."""
        with self.log.open("a") as log:
            log.write(f"$ {shlex.join(words)}\n")
        start = self.log.stat().st_size
        # exec, so that the signal at our death reaches make itself, which ends its children.
        shell = ["sh", "-c", 'exec "$@" >>"$0" 2>&1 </dev/null', str(self.log)]
        clean = ["env", *(word for name in _UNWANTED for word in ("-u", name)), "LC_ALL=C"]
        command = Command(
            words=[*shell, *clean, *words], folder=self.tree, death_signal=signal.SIGTERM
        )
        if self.host.run(command, deadline_s=_STEP_DEADLINE_S).status != 0:
            with self.log.open(errors="replace") as file:
                file.seek(start)
                why = failure_line(file.read())
            raise PgdynoError(f"{failing}: {why}", hint=f"everything it said: {self.log}")


def version_of(tree: Path) -> str:
    """The version that configure says it makes; raises `InvalidInput` for another program's."""
    text = (tree / "configure").read_text(errors="replace")
    match = re.search(r"^PACKAGE_VERSION='([0-9][0-9a-z.]*)'", text, re.MULTILINE)
    if match is None or "PACKAGE_NAME='PostgreSQL'" not in text:
        raise InvalidInput("this is not PostgreSQL's source: its configure makes something else")
    return match.group(1)


def _need_tools(tree: Path) -> None:
    """Raise `PgdynoError` naming all programs that are missing."""
    missing = missing_tools(tree)
    if missing:
        raise PgdynoError(
            f"building this source needs {', '.join(missing)}",
            hint=f"apt-get install {' '.join(missing)}",
        )


def _facts(order: _Order) -> dict[str, Any]:
    """What was asked for, for whoever finds the result."""
    source, options = order.source, order.options
    return {
        "made": _in_few_words(source, options),
        "source": {
            "kind": source.kind,
            "title": source.title,
            "place": str(source.place),
            "identity": source.identity,
        },
        "patches": [
            {"file": str(file), "sha256": sha256}
            for file, sha256 in zip(options.patches, order.wish["patches"], strict=True)
        ],
        "block_kb": options.block_kb,
        "wal_block_kb": options.wal_block_kb,
        "digest": order.digest,
    }


def _in_few_words(source: Source, options: BuildOptions) -> str:
    """What is particular about it: `16 kB blocks, from postgresql-18.6, patch idea.patch`."""
    words = [f"{options.block_kb} kB blocks"]
    if options.wal_block_kb != options.block_kb:
        words.append(f"{options.wal_block_kb} kB WAL blocks")
    if source.kind == "git":
        words.append(f"from {source.title} at {source.identity[:_DIGEST_LETTERS]}")
    else:
        words.append(f"from {source.title if source.kind == 'debian' else source.place.name}")
    words += [f"patch {one.name}" for one in options.patches]
    return ", ".join([*words, *options.configure])


def _compiled_as(made: Path, tree: Path, host: Host) -> dict[str, Any]:
    """How it was compiled, as the result itself says."""
    header = (tree / "src/include/pg_config.h").read_text(errors="replace")
    cassert = re.search(r"^#define USE_ASSERT_CHECKING 1", header, re.MULTILINE)
    facts: dict[str, Any] = {"assertions": cassert is not None}
    for option in ("configure", "cc", "cflags"):
        words = [str(made / "bin" / "pg_config"), f"--{option}"]
        facts[option] = host.run(Command(words=words), deadline_s=_ASK_DEADLINE_S).output.strip()
    compiler = [*shlex.split(facts["cc"])[:1], "--version"]
    answer = host.run(Command(words=compiler), deadline_s=_ASK_DEADLINE_S).output
    facts["compiler"] = (answer.splitlines() or ["unknown"])[0]
    return facts
