"""Write what in docs/ is made from the code: schemas, tables. A test says when they are old.

Run it as `make docs`.
"""

from __future__ import annotations

import json
from pathlib import Path

from pgdyno import contract, model
from pgdyno.contract import Noun
from pgdyno.experiment.definition import ExperimentFile
from pgdyno.experiment.factor_words import WORDS
from pgdyno.experiment.responses import METRICS
from pgdyno.experiment.system_file import SystemFile
from pgdyno.observers.tables import with_tables

ROOT = Path(__file__).resolve().parent.parent

SCHEMAS: dict[str, type[Noun]] = {
    "plan": contract.Plan,
    "load_plan": contract.LoadPlan,
    "load_progress": contract.LoadProgress,
    "summary": contract.Summary,
    "interval": contract.Interval,
    "history": contract.HistoryEvent,
    "logged_transaction": contract.LoggedTransaction,
    "experiment": model.Experiment,
    "trial": model.Trial,
    "checks": model.Checks,
    "settings": model.Settings,
    "sizes": model.Sizes,
    "environment": model.Environment,
    "experiment_file": ExperimentFile,
    "system_file": SystemFile,
}

WORDS_MARKS = ("<!-- words: made by `make docs` -->", "<!-- end of words -->")
METRICS_MARKS = ("<!-- metrics: made by `make docs` -->", "<!-- end of metrics -->")


def documents() -> dict[Path, str]:
    """Every generated file with its text."""
    made = {}
    for name, noun in SCHEMAS.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        schema |= noun.model_json_schema(mode="validation")
        made[ROOT / "docs" / "schemas" / f"{name}.schema.json"] = (
            json.dumps(schema, indent=2) + "\n"
        )
    observers = ROOT / "docs" / "observers.md"
    made[observers] = with_tables(observers.read_text())
    experiments = ROOT / "docs" / "experiments.md"
    page = between(experiments.read_text(), WORDS_MARKS, words_table())
    made[experiments] = between(page, METRICS_MARKS, metrics_table())
    return made


def words_table() -> str:
    """What a trial can vary, as a table."""
    rows = [f"| `{name}` | {word.about} | `{word.example}` |" for name, word in WORDS.items()]
    return "\n".join(["| word | what it is | for example |", "|---|---|---|", *rows])


def metrics_table() -> str:
    """What an experiment can judge, as a table."""
    rows = [
        f"| `{each.name}` | {each.words} | {each.unit} | {each.direction} |"
        for each in METRICS.values()
    ]
    return "\n".join(["| metric | what it is | unit | better is |", "|---|---|---|---|", *rows])


def between(page: str, marks: tuple[str, str], made: str) -> str:
    """The page with everything between two marks made anew; `ValueError` without the marks."""
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"the page has no {marks[0]} … {marks[1]}")
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def main() -> None:
    """Write them all."""
    for path, text in documents().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
