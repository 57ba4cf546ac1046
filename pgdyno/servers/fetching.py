"""A PostgreSQL fetched as a binary: Zonky's embedded ones, through Maven's own client.

`mvn` knows the registry, chooses the newest minor of a major by itself (a version range) and checks
what it gets against the registry's checksum. A jar holds one `.txz` with a server, its contrib and
`initdb`, but without client programs. It is extracted once.
"""

from __future__ import annotations

import platform
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers.cache import Cache, Kept
from pgdyno.servers.sources import digest_of_file

_GROUP = "io.zonky.test.postgres"
_ARTIFACT = "embedded-postgres-binaries-linux-{}"
# platform.machine() → the name in the artifact.
_MACHINES = {
    "x86_64": "amd64",
    "aarch64": "arm64v8",
    "armv7l": "arm32v7",
    "i686": "i386",
    "ppc64le": "ppc64le",
}
_OLDEST = (9, 6)
_DEADLINE_S = 900.0
_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>pgdyno</groupId><artifactId>fetch</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{versions}</version>
</dependency></dependencies></project>
"""


def is_version(text: str) -> bool:
    """Whether a version can be asked for so.

    >>> [is_version(one) for one in ("9.6", "9.6.24", "12", "15.18", "9.5", "15.1.1", "git:x")]
    [True, True, True, True, False, False, False]
    """
    if not re.fullmatch(r"9\.\d+(\.\d+)?|[1-9]\d(\.\d+)?", text):
        return False
    return tuple(map(int, text.split(".")[:2])) >= _OLDEST


def version_range(wanted: str) -> str:
    """The range of Maven versions that a version stands for; 12.3 is called 12.3.0 there.

    >>> version_range("12"), version_range("12.3"), version_range("9.6.24")
    ('[12,12.9999]', '[12.3,12.3.9999]', '[9.6.24,9.6.24.9999]')
    """
    return f"[{wanted},{wanted}.9999]"


def postgres_version(maven_version: str) -> str:
    """PostgreSQL's version of an artifact's, whose last part counts its own editions from 10 on.

    >>> [postgres_version(one) for one in ("9.6.24", "12.22.0", "12.17.1", "10.11.0-1")]
    ['9.6.24', '12.22', '12.17', '10.11']
    """
    parts = maven_version.partition("-")[0].split(".")
    return ".".join(parts if parts[0] == "9" else parts[:2])


def fetch(wanted: str, host: Host, *, cache: Cache, notice: Callable[[str], None]) -> Kept:
    """The newest PostgreSQL whose version begins so, in the cache, from there or from Maven.

    Raises `InvalidInput` for a version that does not exist there, `PgdynoError` where it cannot be
    fetched.
    """
    if not is_version(wanted):
        raise InvalidInput(
            f"'{wanted}' is not a version that can be fetched",
            hint="write it as 9.6, 12 or 15.18; there are 9.6 and newer",
        )
    _need_mvn(wanted)
    with cache.making(f"fetch-{wanted}") as work:
        notice(f"fetching postgresql {wanted} with mvn")
        jar = _download(wanted, work, host)
        version = jar.stem.rpartition("-linux-")[2].partition("-")[2]
        found = cache.find("fetched", version)
        if found is not None:
            return found
        made = work / "installed"
        _extract(jar, made)
        facts = {
            "version": version,
            "artifact": f"{_GROUP}:{_artifact()}:{version}",
            "sha256": digest_of_file(jar),
        }
        cache.publish(made, "fetched", version, facts)
    kept = cache.find("fetched", version)
    if kept is None:
        raise PgdynoError(f"the fetched postgresql {version} is gone from '{cache.root}' again")
    return kept


def _artifact() -> str:
    """Name of the artifact for this machine."""
    machine = platform.machine()
    if machine not in _MACHINES:
        raise PgdynoError(
            f"there are no binaries to fetch for {machine}",
            hint="install PostgreSQL, or build it: pgdyno servers build",
        )
    return _ARTIFACT.format(_MACHINES[machine])


def _need_mvn(wanted: str) -> None:
    """Raise `PgdynoError` where Maven's client is missing."""
    if shutil.which("mvn") is None:
        raise PgdynoError(
            f"fetching postgresql {wanted} needs mvn, which is not on this machine",
            hint=f"apt-get install maven, or install PostgreSQL {wanted} itself and give --pg PATH",
        )


def _download(wanted: str, work: Path, host: Host) -> Path:
    """The jar, checked by mvn against the registry's checksum (-C: one that differs is refused)."""
    pom, jars = work / "pom.xml", work / "jars"
    versions = version_range(wanted)
    pom.write_text(_POM.format(group=_GROUP, artifact=_artifact(), versions=versions))
    words = ["mvn", "--quiet", "--batch-mode", "--strict-checksums", "--update-snapshots"]
    words += ["--file", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    done = host.run(Command(words=words, folder=work), deadline_s=_DEADLINE_S)
    found = sorted(jars.glob("*.jar"))
    if done.status != 0 or len(found) != 1:
        raise _failure(wanted, done.output + done.error)
    return found[0]


def _failure(wanted: str, said: str) -> PgdynoError:
    """What mvn's many lines mean."""
    if "No versions available" in said:
        return InvalidInput(
            f"postgresql {wanted} is not among the binaries that can be fetched",
            hint=f"pgdyno servers fetch {wanted.rpartition('.')[0] or wanted} takes the newest; "
            "not every minor version is there",
        )
    lines = [one.removeprefix("[ERROR]").strip() for one in said.splitlines() if "[ERROR]" in one]
    return PgdynoError(
        f"mvn could not fetch postgresql {wanted}: {(lines or ['it said nothing'])[0]}",
        hint="it needs the network, or a mirror in ~/.m2/settings.xml",
    )


def _extract(jar: Path, target: Path) -> None:
    """Extract the jar's archive; nothing in it may lead out of the folder."""
    try:
        with zipfile.ZipFile(jar) as outer:
            names = [one for one in outer.namelist() if one.endswith(".txz")]
            if len(names) != 1:
                raise PgdynoError(f"'{jar.name}' holds {len(names)} archives instead of one")
            with outer.open(names[0]) as packed, tarfile.open(fileobj=packed, mode="r|xz") as tar:
                tar.extractall(target, filter="data")
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise PgdynoError(f"cannot extract '{jar.name}': {error}") from error
