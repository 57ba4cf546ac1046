"""PostgreSQL's source: from a folder, a tarball, a git repository's revision or a Debian package.

A `Source` knows what it is (`identity` changes with the content, and with nothing else) before
anything is unpacked, so that what was built from it once is found again. The person's own folder is
only read.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Command, Completed, Host

SourceKind = Literal["folder", "tarball", "git", "debian"]

REPOSITORY_VARIABLE = "PGDYNO_REPOSITORY"
_TARBALL = re.compile(r"\.(tar|tar\.(gz|bz2|xz)|tgz|tbz2|txz)$")
_GIT_DEADLINE_S = 3600.0
_UNPACK_DEADLINE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One state of the source. `place`: folder, file or repository; `revision`: a whole commit id.

    `title` is what a person gave, for messages and the record.
    """

    kind: SourceKind
    title: str
    place: Path
    identity: str
    revision: str | None = None


def source_of(given: str, downloads: Path, host: Host) -> Source:
    """The source that a person names: a folder, a tarball, `git:REF` or `debian:PACKAGE`.

    `git:REPOSITORY#REF` names the repository too, a folder or an address that git knows; else it is
    the variable PGDYNO_REPOSITORY's. What must be downloaded goes to `downloads` and stays there.
    Raises `InvalidInput` for what is no source, `PgdynoError` for what cannot be had.
    """
    kind, colon, rest = given.partition(":")
    if colon and kind == "git":
        repository, _, ref = rest.rpartition("#")
        named = repository or os.environ.get(REPOSITORY_VARIABLE, "")
        return _revision(ref, named, downloads, host)
    if colon and kind == "debian":
        return _debian(rest, downloads, host)
    return _local(Path(given).expanduser().absolute(), given, host)


def unpack(source: Source, tree: Path, host: Host) -> None:
    """Lay the source out in `tree`, which does not exist yet and will hold `configure`."""
    try:
        if source.kind == "folder":
            _copy_folder(source.place, tree, host)
        elif source.kind == "tarball":
            _extract(source.place, tree)
        elif source.kind == "git":
            archive = tree.with_name("revision.tar")
            words = ["archive", f"--output={archive}", str(source.revision)]
            _git(host, source.place, words)
            tree.mkdir()
            _extract_into(archive, tree)
            archive.unlink()
        else:
            words = ["dpkg-source", "--no-check", "-x", str(source.place), str(tree)]
            _must(_run(host, words, tree.parent), f"cannot unpack '{source.place.name}'")
    except (OSError, tarfile.TarError, shutil.Error) as error:
        raise PgdynoError(f"cannot unpack the source '{source.title}': {error}") from error
    if not (tree / "configure").is_file():
        raise InvalidInput(
            f"'{source.title}' is not PostgreSQL's source: it has no 'configure'",
            hint="give the folder that holds 'configure', or a tarball of it",
        )


def apply_patches(patches: tuple[Path, ...], tree: Path, host: Host) -> None:
    """Apply patches in their order, as git or diff write them; raises `InvalidInput` naming one."""
    for patch in patches:
        words = ["patch", "--batch", "--forward", "--strip=1", f"--input={patch}"]
        done = _run(host, words, tree)
        if done.status != 0:
            said = [one for one in done.output.splitlines() if "FAILED" in one or "can't" in one]
            raise InvalidInput(
                f"the patch '{patch}' does not apply: {(said or ['patch refused it'])[0].strip()}",
                hint="it is applied with patch -p1 in the folder that holds 'configure'",
            )


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _local(path: Path, title: str, host: Host) -> Source:
    """A folder or a tarball."""
    if path.is_dir():
        return Source(kind="folder", title=title, place=path, identity=_digest_of_tree(path, host))
    if path.is_file() and _TARBALL.search(path.name):
        return Source(kind="tarball", title=title, place=path, identity=digest_of_file(path))
    what = "is not a tarball" if path.exists() else "does not exist"
    raise InvalidInput(
        f"the source '{title}' {what}",
        hint="give a folder, a .tar.gz, .tar.bz2 or .tar.xz, git:REPOSITORY#REF or debian:PACKAGE",
    )


def _files_of(folder: Path, host: Host) -> list[Path]:
    """A source folder's files, relative to it: of a git checkout those that git does not ignore."""
    if (folder / ".git").exists():
        words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = _git(host, folder, words).output.split("\0")
        return sorted(Path(one) for one in listed if one and os.path.lexists(folder / one))
    return sorted(
        (Path(parent) / name).relative_to(folder)
        for parent, _, names in os.walk(folder)
        for name in names
    )


def _digest_of_tree(folder: Path, host: Host) -> str:
    """SHA-256 over names and contents of all files of a source folder, in hex."""
    if not (folder / "configure").is_file():
        raise InvalidInput(
            f"'{folder}' is not PostgreSQL's source: it has no 'configure'",
            hint="give the folder that holds 'configure', or a tarball of it",
        )
    digest = hashlib.sha256()
    for name in _files_of(folder, host):
        path = folder / name
        content = str(path.readlink()) if path.is_symlink() else digest_of_file(path)
        digest.update(f"{name}\0{content}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _copy_folder(folder: Path, tree: Path, host: Host) -> None:
    """Copy a source folder; what was built in it is cleaned away in the copy."""
    for name in _files_of(folder, host):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / name, tree / name, follow_symlinks=False)
    if (tree / "config.status").exists():
        _must(_run(host, ["make", "distclean"], tree), f"cannot clean the copy of '{folder}'")


