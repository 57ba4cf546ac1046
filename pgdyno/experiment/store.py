"""Run folders on disk: written as things happen, found by a few letters, read back as nouns.

    runs/<time>-<name>-<id>/
      experiment.toml   tags.json   workloads/<name>/…   report.html
      trials/<nnn>-<variant>/   trial.json plan.json summary.json intervals.jsonl *.hlog …

Every document is written to a temporary name and renamed, so a reader never sees half of one.
Whatever is missing (a killed run, a failed trial) reads as None or empty: a run always opens.
"""

from __future__ import annotations

import difflib
import json
import re
import secrets
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import tomli_w
from pydantic import ValidationError

from pgdyno.contract import Interval, Noun, Plan, Summary
from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.model import CheckResult, Checks, Environment, Experiment, Settings, Sizes, Trial

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_OUTPUT = Path("runs")

_N = TypeVar("_N", bound=Noun)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrial:
    """One trial folder. Documents are read when asked for; None where they are not there."""

    folder: Path

    @property
    def trial(self) -> Trial:
        """What ran, when, and how it ended. The one document every trial has."""
        trial = _read(self.folder / "trial.json", Trial)
        if trial is None:
            raise PgdynoError(f"{self.folder} has no trial.json", hint="is it a trial folder?")
        return trial

    @property
    def plan(self) -> Plan | None:
        """What the engine was told."""
        return _read(self.folder / "plan.json", Plan)

    @property
    def summary(self) -> Summary | None:
        """What the engine found."""
        return _read(self.folder / "summary.json", Summary)

    @property
    def settings(self) -> Settings | None:
        """The server and its settings."""
        return _read(self.folder / "settings.json", Settings)

    @property
    def sizes(self) -> Sizes | None:
        """Tables and indexes before and after."""
        return _read(self.folder / "sizes.json", Sizes)

    @property
    def environment(self) -> Environment | None:
        """Hosts and storage."""
        return _read(self.folder / "environment.json", Environment)

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """What the workload's checks said, after load and after the measurement."""
        checks = _read(self.folder / "checks.json", Checks)
        return checks.results if checks else ()

    def intervals(self) -> list[Interval]:
        """The engine's intervals in the order written, without a last line cut off by a kill."""
        path = self.folder / "intervals.jsonl"
        if not path.exists():
            return []
        lines = path.read_text().splitlines(keepends=True)
        return [Interval.model_validate_json(line) for line in lines if line.endswith("\n")]

    def observation_names(self) -> tuple[str, ...]:
        """Names of the tables that observers left, whether collected or still as JSON lines."""
        folder = self.folder / "observations"
        files = [*folder.glob("*.parquet"), *folder.glob("*.jsonl")]
        return tuple(sorted({file.stem for file in files}))

    def observations(self, name: str) -> pa.Table | None:
        """One observer's table; JSON lines of a killed run are read as well."""
        parquet = self.folder / "observations" / f"{name}.parquet"
        lines = self.folder / "observations" / f"{name}.jsonl"
        if parquet.exists():
            import pyarrow.parquet

            # Not `read_table`, which loads the library for data sets of many files, and pandas.
            with pyarrow.parquet.ParquetFile(parquet) as file:
                return file.read()
        return _read_json_lines(lines) if lines.exists() else None

    def histogram_log(self, name: str) -> Path | None:
        """The HdrHistogram log `transactions` or `statements`."""
        path = self.folder / f"{name}.hlog"
        return path if path.exists() else None

    def write(self, name: str, document: Noun) -> None:
        """Write a JSON document of this trial."""
        write_text(self.folder / name, document.model_dump_json(indent=2) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run folder: an experiment with its trials."""

    folder: Path

    @property
    def id(self) -> str:
        """The six letters that name it among its neighbours, from the folder's name."""
        return self.folder.name.rsplit("-", 1)[-1]

    @property
    def experiment(self) -> Experiment:
        """The experiment as resolved."""
        path = self.folder / "experiment.toml"
        try:
            document = tomllib.loads(path.read_text())
        except OSError as error:
            raise PgdynoError(
                f"{path} cannot be read: {error.strerror}", hint="is it a run folder?"
            ) from error
        except ValueError as error:
            raise PgdynoError(
                f"{path} is not TOML: {error}", hint="was it edited or cut off?"
            ) from error
        return _validate(path, document, Experiment)

    @property
    def tags(self) -> tuple[str, ...]:
        """The person's own names for this run."""
        path = self.folder / "tags.json"
        try:
            tags = json.loads(path.read_text()) if path.exists() else []
        except (OSError, ValueError) as error:
            raise PgdynoError(
                f"{path} cannot be read: {error}", hint="give the run its tags again"
            ) from error
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise PgdynoError(f"{path} is not a list of names", hint="give the run its tags again")
        return tuple(tags)

    @property
    def trials(self) -> tuple[StoredTrial, ...]:
        """Trials in the order they ran."""
        folders = sorted((self.folder / "trials").glob("[0-9]*"))
        return tuple(StoredTrial(folder=each) for each in folders if (each / "trial.json").exists())

    @property
    def workloads(self) -> Path:
        """Where copies of the workloads lie, so that a run can be repeated from here alone."""
        return self.folder / "workloads"

    def set_tags(self, tags: tuple[str, ...]) -> None:
        """Replace the tags."""
        write_text(self.folder / "tags.json", json.dumps(list(tags)) + "\n")

    def new_trial(self, trial: Trial) -> StoredTrial:
        """Make the folder of a trial and write its first `trial.json`."""
        folder = self.folder / "trials" / f"{trial.number:03d}-{_slug(trial.variant)}"
        (folder / "logs").mkdir(parents=True)
        stored = StoredTrial(folder=folder)
        stored.write("trial.json", trial)
        return stored


def new_id() -> str:
    """Six letters that name a run among its neighbours."""
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(6))


