"""Finds workloads and reads them: a name of the catalogue, a folder, or a bare `.sql` file.

All problems of a folder are told at once, each with its file and key; an unknown name gets the
nearest ones. Nothing is rendered here: a workload's parameters are still open (`resolving.py`).

>>> find("noop").description
'the cheapest statement there is: measures the tool itself'
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pgdyno.errors import InvalidInput, Problems, nearest_hint
from pgdyno.workloads.definition import (
    FUNCTIONS_FILE,
    INDEXES_FILE,
    LOAD_FILE,
    RESET_FILE,
    SCHEMA_FILE,
    SourceFile,
    TransactionDefinition,
    Workload,
    WorkloadFile,
)

BUILT_IN = Path(__file__).parent
_DEFINITION = "workload.toml"
_PLAIN_FILES = (SCHEMA_FILE, LOAD_FILE, INDEXES_FILE, FUNCTIONS_FILE, RESET_FILE)
_MERGED = ("parameters", "derived")


def names() -> tuple[str, ...]:
    """Names of the catalogue's workloads, sorted."""
    return tuple(sorted(path.parent.name for path in BUILT_IN.glob(f"*/{_DEFINITION}")))


def catalog() -> tuple[Workload, ...]:
    """All workloads of the catalogue."""
    return tuple(_read_folder(BUILT_IN / name, name) for name in names())


def find(choice: str) -> Workload:
    """The workload that a person means by a name, a folder or a `.sql` file.

    A name of the catalogue wins over a folder of that name here; `./name` means the folder. Raises
    `InvalidInput` when there is none and `Problems` when its folder has mistakes.
    """
    if choice in names():
        return _read_folder(BUILT_IN / choice, choice)
    path = Path(choice).expanduser()
    if path.suffix == ".sql" or path.is_file():
        return _read_script(path)
    if (path / _DEFINITION).is_file():
        return _read_folder(path, path.resolve().name)
    if path.is_dir():
        raise InvalidInput(
            f"folder '{choice}' holds no {_DEFINITION}",
            hint="docs/workloads.md says what a workload folder is made of",
        )
    raise InvalidInput(f"workload '{choice}' does not exist", hint=nearest_hint(choice, names()))


def find_beside(choice: str, folder: Path) -> Workload:
    """As `find`, for a file that names a workload: folders and scripts are looked for beside it."""
    beside = choice not in names() and (folder / choice).exists()
    return find(str(folder / choice) if beside else choice)


def _read_script(path: Path) -> Workload:
    text = _read_text(path)
    name = re.sub(r"[^a-z0-9_]+", "_", path.stem.lower()).strip("_") or "script"
    name = name if name[0].isalpha() else f"script_{name}"
    definition = WorkloadFile(
        description=f"the script {path.name}",
        source=str(path),
        transaction_types=(TransactionDefinition(name=name, file=path.name),),
    )
    return Workload(
        name=path.name,
        data_name=path.name,
        definition=definition,
        files={path.name: SourceFile(shown=str(path), text=text, plain=True)},
        folder=path.parent,
        open_parameters=True,
    )


def _read_folder(folder: Path, name: str) -> Workload:
    shown = name if folder.parent == BUILT_IN else str(folder)
    raw = _read_toml(folder / _DEFINITION, shown)
    base = raw.get("base")
    files = _read_files(folder, shown)
    data_name = name
    if isinstance(base, str):
        raw, files, data_name = _on_base(raw, files, shown)
    definition = _validated(raw, shown)
    problems = [f"{shown}/{_DEFINITION}: {each}" for each in definition.expression_problems()]
    problems += _file_problems(definition, files, shown)
    if problems:
        raise Problems(problems, hint="docs/workloads.md describes the format")
    return Workload(
        name=name, data_name=data_name, definition=definition, files=files, folder=folder
    )


