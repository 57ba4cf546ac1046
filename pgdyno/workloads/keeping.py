"""A workload kept in a run folder, so that the run can be repeated from there alone.

What is kept is the workload as it was read: a base's files beside its own, and `kept.toml` for what
its folder's name and place said. `keep` and `find_kept` are each other's inverse.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import tomli_w

from pgdyno.errors import InvalidInput
from pgdyno.workloads.definition import SourceFile, Workload, WorkloadFile

_DEFINITION = "workload.toml"
_KEPT = "kept.toml"


def keep(workload: Workload, folder: Path) -> None:
    """Write the workload's definition and files into `folder`."""
    folder.mkdir(parents=True)
    definition = workload.definition.model_copy(update={"base": None})
    document = definition.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    (folder / _DEFINITION).write_text(tomli_w.dumps(document), encoding="utf-8")
    for name, file in workload.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
    kept = {
        "name": workload.name,
        "data_name": workload.data_name,
        "open_parameters": workload.open_parameters,
        "files": sorted(workload.files),
        "plain": sorted(name for name, file in workload.files.items() if file.plain),
    }
    (folder / _KEPT).write_text(tomli_w.dumps(kept), encoding="utf-8")


def find_kept(folder: Path) -> Workload:
    """The workload kept in `folder`. Raises `InvalidInput` where there is none."""
    try:
        kept = tomllib.loads((folder / _KEPT).read_text(encoding="utf-8"))
        raw = tomllib.loads((folder / _DEFINITION).read_text(encoding="utf-8"))
        files = {
            name: SourceFile(
                shown=f"{kept['name']}/{name}",
                text=(folder / name).read_text(encoding="utf-8"),
                plain=name in kept["plain"],
            )
            for name in kept["files"]
        }
        return Workload(
            name=kept["name"],
            data_name=kept["data_name"],
            definition=WorkloadFile.model_validate(raw),
            files=files,
            folder=folder,
            open_parameters=kept["open_parameters"],
        )
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(
            f"{folder} does not hold a kept workload: {str(error).splitlines()[0]}",
            hint="the run folder is incomplete; run the workload itself again",
        ) from None
