"""Servers built from source, with a source that is small: real git, patch, make and locks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.cli.servers import servers
from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.local import Local
from pgdyno.servers import removing
from pgdyno.servers.binaries import choose, find_installations
from pgdyno.servers.build_options import BuildOptions
from pgdyno.servers.building import build
from pgdyno.servers.cache import Cache, Kept
from pgdyno.servers.obtaining import obtain

pytestmark = pytest.mark.pg

# What the builder relies on: options reach configure, which says what it makes; the programs tell.
CONFIGURE = r"""#!/bin/sh
PACKAGE_NAME='PostgreSQL'
PACKAGE_VERSION='17.3'
[ -z "$CFLAGS" ] || { echo "configure: error: CFLAGS came in"; exit 1; }
for word; do case $word in --prefix=*) prefix=${word#--prefix=};; esac; done
mkdir -p src/include
case " $* " in *" --enable-cassert "*) echo "#define USE_ASSERT_CHECKING 1";; esac \
    > src/include/pg_config.h
echo "prefix = $prefix" > settings.mk
echo "options = $*" >> settings.mk
"""
MAKEFILE = r"""include settings.mk
bin = $(DESTDIR)$(prefix)/bin
all: ; $(CC) -fsyntax-only answer.c
install: ; mkdir -p $(bin); cp programs/* $(bin); echo "echo '$(options)'" >> $(bin)/pg_config
"""
PROGRAMS = {
    "postgres": "echo 'postgres (PostgreSQL) 17.3'",
    "initdb": "exit 0",
    "pg_config": "case $1 in --cflags) echo -O2; exit;; --cc) echo gcc; exit;; esac",
}
PATCH = """--- a/answer.c
+++ b/answer.c
@@ -1 +1 @@
-int answer = 42;
+int answer = 43;
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source folder as small as it can be; its grammar is there as in a release."""
    folder = tmp_path / "postgresql-17.3"
    (folder / "contrib").mkdir(parents=True)
    (folder / "src/backend/parser").mkdir(parents=True)
    (folder / "src/backend/parser/gram.c").touch()
    (folder / "configure").write_text(CONFIGURE)
    (folder / "configure").chmod(0o755)
    (folder / "programs").mkdir()
    for name, text in PROGRAMS.items():
        (folder / "programs" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "programs" / name).chmod(0o755)
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "contrib/Makefile").write_text("all install: ;\n")
    (folder / "answer.c").write_text("int answer = 42;\n")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PGDYNO_REPOSITORY", raising=False)
    return Cache()


def made(cache: Cache, source: Path | str, options: BuildOptions | None = None) -> Kept:
    return build(
        str(source), options or BuildOptions(), Local(), cache=cache, notice=lambda _: None
    )


def test_a_build_is_made_once_and_chosen_by_its_name(
    source: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLAGS", "-O0")
    options = BuildOptions(block_kb=16, configure=("--enable-cassert",), name="big")
    kept = made(cache, source, options)
    facts = kept.facts
    assert (facts["version"], facts["block_kb"], facts["assertions"]) == ("17.3", 16, True)
    assert (facts["cflags"], facts["cc"]) == ("-O2", "gcc")
    assert "--with-blocksize=16" in facts["configure"]
    first = (kept.folder / "bin/postgres").stat().st_ino
    again = made(cache, source, BuildOptions(block_kb=16, configure=("--enable-cassert",)))
    assert (again.folder, (again.folder / "bin/postgres").stat().st_ino) == (kept.folder, first)
    found = find_installations(Local())
    for name in ("big", facts["digest"], facts["digest"][:6]):
        assert choose(f"build:{name}", found, Local()).bin_dir == kept.folder / "bin"
    one = choose("build:big", found, Local())
    assert one.origin == "built"
    assert one.made == ("16 kB blocks, 8 kB WAL blocks, from postgresql-17.3, --enable-cassert")
    assert not list((cache.root / "work").glob("*/"))


