"""Workloads as data: found, read, mistakes told at once, parameters resolved, files rendered."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput, Problems
from pgdyno.workloads import catalog, rendering, statements
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.statements import split_sections, split_statements

pytestmark = pytest.mark.unit

ALL = {
    "noop": [{}],
    "tpcb": [{}, {"scale": "1"}, {"scale": "20_000"}],
    "simple-update": [{}, {"scale": "3"}],
    "select-only": [{}, {"scale": "3"}],
    "userlogin": [
        {"shards": shards, "functions": functions, "log_tables": tables, "transactions": kind}
        for shards in ("1", "5")
        for functions in ("plpgsql", "sql")
        for tables in ("logged", "unlogged")
        for kind in ("login", "logout", "both")
    ],
}
MINIMAL = """
description = "one"
source = "me"
[[transaction_types]]
name = "one"
file = "one.sql"
"""


def written(folder: Path, definition: str = MINIMAL, **files: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "workload.toml").write_text(definition)
    (folder / "one.sql").write_text("select 1;\n")
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return str(folder)


def problems_of(choice: str, **parameters: str) -> list[str]:
    with pytest.raises(Problems) as caught:
        resolve(catalog.find(choice), parameters)
    return list(caught.value.problems)


def test_the_catalogue_is_what_this_test_covers() -> None:
    assert set(catalog.names()) == set(ALL)
    assert [workload.name for workload in catalog.catalog()] == sorted(ALL)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_workload_renders_under_all_its_choices(name: str) -> None:
    for parameters in ALL[name]:
        workload = resolve(catalog.find(name), parameters)
        texts = [workload.schema_sql, workload.functions_sql, workload.reset_sql]
        texts += [*workload.index_statements, *(kind.script for kind in workload.transaction_types)]
        texts += [section.script for section in workload.sections]
        texts += [check.query for check in workload.checks]
        assert not [text for text in texts if "{{" in text or "{%" in text]
        assert all(kind.script.rstrip().endswith(";") for kind in workload.transaction_types)
        for table in workload.tables:
            assert re.search(rf"create (unlogged )?table {table.name} \(", workload.schema_sql)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_workload_explains_itself(name: str) -> None:
    workload = catalog.find(name)
    readme = (catalog.BUILT_IN / name / "README.md").read_text()
    assert readme.startswith(f"# {name}: ")
    assert all(f"`{parameter}`" in readme for parameter in workload.parameters)
    assert all(
        check.name in readme or "as `tpcb`" in readme for check in workload.definition.checks
    )


def test_the_seed_of_2014() -> None:
    seed = {"users": "100_000_000", "shards": "5", "functions": "sql", "log_tables": "unlogged"}
    workload = resolve(catalog.find("userlogin"), seed | {"transactions": "both"})
    assert [kind.name for kind in workload.transaction_types] == [
        f"login_logout_{n}" for n in range(5)
    ]
    assert workload.transaction_types[1].script.splitlines() == [
        r"\set userid random(20000001, 40000000)",
        "SELECT f_user_login_1(:userid);",
        "SELECT f_user_logout_1(:userid);",
    ]
    assert workload.unlogged_tables == ("user_login_rec", "user_logout_rec")
    assert workload.rows == 200_000_000
    assert {section.rows for section in workload.sections} == {20_000_000}
    # The article says about 15 + 6 GB of tables and 4.3 GB of keys.
    assert 22e9 < workload.expected_bytes < 30e9


def test_shards_share_users_without_gap_or_overlap() -> None:
    workload = resolve(catalog.find("userlogin"), {"users": "11", "shards": "4"})
    ranges = [
        tuple(map(int, re.findall(r"random\((\d+), (\d+)\)", kind.script)[0]))
        for kind in workload.transaction_types
    ]
    assert ranges == [(1, 2), (3, 5), (6, 8), (9, 11)]
    assert [s.rows for s in workload.sections if "info" in s.name] == [2, 3, 3, 3]


def test_a_swallowed_error_is_a_failure_only_where_the_function_says_so() -> None:
    def failure(functions: str, kind: str, shards: str = "1") -> str | None:
        given = {"functions": functions, "transactions": kind, "shards": shards}
        rule = resolve(catalog.find("userlogin"), given).transaction_types[-1].failure
        return None if rule is None else f"{rule.column}={rule.success}"

    assert failure("plpgsql", "logout") == "f_user_logout=0"
    assert failure("plpgsql", "both", "2") == "f_user_logout_1=0"
    assert failure("plpgsql", "login") is None
    assert failure("sql", "logout") is None


def test_workloads_with_a_base_have_its_data_and_their_own_transactions() -> None:
    tpcb, simple = (resolve(catalog.find(name), {}) for name in ("tpcb", "simple-update"))
    assert (simple.name, simple.data_name) == ("simple-update", "tpcb")
    assert simple.sections == tpcb.sections and simple.schema_sql == tpcb.schema_sql
    assert [kind.name for kind in simple.transaction_types] == ["simple_update"]


def test_account_numbers_grow_as_pgbenchs_do() -> None:
    assert "aid int not null" in resolve(catalog.find("tpcb"), {"scale": "19_999"}).schema_sql
    assert "aid bigint not null" in resolve(catalog.find("tpcb"), {"scale": "20_000"}).schema_sql


def test_unknown_workloads_get_the_nearest_names() -> None:
    with pytest.raises(InvalidInput) as caught:
        catalog.find("tpbc")
    assert str(caught.value) == "workload 'tpbc' does not exist\nhint: did you mean 'tpcb'?"


def test_parameters_are_read_as_people_write_them() -> None:
    workload = resolve(catalog.find("userlogin"), {"users": "2M"})
    assert workload.parameters["users"] == 2_000_000
    assert workload.data_parameters == {"users": 2_000_000, "shards": 1, "log_tables": "logged"}
    assert workload.variables == {"users": "2000000", "shards": "1"}


def test_all_wrong_parameters_are_told_at_once() -> None:
    problems = problems_of("userlogin", user="7", users="0", functions="perl", shards="1.5")
    assert problems == [
        "workload 'userlogin' has no parameter 'user': did you mean 'users'?",
        "parameter 'users': 0 users is below the smallest allowed, 1",
        "parameter 'shards': '1.5' is not a whole number (write it as 2000000, 2_000_000 or 2M)",
        "parameter 'functions': 'perl' is not one of plpgsql, sql",
    ]
    assert problems_of("userlogin", users="3", shards="5") == ["there are more shards than users"]
    assert "above the largest allowed, 20,000" in problems_of("tpcb", scale="20001")[0]


def test_weights_can_be_chosen() -> None:
    workload = catalog.find("userlogin")
    resolved = resolve(workload, {"shards": "2"}, weights={"login_1": 3})
    assert [kind.weight for kind in resolved.transaction_types] == [1, 3]
    with pytest.raises(Problems) as caught:
        resolve(workload, {}, weights={"logon": 1, "login": 0})
    assert caught.value.problems == (
        "workload 'userlogin' has no transaction type 'logon': did you mean 'login'?",
        "no transaction type of workload 'userlogin' has a weight above 0",
    )


def test_a_bare_script_is_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "2 Ways.sql"
    path.write_text("\\set x random(1, :top)\nselect '{{1,2}}', :x;\n")
    workload = resolve(catalog.find(str(path)), {"top": "9"})
    (kind,) = workload.transaction_types
    assert (kind.name, kind.source) == ("script_2_ways", str(path))
    assert kind.script == path.read_text()
    assert workload.variables == {"top": "9"} and workload.tables == ()


@pytest.mark.parametrize(
    ("name", "message"), [("missing.sql", "cannot be read: no such file"), ("bad.sql", "not UTF-8")]
)
def test_unreadable_scripts_are_told(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "bad.sql").write_bytes(b"select '\xff';")
    with pytest.raises(InvalidInput, match=message):
        catalog.find(str(tmp_path / name))


def test_a_users_folder_is_a_workload(tmp_path: Path) -> None:
    workload = resolve(catalog.find(written(tmp_path / "mine")), {})
    assert (workload.name, workload.data_name) == ("mine", "mine")
    assert workload.transaction_types[0].script == "select 1;\n"


def test_a_folder_without_a_definition_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no workload.toml"):
        catalog.find(str(tmp_path))


def test_all_mistakes_of_a_definition_are_told_with_their_keys(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "mine",
        """
