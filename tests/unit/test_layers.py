"""The layer table of ARCHITECTURE.md holds: who may import whom, and what pure modules never touch.

A module belongs to the row that names the longest beginning of its name. It imports only from rows
below its own, and from its own folder; row 0 from itself. Rows called pure touch no process,
socket, clock, disk or unseeded randomness, directly or through a library made for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "pgdyno"

# Libraries whose purpose is a process, a socket, a clock, the disk or randomness.
IMPURE = frozenset(
    {
        *("asyncio", "fcntl", "glob", "io", "multiprocessing", "os", "psycopg", "resource"),
        *("secrets", "select", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess"),
        *("sys", "tempfile", "threading", "time", "urllib", "uuid"),
    }
)
# What reads the clock, opens files or asks the disk about a path; a path as a value is pure.
IMPURE_CALLS = frozenset(
    {
        *("open", "input", "print", "now", "utcnow", "today", "cwd", "home", "expanduser"),
        *("read_text", "read_bytes", "write_text", "write_bytes", "exists", "is_file", "is_dir"),
        *("iterdir", "rglob", "stat", "mkdir", "unlink", "rename", "touch", "resolve"),
    }
)


@cache
def table() -> dict[str, tuple[int, bool]]:
    """Module or folder → its layer and whether it is pure, as ARCHITECTURE.md says."""
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("## Layers")[2]
    rows = re.findall(r"^\| (\d)(, pure)? \| (.*) \|$", section.partition("\n## ")[0], re.M)
    return {
        name: (int(layer), bool(pure))
        for layer, pure, names in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }


def place(module: str) -> tuple[int, bool] | None:
    """Layer and purity of a module; None when no row names it."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        found = table().get(".".join(parts[:length]))
        if found is not None:
            return found
    return None


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its name within it; a folder has the name of its __init__."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name and name != "__main__":
            found[name] = path
    return found


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, module and name of every import of a file; the name is "" for `import module`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, node.module or "", alias.name) for alias in node.names)


def inner_import(module: str, name: str) -> str | None:
    """The module of this package that an import reaches; None for another package's."""
    if module != "pgdyno" and not module.startswith("pgdyno."):
        return None
    full = f"{module}.{name}".removeprefix("pgdyno.").removeprefix("pgdyno")
    return full if full in modules() else module.removeprefix("pgdyno").removeprefix(".")


def test_the_table_is_read() -> None:
    assert table()["cli"] == (6, False)
    assert table()["model"] == (0, True)
    assert len(table()) > 10


def test_every_row_names_something_that_exists() -> None:
    assert [name for name in table() if name not in modules()] == []


def test_every_module_has_a_layer() -> None:
    assert [name for name in sorted(modules()) if place(name) is None] == []


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_go_down(name: str) -> None:
    wrong = []
    layer, _ = place(name) or (0, False)
    folder = name.partition(".")[0]
    for line, module, imported in imports(modules()[name]):
        target = inner_import(module, imported)
        if not target or target.partition(".")[0] == folder:
            continue
        target_layer, _ = place(target) or (0, False)
        if target_layer >= max(layer, 1):
            wrong.append(f"line {line}: {name} (layer {layer}) imports {target} ({target_layer})")
    assert wrong == []


@pytest.mark.parametrize("name", sorted(n for n in modules() if (place(n) or (0, False))[1]))
def test_pure_modules_are_pure(name: str) -> None:
    path = modules()[name]
    wrong = []
    for line, module, imported in imports(path):
        library = module.partition(".")[0]
        if library in IMPURE:
            wrong.append(f"line {line}: imports {module}")
        target = inner_import(module, imported)
        if target and not (place(target) or (0, False))[1]:
            wrong.append(f"line {line}: imports {target}, which is not pure")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "random":
            # A generator with a seed of its own is pure; the module's hidden one is not.
            wrong.extend([f"line {node.lineno}: random.{node.attr}"] * (node.attr != "Random"))
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if called in IMPURE_CALLS:
                wrong.append(f"line {node.lineno}: calls {called}")
    assert wrong == []


def test_the_engine_knows_nothing_of_the_lab() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "engine" / "src").rglob("*.rs"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if re.search(r"\.py\b|python", line.partition("//")[0], re.IGNORECASE)
    ]
    assert wrong == []
