"""Rules of style as tests: sizes, docstrings, words, units, SQL headers, nothing of one machine."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent.parent
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60

# Words with a better one in docs/glossary.md; file and definition names that say nothing.
BANNED_WORDS = {
    "master": "primary",
    "slave": "standby",
    "qps": "throughput_per_s",
    "latency": "service_time, schedule_lag or response_time",
}
EMPTY_NAMES = re.compile(r"(^|_)(utils?|helpers?|misc|managers?)(_|$)|^common$")
# Names that are given from outside: settings, options and columns of other programs.
GIVEN_NAMES = frozenset({"latency_limit"})
# Where the options, lines and columns of pgbench are spoken, so is its word for a response time.
PGBENCH_SPOKEN = (
    ROOT / "engine" / "src" / "cli" / "pgbench",
    ROOT / "pgdyno" / "foreign",
    ROOT / "pgdyno" / "reports" / "pgbench_page.py",
    ROOT / "tests" / "unit" / "test_pgbench_page.py",
)
UNITLESS = re.compile(r"(^|_)(time|latency|duration|interval|delay|timeout)$")
# A machine's own paths, and package sources other than the public ones.
MACHINE_PATHS = re.compile(
    r"/(?:work/(?:main|shared)|tmp/(?:brief|bash_jobs)|root/\.|home/[a-z]+/)"
)
PACKAGE_SOURCES = re.compile(
    r"https?://[^\s\"'/]*(?:registry|proxy|mirror|artifactory|nexus|pypi|crates)[^\s\"'/]*"
)


@cache
def tracked() -> tuple[Path, ...]:
    """Files that belong to the project: known to git, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("not a git checkout: files of the project cannot be told from others")
    return tuple(path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file())


def files(*suffixes: str, under: str = "") -> list[Path]:
    """The project's files of some kinds."""
    return [p for p in tracked() if p.suffix in suffixes and p.is_relative_to(ROOT / under)]


def shown(path: Path, line: int | None = None) -> str:
    name = str(path.relative_to(ROOT))
    return name if line is None else f"{name}:{line}"


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def nodes(*suffix_roots: str) -> Iterator[tuple[Path, ast.AST]]:
    for path in files(".py"):
        if not suffix_roots or any(path.is_relative_to(ROOT / one) for one in suffix_roots):
            yield from ((path, node) for node in ast.walk(tree_of(path)))


def test_there_is_something_to_look_at() -> None:
    assert len(files(".py")) > 50
    assert len(files(".rs")) > 20
    assert len(files(".sql")) > 20


def test_every_file_opens_by_saying_what_it_is_for() -> None:
    silent = [shown(p) for p in files(".py") if not ast.get_docstring(tree_of(p))]
    silent += [shown(p) for p in files(".rs") if not text_of(p).startswith("//!")]
    # A transaction's script is described in its workload.toml, so that it can be quoted unchanged.
    sql = [p for p in files(".sql", ".lua") if p.parent.name != "transactions"]
    silent += [shown(p) for p in sql if not text_of(p).startswith("--")]
    assert silent == []


def test_files_are_short() -> None:
    kinds = (".py", ".rs", ".sql", ".js", ".css", ".html", ".toml")
    lengths = {shown(p): text_of(p).count("\n") for p in files(*kinds)}
    assert {name: n for name, n in lengths.items() if n > FILE_LINES_MAX} == {}


def test_functions_fit_a_screen() -> None:
    long = []
    for path, node in nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                long.append(f"{shown(path, node.lineno)} {node.name}: {lines} lines")
    assert long == []


def test_public_names_have_docstrings() -> None:
    silent = []
    for path in files(".py", under="pgdyno"):
        tree = tree_of(path)
        classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"]
        for owner in (tree, *classes):
            for node in owner.body:
                named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                if named and node.name[0] != "_" and not ast.get_docstring(node):
                    silent.append(f"{shown(path, node.lineno)} {node.name}")
    assert silent == []


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Every identifier of a Python or Rust file with its line; not words of comments and texts."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
        return
    bare = re.sub(
        r'r(#+)".*?"\1|"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/',
        lambda match: "\n" * match[0].count("\n"),
        text_of(path),
        flags=re.DOTALL,
    )
    for number, line in enumerate(bare.splitlines(), start=1):
        yield from ((number, word) for word in re.findall(r"[A-Za-z_]\w*", line))