def test_a_built_one_is_never_taken_for_its_version(source: Path, cache: Cache) -> None:
    made(cache, source)
    built = [one for one in find_installations(Local()) if one.origin == "built"]
    assert [one.version for one in built] == ["17.3"]
    for pg in ("17.3", "17", None):
        with pytest.raises(PgdynoError, match=r"17(\.3)? is not on|no PostgreSQL is on"):
            choose(pg, built, Local())


def test_whatever_changes_the_build_changes_its_digest(source: Path, cache: Cache) -> None:
    patch = source.parent / "idea.patch"
    patch.write_text(PATCH)
    folders = {made(cache, source).folder}
    folders.add(made(cache, source, BuildOptions(wal_block_kb=16)).folder)
    patched = made(cache, source, BuildOptions(patches=(patch,)))
    folders.add(patched.folder)
    (source / "answer.c").write_text("int answer = 44;\n")
    folders.add(made(cache, source).folder)
    assert len(folders) == 4
    assert (source / "answer.c").read_text() == "int answer = 44;\n"
    assert [Path(one["file"]).name for one in patched.facts["patches"]] == ["idea.patch"]
    with pytest.raises(InvalidInput, match=r"idea\.patch' does not apply: Hunk #1 FAILED"):
        made(cache, source, BuildOptions(patches=(patch,)))


def test_a_name_stands_for_one_build(source: Path, cache: Cache) -> None:
    made(cache, source, BuildOptions(name="mine"))
    made(cache, source, BuildOptions(name="mine"))
    with pytest.raises(InvalidInput, match="the name 'mine' stands for the build"):
        made(cache, source, BuildOptions(block_kb=16, name="mine"))


def test_a_tarball_and_a_revision_are_sources(source: Path, cache: Cache) -> None:
    tarball = source.parent / "postgresql-17.3.tar.bz2"
    with tarfile.open(tarball, "w:bz2") as tar:
        tar.add(source, source.name)
    assert made(cache, tarball).facts["source"]["kind"] == "tarball"
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", "-b", "trunk"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    (source / "answer.c").write_text("not C\n")
    kept = made(cache, f"git:{source}#trunk")
    assert len(kept.facts["source"]["identity"]) == 40
    cloned = made(cache, f"git:file://{source}#trunk")
    assert cloned.folder == kept.folder
    with pytest.raises(InvalidInput, match="there is no revision 'other' in the repository"):
        made(cache, f"git:{source}#other")
    with pytest.raises(InvalidInput, match="git:trunk needs a repository"):
        obtain("git:trunk", Local(), lambda _: None)


