"""The script language against stock pgbench: same seed, same script, same rows; every protocol."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.pg.engine_runs import run_engine

pytestmark = pytest.mark.pg

SEED = 20260
TRANSACTIONS = 60
# PostgreSQL 15 is the first whose pgbench has this generator.
FIRST_VERSION = 15

SCRIPT = """\
\\set uniform random(1, 100000 * :scale)
\\set normal random_gaussian(-500, 500, 2.5)
\\set steep random_exponential(1, 1000, 3.5)
\\set skewed random_zipfian(1, 100000, 1.07)
\\set mixed permute(:uniform - 1, 100000) + hash(:skewed) % 1000
\\set share :uniform / 3.0
BEGIN;
SELECT :normal + 1000 AS n, 'x;y' AS word \\gset got_
\\if :got_n % 2 = 0 and :steep < 500
INSERT INTO drawn
  VALUES (:client_id, :uniform, :normal, :steep, :skewed, :mixed, :share, 'even');
\\elif :got_n % 3 = 0
INSERT INTO drawn
  VALUES (:client_id, :uniform, :normal, :steep, :skewed, :mixed, :share, 'third');
\\else
INSERT INTO drawn VALUES (:client_id, :uniform, :normal, 0, 0, :mixed, :share, $$e;l$$ || 'se');
\\endif
END;
"""
CREATE = """
DROP TABLE IF EXISTS drawn;
CREATE TABLE drawn (
    client int, uniform int, normal int, steep int, skewed int,
    mixed bigint, share float8, word text
)
"""


def stock_pgbench() -> str | None:
    """A pgbench with the generator of PostgreSQL 15 and later."""
    found = shutil.which("pgbench")
    if found is None:
        return None
    version = subprocess.run(
        [found, "--version"], capture_output=True, text=True, check=True
    ).stdout
    return found if int(version.split()[2].split(".")[0]) >= FIRST_VERSION else None


def rows(database: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT * FROM drawn ORDER BY client, ctid").fetchall()


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_a_seed_gives_the_rows_that_stock_pgbench_writes(
    database: str, tmp_path: Path, protocol: str
) -> None:
    pgbench = stock_pgbench()
    if pgbench is None:
        pytest.skip(f"no pgbench of PostgreSQL {FIRST_VERSION} or later on PATH")
    script = tmp_path / "drawn.sql"
    script.write_text(SCRIPT)
    words = conninfo_to_dict(database)
    environment = {
        f"PG{name.upper()}": str(value) for name, value in words.items() if name != "dbname"
    }
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(CREATE)
    options = f"-n -M {protocol} -c 2 -j 1 -t {TRANSACTIONS} -s 1 --random-seed={SEED}".split()
    subprocess.run(
        [pgbench, *options, "-f", str(script), str(words["dbname"])],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        timeout=60,
    )
    expected = rows(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(CREATE)
    run = run_engine(
        tmp_path,
        database,
        SCRIPT,
        protocol=protocol,
        clients=2,
        threads=1,
        transactions_per_client=TRANSACTIONS,
        seed=SEED,
    )
    assert (run.status, run.error) == (0, "")
    assert len(expected) == 2 * TRANSACTIONS
    assert rows(database) == expected
    assert {row[-1] for row in expected} == {"even", "third", "e;lse"}