def words_of(identifier: str) -> set[str]:
    """The words of an identifier in lower case: `meanLatencyUs`, `mean_latency_us`."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_"))


def test_identifiers_use_the_words_of_the_glossary() -> None:
    wrong = [
        f"{shown(path, line)} {name}: say {BANNED_WORDS[word]}"
        for path in files(".py", ".rs")
        for line, name in identifiers(path)
        if name not in GIVEN_NAMES
        for word in sorted(words_of(name) & BANNED_WORDS.keys())
        if not (word == "latency" and any(path.is_relative_to(place) for place in PGBENCH_SPOKEN))
    ]
    assert wrong == []


def test_names_of_files_and_definitions_say_something() -> None:
    wrong = [shown(p) for p in tracked() if EMPTY_NAMES.search(p.stem.lower())]
    for path, node in nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            words = "_".join(re.split(r"(?<=[a-z0-9])(?=[A-Z])", node.name)).lower()
            if EMPTY_NAMES.search(words):
                wrong.append(f"{shown(path, node.lineno)} {node.name}")
    assert wrong == []


def is_number(annotation: ast.expr | None) -> bool:
    """Whether an annotation is int or float, or one of them or None."""
    if annotation is None:
        return False
    return set(ast.unparse(annotation).replace(" ", "").split("|")) - {"None"} <= {"int", "float"}


def unitless(node: ast.AST) -> Iterator[str]:
    """Names in a node that hold a number of which nobody can say how long it is."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        if is_number(node.annotation):
            yield node.target.id
    elif isinstance(node, ast.arg) and is_number(node.annotation):
        yield node.arg
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
        textual = isinstance(getattr(node.value, "value", 0), str | bool | None)
        yield from (one.id for one in node.targets if isinstance(one, ast.Name) and not textual)


def test_numbers_of_time_have_their_unit_in_the_name() -> None:
    wrong = [
        f"{shown(path, getattr(node, 'lineno', 0))} {name}"
        for path, node in nodes("pgdyno", "tools", "benches")
        for name in unitless(node)
        if UNITLESS.search(name.lower())
    ]
    field = re.compile(
        r"\b((?:\w+_)?(?:time|latency|duration|interval|delay|timeout))\s*:\s*"
        r"(?:Option<)?(?:[ui](?:8|16|32|64|128|size)|f32|f64)\b"
    )
    for path in files(".rs"):
        for number, line in enumerate(text_of(path).splitlines(), start=1):
            match = field.search(line.partition("//")[0])
            if match:
                wrong.append(f"{shown(path, number)} {match[1]}")
    assert wrong == []


def test_dataclasses_have_no_constructor_of_their_own() -> None:
    wrong = []
    for path, node in nodes():
        if isinstance(node, ast.ClassDef) and any(
            "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            wrong += [
                f"{shown(path, one.lineno)} {node.name}"
                for one in node.body
                if isinstance(one, ast.FunctionDef) and one.name == "__init__"
            ]
    assert wrong == []


def test_questions_say_what_they_return_since_when_and_at_what_cost() -> None:
    wrong = []
    for path in files(".sql", under="pgdyno/queries"):
        header = "".join(re.findall(r"^--[^\n]*\n", text_of(path), re.M))
        for part in ("returns", "since", "cost"):
            if not re.search(rf"\b{part}\b", header, re.IGNORECASE):
                wrong.append(f"{shown(path)}: no '{part}' in its header")
        version = re.search(r"\.(9\.\d|\d+)-", path.name)
        if version is None or not re.search(rf"\bsince {re.escape(version[1])}\b", header, re.I):
            wrong.append(f"{shown(path)}: 'Since' is not the version in its name")
    assert wrong == []


def test_nothing_of_one_machine_is_written_down() -> None:
    wrong = []
    for path in tracked():
        if path.suffix in {".png", ".gz", ".parquet", ".hlog"} or path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if MACHINE_PATHS.search(line) or PACKAGE_SOURCES.search(line):
                wrong.append(shown(path, number))
    assert wrong == []