def _on_base(
    raw: dict[str, Any], files: dict[str, SourceFile], shown: str
) -> tuple[dict[str, Any], dict[str, SourceFile], str]:
    """What a definition says laid over what its base says, and the same for files."""
    base = str(raw["base"])
    if base not in names() or "base" in _read_toml(BUILT_IN / base / _DEFINITION, base):
        usable = [each for each in names() if "base" not in _read_toml(_toml_of(each), each)]
        raise Problems(
            [f"{shown}/{_DEFINITION}: base: there is no workload '{base}' to build on"],
            hint=nearest_hint(base, usable),
        )
    below = _read_toml(_toml_of(base), base)
    merged = below | raw
    for key in _MERGED:
        mine, theirs = raw.get(key, {}), below.get(key, {})
        if isinstance(mine, dict) and isinstance(theirs, dict):
            merged[key] = theirs | mine
    return merged, _read_files(BUILT_IN / base, base) | files, base


def _toml_of(name: str) -> Path:
    return BUILT_IN / name / _DEFINITION


def _read_toml(path: Path, shown: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        message = str(error)[:1].lower() + str(error)[1:]
        raise Problems([f"{shown}/{_DEFINITION}: {message}"]) from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start + 1})") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {(error.strerror or '').lower()}") from None


def _read_files(folder: Path, shown: str) -> dict[str, SourceFile]:
    paths = [*folder.glob("*.sql"), *folder.glob("*/*.sql")]
    found = {}
    for path in sorted(paths):
        relative = path.relative_to(folder).as_posix()
        found[relative] = SourceFile(shown=f"{shown}/{relative}", text=_read_text(path))
    return found


def _validated(raw: dict[str, Any], shown: str) -> WorkloadFile:
    try:
        return WorkloadFile.model_validate(raw)
    except ValidationError as error:
        problems = []
        for each in error.errors():
            key = "".join(
                f"[{part}]" if isinstance(part, int) else f".{part}" for part in each["loc"]
            )
            problems.append(f"{shown}/{_DEFINITION}: {key.lstrip('.')}: {_told(each)}")
    raise Problems(
        list(dict.fromkeys(problems)), hint="docs/workloads.md lists the keys of a workload.toml"
    )


def _told(error: Any) -> str:
    """One of pydantic's errors in our words; a mistyped key gets the nearest one."""
    match error["type"]:
        case "extra_forbidden":
            near = nearest_hint(str(error["loc"][-1]), WorkloadFile.model_fields)
            return "unknown key" + (f", {near}" if len(error["loc"]) == 1 else "")
        case "missing":
            return "missing"
        case "value_error":
            return str(error["ctx"]["error"])
        case "string_pattern_mismatch":
            return "must be lower-case letters, digits and _, beginning with a letter"
        case _:
            message = str(error["msg"])
            return message[:1].lower() + message[1:]


def _file_problems(definition: WorkloadFile, files: dict[str, SourceFile], shown: str) -> list[str]:
    """Files that are named but missing, and files that nothing names."""
    named = {
        f"transaction_types[{n}].file": t.file for n, t in enumerate(definition.transaction_types)
    }
    named |= {f"checks[{n}].file": check.file for n, check in enumerate(definition.checks)}
    problems = [
        f"{shown}/{_DEFINITION}: {key}: there is no file '{file}'"
        for key, file in named.items()
        if file not in files
    ]
    if not definition.transaction_types:
        problems.append(f"{shown}/{_DEFINITION}: transaction_types: there is none")
    if LOAD_FILE in files and SCHEMA_FILE not in files:
        problems.append(f"{shown}: there is a {LOAD_FILE} without a {SCHEMA_FILE}")
    if SCHEMA_FILE in files and not definition.tables:
        problems.append(
            f"{shown}/{_DEFINITION}: tables: must name the tables that {SCHEMA_FILE} makes"
        )
    if definition.base is None:
        strays = set(files) - set(named.values()) - set(_PLAIN_FILES)
        problems += [f"{shown}/{stray}: nothing uses this file" for stray in sorted(strays)]
    return problems
