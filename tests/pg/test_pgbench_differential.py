"""The engine as `pgbench` beside stock pgbench: the same words, the same outcome to the letter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.pg.pgbench_cases import (
    CREATE,
    expression_cases,
    initialisation_cases,
    option_cases,
    script_cases,
    timed_cases,
)
from tests.pg.pgbench_pair import Case, Pair, link_to_engine, stock_programs

pytestmark = pytest.mark.pg

STOCK = stock_programs()
GROUPS = (expression_cases, script_cases, option_cases, timed_cases, initialisation_cases)


@pytest.fixture
def pair(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Iterator[Pair]:
    """Both programs at a database that the stock one has initialised."""
    major: int = request.param
    place = tmp_path / "scripts"
    place.mkdir()
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(CREATE)
        both = Pair(
            stock=STOCK[major],
            major=major,
            ours=link_to_engine(tmp_path),
            database=database,
            session=session,
            place=place,
        )
        made = both.run(Case(name="tables", words="-i -I dtgp -q"), both.stock)
        assert made.status == 0, made.stderr
        yield both


def combinations() -> list[object]:
    """Versions and groups of cases: all groups with the newest, and where versions word things
    differently others, too, as far as a minute allows."""
    if not STOCK:
        skip = pytest.mark.skip("no pgbench of PostgreSQL 15 to 18 is installed")
        return [pytest.param(0, option_cases, marks=skip)]
    groups = {major: [option_cases] for major in STOCK}
    groups[min(STOCK)] = [option_cases, initialisation_cases]
    groups[max(STOCK)] = list(GROUPS)
    return [(major, group) for major in sorted(groups) for group in groups[major]]


@pytest.mark.parametrize(("pair", "cases"), combinations(), indirect=["pair"])
def test_the_engine_does_what_stock_pgbench_does(
    pair: Pair, cases: Callable[[], list[Case]], capsys: pytest.CaptureFixture[str]
) -> None:
    start = time.monotonic()
    count, differences = pair.differences(cases())
    with capsys.disabled():
        print(  # noqa: T201 (the count is what the test has to show)
            f"\n{cases.__name__}: {count} cases with pgbench {pair.major}, "
            f"{len(differences)} differ, {time.monotonic() - start:.1f} s"
        )
    assert count > 0
    assert not differences, "\n\n".join(differences)
