"""Write what in docs/ is made from the code: schemas, tables. A test says when they are old.

Run it as `make docs`.
"""

from __future__ import annotations

import json
from pathlib import Path

from pgdyno import contract, model
from pgdyno.contract import Noun
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
}


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
    return made


def main() -> None:
    """Write them all."""
    for path, text in documents().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