def test_the_repository_may_be_named_once_for_all(
    source: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"], ["tag", "idea"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setenv("PGDYNO_REPOSITORY", str(source))
    told: list[str] = []
    first = obtain("git:idea", Local(), told.append)
    assert (first.version, first.origin) == ("17.3", "built")
    assert len([line for line in told if line.startswith("building 17.3-")]) == 1
    told.clear()
    assert obtain("git:idea", Local(), told.append) == first
    assert told == []


def test_what_does_not_compile_says_where_and_leaves_its_log(source: Path, cache: Cache) -> None:
    (source / "answer.c").write_text("int answer = ;\n")
    with pytest.raises(PgdynoError, match=r"does not compile: answer\.c:1:14: error:") as caught:
        made(cache, source)
    log = Path(str(caught.value.hint).rpartition(" ")[2])
    assert "$ ./configure --prefix=" in log.read_text()
    assert cache.kept() == ()
    assert not list((cache.root / "work").glob("*/"))
    with pytest.raises(PgdynoError, match="configure refused: CFLAGS came in"):
        (source / "configure").write_text(CONFIGURE.replace('-z "$CFLAGS"', "-n x -a -z x"))
        made(cache, source)


def test_programs_that_are_missing_are_all_named(
    source: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "src/backend/parser/gram.c").unlink()
    places = {name: shutil.which(name) for name in ("bison", "flex")}
    monkeypatch.setattr(
        shutil, "which", lambda name, **_: None if name in places else f"/bin/{name}"
    )
    with pytest.raises(PgdynoError, match="needs bison, flex") as caught:
        made(cache, source)
    assert caught.value.hint == "apt-get install bison flex"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nowhere", "the source 'nowhere' does not exist"),
        ("{tmp}", "is not PostgreSQL's source: it has no 'configure'"),
        ("{tmp}/notes.txt", "is not a tarball"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path: Path, cache: Cache, given: str, words: str) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InvalidInput, match=words):
        made(cache, given.format(tmp=tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    (other / "configure").write_text("PACKAGE_NAME='zlib'\nPACKAGE_VERSION='1.3'\n")
    with pytest.raises(InvalidInput, match="its configure makes something else"):
        made(cache, other)


def test_a_killed_builder_leaves_nothing_that_stays(source: Path, cache: Cache) -> None:
    """kill -9 in the middle of make: make ends, and the next builder removes the work folder."""
    sign = source.parent / "compiling"
    (source / "Makefile").write_text(
        MAKEFILE.replace("all: ;", f"all: ; touch {sign}; exec sleep 60;")
    )
    program = textwrap.dedent(f"""
        from pgdyno.hosts.local import Local
        from pgdyno.servers.build_options import BuildOptions
        from pgdyno.servers.building import build
        from pgdyno.servers.cache import Cache
        build({str(source)!r}, BuildOptions(), Local(), cache=Cache(), notice=print)
    """)
    builder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    end_s = time.monotonic() + 20
    while not sign.exists():
        assert time.monotonic() < end_s, "make did not begin"
        time.sleep(0.02)
    builder.send_signal(signal.SIGKILL)
    builder.communicate(timeout=10)
    (work,) = (cache.root / "work").glob("*/")
    while _standing_in(work):
        assert time.monotonic() < end_s, f"processes stay in {work}"
        time.sleep(0.02)
    (source / "Makefile").write_text(MAKEFILE)
    made(cache, source)
    assert not work.exists()


def _standing_in(folder: Path) -> list[str]:
    """Processes whose working directory lies in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(folder):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_removing_takes_names_and_logs_along_but_nothing_that_runs(
    source: Path, cache: Cache
) -> None:
    kept = made(cache, source, BuildOptions(name="mine"))
    found = removing.find(cache, "build:mine")
    assert found == removing.find(cache, kept.facts["digest"]) == removing.find(cache, "mine")
    assert found is not None
    shutil.copy("/bin/sleep", kept.folder / "bin/sleep")
    with subprocess.Popen([kept.folder / "bin/sleep", "60"]) as sleeper:
        try:
            with pytest.raises(PgdynoError, match=f"is in use by process {sleeper.pid}"):
                removing.remove(cache, found)
        finally:
            sleeper.kill()
    removing.remove(cache, found)
    assert (cache.kept(), cache.names(), list((cache.root / "logs").iterdir())) == ((), {}, [])


def test_the_commands_build_list_and_remove(source: Path, cache: Cache) -> None:
    def said(*words: str) -> str:
        done = CliRunner().invoke(servers, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    built = said("build", str(source), "--name", "mine", "--wal-block-size", "16")
    assert "--pg build:mine is in " in built
    assert f"on {len(os.sched_getaffinity(0))} CPUs, log: " in built
    shown = "build:mine (8 kB blocks, 16 kB WAL blocks, from postgresql-17.3)"
    assert shown in said("list")
    with pytest.raises(
        InvalidInput, match="no fetched or built server is called 'yours'"
    ) as caught:
        said("remove", "mine", "yours")
    assert caught.value.hint == f"there are {cache.kept()[0].facts['digest']}, mine"
    assert said("remove", "mine").startswith("removed ")
    assert cache.kept() == ()