def _extract(archive: Path, tree: Path) -> None:
    """Extract a tarball whose content lies in one folder, as releases have it, or in none."""
    staging = tree.with_name("unpacked")
    staging.mkdir()
    _extract_into(archive, staging)
    entries = list(staging.iterdir())
    inner = entries[0] if len(entries) == 1 and entries[0].is_dir() else staging
    inner.rename(tree)


def _extract_into(archive: Path, folder: Path) -> None:
    """Extract; nothing in an archive may lead out of the folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def _revision(ref: str, repository: str, downloads: Path, host: Host) -> Source:
    """A commit of a repository: a folder of the person's own, or a clone."""
    if not repository:
        raise InvalidInput(
            f"git:{ref} needs a repository",
            hint=f"write git:REPOSITORY#{ref} (folder or address), or set {REPOSITORY_VARIABLE}",
        )
    folder = Path(repository).expanduser().absolute()
    if folder.is_dir():
        # A clone knows most branches only as its remote's.
        found = _resolve(ref, folder, host) or _resolve(f"origin/{ref}", folder, host)
    else:
        folder = _clone(repository, ref, downloads, host)
        found = _resolve(ref, folder, host)
    if found is None:
        raise InvalidInput(f"there is no revision '{ref}' in the repository '{repository}'")
    title = f"git:{ref}"
    return Source(kind="git", title=title, place=folder, identity=found, revision=found)


def _clone(repository: str, ref: str, downloads: Path, host: Host) -> Path:
    """A bare clone that is kept, and brought up to date unless a whole commit id is asked for."""
    folder = downloads / f"{hashlib.sha256(repository.encode()).hexdigest()[:16]}.git"
    if not folder.is_dir():
        unfinished = folder.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        words = ["git", "clone", "--bare", "--quiet", "--", repository, str(unfinished)]
        _must(_run(host, words, downloads, _GIT_DEADLINE_S), f"cannot clone '{repository}'")
        unfinished.rename(folder)
    elif not re.fullmatch(r"[0-9a-f]{40}", ref):
        _git(host, folder, ["fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/heads/*"])
    return folder


def _resolve(ref: str, folder: Path, host: Host) -> str | None:
    """The commit that a branch, a tag or a part of an id stands for."""
    words = [*_git_words(folder), "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"]
    done = _run(host, words, folder)
    return done.output.strip() if done.status == 0 else None


def _debian(package: str, downloads: Path, host: Host) -> Source:
    """Debian's source package of a version, where apt is told where sources lie."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-source") is None:
        raise PgdynoError(
            "Debian's source packages need apt-get and dpkg-source",
            hint="apt-get install dpkg-dev, or give a folder or a tarball",
        )
    folder = downloads / f"debian-{re.sub(r'[^a-z0-9.+-]', '', package)}"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    words = ["apt-get", "source", "--download-only", "-q", package]
    done = _run(host, words, folder, _GIT_DEADLINE_S)
    found = sorted(folder.glob("*.dsc"))
    if done.status != 0 or not found:
        shutil.rmtree(folder, ignore_errors=True)
        said = [one for one in done.error.splitlines() if one.startswith("E:")]
        said = said or ["it has no such package with a source"]
        raise PgdynoError(
            f"apt-get cannot give the source of '{package}': {said[0].removeprefix('E:').strip()}",
            hint="apt needs a line with deb-src in its sources, and apt-get update after it",
        )
    return Source(
        kind="debian", title=f"debian:{package}", place=found[0], identity=digest_of_file(found[0])
    )


def _git_words(folder: Path) -> list[str]:
    """Git in a folder that may be somebody else's, as a checkout of root's often is."""
    return ["git", "-c", f"safe.directory={folder}", "-C", str(folder)]


def _git(host: Host, folder: Path, words: list[str]) -> Completed:
    """Run git in a repository; raises `PgdynoError` with its words."""
    done = _run(host, [*_git_words(folder), *words], folder, _GIT_DEADLINE_S)
    return _must(done, f"git {words[0]} failed in '{folder}'")


def _run(
    host: Host, words: list[str], folder: Path, deadline_s: float = _UNPACK_DEADLINE_S
) -> Completed:
    """Run in a folder, speaking English and asking nothing."""
    environment = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    return host.run(
        Command(words=words, folder=folder, environment=environment), deadline_s=deadline_s
    )


def _must(done: Completed, trouble: str) -> Completed:
    """What was done; raises `PgdynoError` where it failed."""
    if done.status != 0:
        said = (done.error.strip().splitlines() or [f"status {done.status}"])[-1]
        raise PgdynoError(f"{trouble}: {said}")
    return done