def new_run(experiment: Experiment, output: Path) -> Run:
    """Make a run folder below `output` and write `experiment.toml`."""
    time = datetime.fromisoformat(experiment.created).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = output / f"{time}-{_slug(experiment.name)}-{experiment.id}"
    try:
        (folder / "trials").mkdir(parents=True)
    except OSError as error:
        raise PgdynoError(
            f"cannot make the run folder {folder}: {error.strerror}",
            hint="give a folder you can write to with --output",
        ) from error
    document = experiment.model_dump(mode="json", exclude_none=True)
    write_text(folder / "experiment.toml", tomli_w.dumps(document))
    return Run(folder=folder)


def list_runs(output: Path) -> list[Run]:
    """Runs below `output`, oldest first."""
    return [Run(folder=file.parent) for file in sorted(output.glob("*/experiment.toml"))]


def find_run(reference: str, output: Path = DEFAULT_OUTPUT) -> Run:
    """A run by folder, by a unique beginning of its id, by tag, or `last`."""
    if (Path(reference) / "experiment.toml").exists():
        return Run(folder=Path(reference))
    runs = list_runs(output)
    if reference == "last" and runs:
        return runs[-1]
    found = [run for run in runs if run.id.startswith(reference) or run.folder.name == reference]
    found = found or [run for run in runs if _is_tagged(run, reference)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(run.id for run in found)
        raise InvalidInput(
            f"'{reference}' names {len(found)} runs: {names}", hint="give more letters"
        )
    raise InvalidInput(f"no run '{reference}' in {output}", hint=_where_runs_are(reference, runs))


def _is_tagged(run: Run, tag: str) -> bool:
    """Whether a run has the tag; one whose tags cannot be read stands in nobody's way."""
    try:
        return tag in run.tags
    except PgdynoError:
        return False


def _where_runs_are(reference: str, runs: list[Run]) -> str:
    if not runs:
        return "make one with: pgdyno run userlogin, or say where they are with --output"
    if near := difflib.get_close_matches(reference, [run.id for run in runs], n=3):
        return f"did you mean {' or '.join(near)}?"
    if len(runs) == 1:
        return f"the only one is {runs[0].id}"
    return f"pgdyno list shows the {len(runs)} there are; the newest is {runs[-1].id}"


def remove_run(run: Run) -> None:
    """Delete a run folder and everything in it."""
    shutil.rmtree(run.folder)


def run_bytes(run: Run) -> int:
    """Size of a run folder in bytes."""
    return sum(file.stat().st_size for file in run.folder.rglob("*") if file.is_file())


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it into place."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")[:60] or "run"


def _read(path: Path, noun: type[_N]) -> _N | None:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise PgdynoError(
            f"{path} is not JSON: {error}", hint="was it edited or cut off?"
        ) from error
    return _validate(path, document, noun)


def _validate(path: Path, document: Any, noun: type[_N]) -> _N:
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > 1:
        raise PgdynoError(
            f"{path} has format version {version}, this pgdyno reads up to 1",
            hint="it was written by a newer pgdyno; use that one",
        )
    try:
        return noun.model_validate(document)
    except ValidationError as error:
        raise PgdynoError("\n".join(problems_of(error, path)), hint="was it edited?") from error


def problems_of(error: ValidationError, path: Path) -> Iterator[str]:
    """One line a problem: file, where in it, what is wrong."""
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        yield f"{path}: {where}: {problem['msg'].lower()}"


def _read_json_lines(path: Path) -> pa.Table:
    import pyarrow as pa

    rows = [
        json.loads(line)
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return pa.Table.from_pylist(rows)