descripton = "mistyped"
source = "me"
data_version = 0
[parameters.Users]
type = "integer"
default = 1
affects = "data"
about = "upper case"
[parameters.rows]
type = "integer"
default = "many"
affects = "data"
about = "no number"
[parameters.mode]
type = "choice"
default = "a"
affects = "disk"
about = "no choices"
[[transaction_types]]
name = "one"
""",
    )
    found = "\n".join(problems_of(folder))
    for expected in (
        "mine/workload.toml: descripton: unknown key, did you mean 'description'?",
        "mine/workload.toml: description: missing",
        "mine/workload.toml: data_version: input should be greater than or equal to 1",
        "parameters.Users.[key]: must be lower-case letters",
        "parameters.rows: default 'many' is not of type 'integer'",
        "parameters.mode.affects: input should be 'data' or 'load'",
        "mine/workload.toml: transaction_types[0].file: missing",
    ):
        assert expected in found, found


def test_all_mistakes_between_files_are_told(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "mine",
        MINIMAL
        + 'weight = "1 +"\n[[transaction_types]]\nname = "two"\nfile = "two.sql"\n'
        + '[[checks]]\nname = "c"\nfile = "checks/c.sql"\nabout = "c"\n'
        + 'after_load = ["row.a = 1", "change.a == 0"]\nafter_measurement = ["comitted == 1"]\n',
        schema="create table t (a int);",
        stray="select 2;",
    )
    found = problems_of(folder)
    assert [line.split("mine/")[1] for line in found] == [
        "workload.toml: transaction_types[0].weight: invalid syntax at column 1 of '1 +'",
        "workload.toml: checks[0].after_load[0]: invalid syntax at column 7 of 'row.a = 1'",
        "workload.toml: checks[0].after_load[1]: 'change.a' is not known, there is only reused",
        "workload.toml: checks[0].after_measurement[0]: 'comitted' is not known, "
        "did you mean 'committed'?",
        "workload.toml: transaction_types[1].file: there is no file 'two.sql'",
        "workload.toml: checks[0].file: there is no file 'checks/c.sql'",
        "workload.toml: tables: must name the tables that schema.sql makes",
        "stray.sql: nothing uses this file",
    ]


def test_broken_toml_is_told_with_its_line(tmp_path: Path) -> None:
    (problem,) = problems_of(written(tmp_path / "mine", "a = 1\nb = \n"))
    assert "mine/workload.toml: invalid value (at line 2" in problem


def test_an_unknown_base_is_told(tmp_path: Path) -> None:
    (problem,) = problems_of(written(tmp_path / "mine", MINIMAL + "\n[x]\n").replace("x", "x"))
    assert "x: unknown key" in problem
    folder = written(tmp_path / "other", 'base = "select-only"\n' + MINIMAL)
    (problem,) = problems_of(folder)
    assert "there is no workload 'select-only' to build on" in problem


def test_mistakes_in_templates_are_told_with_their_lines(tmp_path: Path) -> None:
    tables = '[[tables]]\nname = "t"\n'
    folder = written(
        tmp_path / "mine", MINIMAL + tables, schema="create table t (a int);\n{{ sise }}\n"
    )
    (tmp_path / "mine" / "one.sql").write_text("select 1;\n\n{% for x in %}\n")
    assert [line.split("mine/")[1] for line in problems_of(folder)] == [
        "one.sql:3: expected an expression, got 'end of statement block'",
        "schema.sql:2: 'sise' is undefined",
    ]


def test_templates_cannot_reach_out(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine")
    (tmp_path / "mine" / "one.sql").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }};")
    (problem,) = problems_of(folder)
    assert "unsafe" in problem


def test_statements_are_told_apart() -> None:
    text = """
    -- a comment; with a semicolon
    create index i on t (a) where b = 'x;''y'; /* a /* nested; */ one; */
    do $body$ begin perform 1; end $body$;
    select $1, a$b$c, E'it\\'s; ', "odd;name" ;;
    """
    assert split_statements(text) == (
        "create index i on t (a) where b = 'x;''y'",
        "do $body$ begin perform 1; end $body$",
        "select $1, a$b$c, E'it\\'s; ', \"odd;name\"",
    )
    assert split_statements("-- nothing\n/* unfinished ;") == ()


def test_sections_have_rows_by_expression() -> None:
    text = (
        "-- first\n-- section a: 2 * n rows\ncopy a from stdin;\n:row\n\\.\n"
        "\n-- section b: 0 rows\ninsert into b values (:lo, :hi);\n"
    )
    a, b = split_sections(text, "load.sql", {"n": 21})
    assert (a.name, a.rows, a.script) == ("a", 42, "copy a from stdin;\n:row\n\\.\n")
    assert (b.name, b.rows, b.script) == ("b", 0, "insert into b values (:lo, :hi);\n")


def test_all_wrong_sections_are_told() -> None:
    text = (
        "select 1;\n-- section a: m rows\nselect 1;\n-- section b: 0 - 1 rows\nselect 1;\n"
        "-- section c: 1 rows\n-- nothing\n-- section d: 1 rows\nselect 1;\n"
        "-- section d: 1 rows\nselect 1;\n"
    )
    with pytest.raises(Problems) as caught:
        split_sections(text, "load.sql", {"n": 21})
    assert caught.value.problems == (
        "load.sql: SQL stands before the first '-- section NAME: EXPRESSION rows'",
        "load.sql:2: 'm' in 'm' is not known",
        "load.sql:4: section 'b' has -1 rows",
        "load.sql:6: section 'c' is empty",
        "load.sql:10: there are two sections 'd'",
    )


@pytest.mark.parametrize("module", [catalog, rendering, statements])
def test_the_manual_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_the_manuals_example_is_a_workload(tmp_path: Path) -> None:
    """docs/workloads.md must be enough to write one: its own example is read and resolved."""
    manual = (catalog.BUILT_IN.parent.parent / "docs" / "workloads.md").read_text()
    (definition,) = re.findall(r"```toml\n(.*?)```", manual, re.DOTALL)
    sections = [
        block
        for block in re.findall(r"```sql\n(.*?)```", manual, re.DOTALL)
        if "-- section" in block
    ]
    folder = tmp_path / "mybank"
    for name, text in {
        "workload.toml": definition,
        "schema.sql": "create table ledger_account (id int);",
        "load.sql": "".join(sections),
        "transactions/transfer.sql": r"\set id random(1, :accounts)" + "\nselect :id;\n",
        "transactions/audit.sql": "select {{ half }} as audit_result;\n",
        "checks/money.sql": "select 1 as accounts, 0 as entries, 0 as balance\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    workload = resolve(catalog.find(str(folder)), {"accounts": "3k"})
    assert [section.rows for section in workload.sections] == [3000, 30_000]
    assert [kind.weight for kind in workload.transaction_types] == [9, 1]
    assert workload.transaction_types[1].script == "select 1500 as audit_result;\n"
    assert workload.expected_bytes == 1_390_000
    assert problems_of(str(folder), accounts="1") == ["a transfer needs two accounts"]
