"""The experiment file: what it means, and every mistake told at once with its line."""

from __future__ import annotations

import contextlib
import re
import tomllib
from functools import partial
from pathlib import Path

import jsonschema
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.contract import Reconnect, Retry, TransactionLog
from pgdyno.errors import PgdynoError, Problems
from pgdyno.experiment.definition import ExperimentFile, read_definition
from pgdyno.experiment.design import Design, Occasion, design, experiment_of
from pgdyno.experiment.factor_words import WORDS
from pgdyno.experiment.toml_lines import key_lines
from pgdyno.model import Experiment, LoadChoice, Sessions, SystemChoice
from pgdyno.workloads import catalog

pytestmark = pytest.mark.unit

HOST = {"cpus": 8, "memory_bytes": 16 * 2**30, "memory_mb": 16 * 1024}
ON_OFF = """
question = "does it pay?"
workload = "tpcb"
param.scale = 50
clients = "2 * cpus"
time = "30s"
warmup = "steady, at most 20s"
set.shared_buffers = "{memory_mb // 4}MB"

[factors]
set.synchronous_commit = ["on", "off"]
"""


def read(tmp_path: Path, text: str) -> Design:
    path = tmp_path / "it.toml"
    path.write_text(text)
    return meant(path)


def meant(path: Path) -> Design:
    find = partial(catalog.find_beside, folder=path.parent)
    return design(read_definition(path), HOST, find)


def made(found: Design, *, noise_known: bool = True) -> Experiment:
    occasion = Occasion(
        id="abc", name="it", created="2026-01-01T00:00:00+00:00", pgdyno_version="0",
        noise_known=noise_known,
    )  # fmt: skip
    experiment, workloads = experiment_of(found, occasion)
    assert set(workloads) == {variant.name for variant in experiment.variants}
    return Experiment.model_validate(experiment.model_dump())


def problems(tmp_path: Path, text: str) -> list[str]:
    """What is told about a file, as `line: text`."""
    with pytest.raises(Problems) as caught:
        read(tmp_path, text)
    assert caught.value.exit_code == 2
    return [line.removeprefix(f"{tmp_path}/it.toml:") for line in caught.value.problems]


def test_a_factor_makes_variants_in_the_persons_order(tmp_path: Path) -> None:
    experiment = made(read(tmp_path, ON_OFF))
    on, off = experiment.variants
    assert (on.name, off.name) == ("synchronous_commit=on", "synchronous_commit=off")
    assert on.levels == {"set:synchronous_commit": "on"}
    assert experiment.baseline == on.name
    assert off.system.settings == {"shared_buffers": "4096MB", "synchronous_commit": "off"}
    assert (off.load.clients, off.load.warmup_s, off.load.steady_warmup) == (16, 20.0, True)
    assert off.workload.parameters == {"scale": 50}
    assert (experiment.stopping.policy, experiment.stopping.replicates) == ("fixed", 10)
    assert [(r.metric, r.direction, r.matters) for r in experiment.responses] == [
        ("throughput_per_s", "higher", 0.02)
    ]


def test_factors_are_crossed(tmp_path: Path) -> None:
    text = ON_OFF.replace('clients = "2 * cpus"\n', "") + 'clients = [4, "3 * cpus"]\n'
    assert [
        (variant.system.settings["synchronous_commit"], variant.load.clients)
        for variant in read(tmp_path, text).variants
    ] == [("on", 4), ("on", 24), ("off", 4), ("off", 24)]


def test_chosen_combinations_may_change_anything(tmp_path: Path) -> None:
    experiment = made(
        read(
            tmp_path,
            """
            workload = "tpcb"
            baseline = "old"
            [[variants]]
            name = "new"
            pg = "18"
            "set:jit" = false
            [[variants]]
            name = "old"
            pg = 15
            workload = "select-only"
            param = { scale = "clients * 2" }
            clients = 3
            before = "true"
            """,
        )
    )
    new, old = experiment.variants
    assert (new.system.pg, new.system.settings) == ("18", {"jit": "off"})
    assert (old.system.pg, old.workload.name, old.before) == ("15", "select-only", "true")
    assert old.workload.parameters["scale"] == 6
    assert experiment.baseline == "old"
    assert {factor.name for factor in experiment.factors} >= {"pg", "set:jit", "clients"}


@pytest.mark.parametrize(
    "spelling",
    [
        'set.pg_stat_statements.track = "all"',
        'set = { "pg_stat_statements.track" = "all" }',
        '"set:pg_stat_statements.track" = "all"',
        '[set.pg_stat_statements]\ntrack = "all"',
    ],
)
def test_a_setting_can_be_spelled_in_several_ways(tmp_path: Path, spelling: str) -> None:
    (variant,) = read(tmp_path, f'workload = "noop"\n{spelling}\n').variants
    assert variant.system.settings == {"pg_stat_statements.track": "all"}


def test_a_workload_may_lie_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("select :x;")
    (variant,) = read(tmp_path, 'workload = "mine.sql"\nparam.x = 3').variants
    assert (variant.workload.name, variant.workload.parameters) == ("mine.sql", {"x": "3"})
    assert problems(tmp_path, 'workload = "mine.sq"')[0].startswith("1: workload 'mine.sq' does")


def test_the_baselines_copy_runs_where_no_noise_is_known(tmp_path: Path) -> None:
    found = read(tmp_path, ON_OFF)
    assert not made(found, noise_known=True).aa
    experiment = made(found, noise_known=False)
    copy = experiment.variants[-1]
    assert experiment.aa
    assert (copy.name, copy.copy_of) == ("synchronous_commit=on (again)", "synchronous_commit=on")
    assert copy.system == experiment.variants[0].system
    asked = read(tmp_path, "aa = true\n" + ON_OFF)
    assert made(asked, noise_known=True).aa
    assert not made(read(tmp_path, "aa = false\n" + ON_OFF), noise_known=False).aa
    assert not made(read(tmp_path, "responses = []\n" + ON_OFF), noise_known=False).aa


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('precision = "1 %"', ("precision", 1, 50, 0.01, None)),
        ("precision = 0.005\nmax_replicates = 20", ("precision", 1, 20, 0.005, None)),
        ('budget = "2h"', ("budget", 2, None, None, 7200.0)),
        ("replicates = 7", ("fixed", 7, None, None, None)),
    ],
)
def test_when_it_ends(tmp_path: Path, line: str, expected: tuple[object, ...]) -> None:
    stopping = read(tmp_path, line + ON_OFF).stopping
    assert (
        stopping.policy, stopping.replicates, stopping.max_replicates, stopping.precision,
        stopping.budget_s,
    ) == expected  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        ('sessions = "50/s of 10"\nthink_time = "1s"\nthink_times = "exponential"',
         {"sessions": Sessions(rate_per_s=50, transactions=10), "think_time_s": 1.0,
          "think_time": "exponential"}),
        ('rate = "2 * cpus"\narrivals = "constant"\nschedule = "per-client"',
         {"rate_per_s": 16.0, "arrival": "constant", "schedule": "per_client"}),
        ("max_tries = 3", {"retry": Retry(max_tries=3)}),
        ('retry_time = "2s"', {"retry": Retry(max_tries=0, max_time_s=2.0)}),
        ('max_tries = 4\nretry_time = "2s"', {"retry": Retry(max_tries=4, max_time_s=2.0)}),
        ("reconnect = true", {"reconnect": Reconnect()}),
        ('reconnect_for = "9s"', {"reconnect": Reconnect(give_up_s=9.0)}),
        ('statement_timeout = "500ms"', {"statement_timeout_s": 0.5}),
        ('clients = 8\nmin_clients = "clients // 2"', {"clients": 8, "min_clients": 4}),
        ('transaction_log = "1 %"\nhistory = true',
         {"transaction_log": TransactionLog(rate=0.01), "history": True}),
        ('engine_cpus = "0-1,4"\nthreads = "cpus // 4"', {"cpus": (0, 1, 4), "threads": 2}),
        ("transactions_per_client = 10", {"transactions_per_client": 10, "duration_s": None}),
        ('stages = "30s@0..9/s, 1min@9/s"', {"duration_s": 90.0}),
    ],
)  # fmt: skip
def test_words_of_the_load(tmp_path: Path, lines: str, fields: dict[str, object]) -> None:
    (variant,) = read(tmp_path, f'workload = "noop"\n{lines}\n').variants
    assert {name: getattr(variant.load, name) for name in fields} == fields


def test_there_is_a_word_for_every_field_of_a_load_and_a_system() -> None:
    """What `pgdyno run` can name an experiment can vary."""
    base = {"load": LoadChoice(), "system": SystemChoice()}
    named: dict[str, set[str]] = {"load": set(), "system": {"settings"}}
    for word in WORDS.values():
        if word.part not in base:
            continue
        kinds = ("constant", "shared", "simple", "haproxy")
        for level in (*kinds, "on", "1 %", "50/s of 10", "30s@9/s", 1):
            with contextlib.suppress(PgdynoError):
                named[word.part] |= set(word.read(level, {}))
    # Not varied: a trial begins with loaded data as it is, and reports have one interval.
    assert set(LoadChoice.model_fields) - named["load"] == {"reload", "interval_s"}
    assert set(SystemChoice.model_fields) - named["system"] == set()


def test_responses_have_their_metrics_direction(tmp_path: Path) -> None:
    text = 'matters = "5 %"\nresponses = ["p99_us", {metric = "throughput_per_s", matters = 0.1}]'
    found = read(tmp_path, text + ON_OFF).responses
    assert [(r.metric, r.direction, r.matters) for r in found] == [
        ("p99_us", "lower", 0.05),
        ("throughput_per_s", "higher", 0.1),
    ]


def test_all_problems_of_a_file_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """\
qestion = "?"
workload = "tpbc"
clients = "2 * cpu"
time = [1]
"sett:shared_buffers" = "1GB"
replicates = 0
responses = [{metric = "p99_us", direction = "up"}]
[factors]
set.synchronous_commit = [
  "on",
  "off",
  "on",
]
client = [8]
"""
    assert problems(tmp_path, text) == [
        "1: unknown key 'qestion'; did you mean 'question' or 'sessions' or 'precision'?",
        "2: workload 'tpbc' does not exist; did you mean 'tpcb'?",
        "3: 'cpu' in '2 * cpu' is not known; did you mean 'cpus'?",
        "4: time: must be a text, a number, or true or false",
        "5: unknown key 'sett:shared_buffers'; did you mean 'set'?",
        "6: replicates: should be greater than or equal to 1",
        "7: responses[0].direction: should be 'higher' or 'lower'",
        "12: factor 'set:synchronous_commit' has the level on twice",
        "14: 'client' is not a factor; did you mean 'clients' or 'min_clients'?",
    ]


def with_variants(*variants: str, top: str = "") -> str:
    tables = "".join(f"[[variants]]\n{each}\n" for each in variants)
    return f'workload = "tpcb"\n{top}\n{tables}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clients = 1\n", "1: there is no workload; for example workload = \"tpcb\""),
        ('workload = "tpcb"\nclients = 0', "2: clients: 0 is below the smallest allowed, 1"),
        ('workload = "tpcb"\nclients = "cpus / 3"',
         "2: clients: 'cpus / 3' is 2.66667, which is not a whole number"),
        ('workload = "tpcb"\nclients = "many"', "2: clients: 'many' is not a whole number"),
        ('workload = "tpcb"\nwarmup = "steadily"', "2: warmup: 'steadily' is not a duration"),
        ('workload = "tpcb"\ntime = "0s"', "2: time: must be above zero"),
        ('workload = "tpcb"\nrate = -1', "2: rate: -1 is not above zero"),
        ('workload = "tpcb"\nprotocol = "prepard"', "2: protocol: 'prepard' is not known; did"),
        ('workload = "tpcb"\nserver_cpus = "3-1"', "2: server_cpus: '3-1' is not a list of CPUs"),
        ('workload = "tpcb"\nset.work_mem = "{memry_mb}MB"', "2: 'memry_mb' in 'memry_mb'"),
        ('workload = "tpcb"\nparam.scale = 30_000', "2: parameter 'scale': 30 000 branches is "
         "above the largest allowed"),
        ('workload = "tpcb"\nparam.scal = 3', "2: workload 'tpcb' has no parameter 'scal': did"),
        ('workload = "tpcb"\nmix.tpcp = 3', "2: workload 'tpcb' has no transaction type 'tpcp'"),
        ('workload = "tpcb"\nport = 5433', "1: variant 'all': port needs tcp"),
        ('workload = "tpcb"\nrate = 5\nthink_time = 1', "1: variant 'all': rate or stages and"),
        ('workload = "tpcb"\nrate = 5\nsessions = "5/s of 2"', "1: variant 'all': rate and sess"),
        ('workload = "tpcb"\nsessions = "5/s"', "2: sessions: '5/s' says not how long a session"),
        ('workload = "tpcb"\narrivals = "constant"', "1: variant 'all': arrivals needs rate"),
        ('workload = "tpcb"\nmin_clients = 99', "1: variant 'all': min_clients 99 is more than"),
        ('workload = "tpcb"\ndsn = "host=x"\npg = "18"', "1: variant 'all': pg cannot be used"),
        ('workload = "tpcb"\ndsn = "hst=x"', "2: the dsn cannot be read: invalid"),
        ('workload = "tpcb"\nreplicates = 5\nbudget = "1h"', "3: replicates and budget cannot"),
        ('workload = "tpcb"\nprecision = "1 %"', "2: precision needs something to compare"),
        ('workload = "tpcb"\nprecision = 2', "2: precision: '2' is not above 0 and below 1"),
        ('workload = "tpcb"\nmax_replicates = 9', "2: max_replicates needs precision"),
        ('workload = "tpcb"\nbudget = "soon"', "2: budget: 'soon' is not a duration"),
        ('workload = "tpcb"\nresponses = ["p98_us"]', "2: 'p98_us' is not a response metric"),
        ('workload = "tpcb"\nresponses = ["p99_us", "p99_us"]', "2: metric 'p99_us' is named twi"),
        ('workload = "tpcb"\n[factors]\nclients = []', "3: factor 'clients' must be a list"),
        ('workload = "tpcb"\n[factors]\nclients = 4', "3: factor 'clients' must be a list"),
        ('workload = "tpcb"\n[factors]\nset = 4', "3: 'set' is not a factor"),
        ('workload = "tpcb"\nvariants = 3', "2: variants: must be a list"),
        ('workload = "tpcb"\nvariants = [1]', "2: variants[0]: must be a table"),
        ('workload = "tpcb"\nworkload = "tpcb"', "2: this key stands in the file twice"),
        ('workload = "tpcb"\naa = "perhaps"', "2: aa: must be true or false"),
        ('workload = "tpcb"\nreplicates = 2.5', "2: replicates: must be a whole number"),
        ('workload = "tpcb"\nresponses = [{ matters = "1 %" }]', "2: responses[0].metric: missing"),
        ('workload = "tpcb"\nresponses = [{ metric = "p99_us", direction = "up" }, "p98_us"]',
         "2: 'p98_us' is not a response metric"),
        (with_variants("clients = 1", "clients = 1"), "5: there are two variants 'clients=1'"),
        (with_variants('name = "a"\nset.work_mem = "1GB"', 'name = "b"\nset.Work_Mem = "1024 MB"'),
         "6: variants 'a' and 'b' are the same; to tell noise, write aa = true"),
        (with_variants('name = "a"', 'name = "b"\nparam.scale = 50'),
         "5: variants 'a' and 'b' are the same; to tell noise, write aa = true"),
        (with_variants("clients = 1", "clients = 2", top='baseline = "clients=3"'),
         "2: the baseline names no variant; did you mean"),
        (with_variants("clients = 1", "clients = 2", top="baseline = {threads = 1}"),
         "2: the baseline names no variant; there are clients=1, clients=2"),
        (with_variants("clients = 1", "clients = 2\n[factors]\nthreads = [1]"),
         "3: give either factors or variants, not both"),
        (with_variants("client = 1"), "4: unknown key 'client'; did you mean 'clients'"),
        ('workload = "tpcb"\nclients = ', "2: invalid value"),
    ],
)  # fmt: skip
def test_bad_input(tmp_path: Path, text: str, told: str) -> None:
    found = problems(tmp_path, text)
    assert any(line.startswith(told) for line in found), found
    assert all(re.match(r"\d+: ", line) for line in found)


def test_too_many_combinations_are_refused_before_they_are_made(tmp_path: Path) -> None:
    levels = list(range(1, 1001))
    text = f'workload = "noop"\n[factors]\nclients = {levels}\nthreads = {levels}\n'
    assert "2: the factors make 1000000 variants, more than 500" in problems(tmp_path, text)


def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(PgdynoError, match=r"bad\.toml is not UTF-8 text \(byte 6\)$"):
        read_definition(tmp_path / "bad.toml")
    with pytest.raises(PgdynoError, match=r"there\.toml cannot be read: no such file"):
        read_definition(tmp_path / "there.toml")


KEYS = st.text("ab.-_'\" #=[]é", min_size=1, max_size=4)
LEAVES = st.one_of(st.integers(), st.booleans(), st.text("a\"'\\\n#=[]{},", max_size=6))
TABLES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, TABLES, max_size=4))
def test_every_key_of_any_file_has_its_line(document: dict[str, object]) -> None:
    text = tomli_w.dumps(document, multiline_strings=True)
    lines = key_lines(text)
    read_back = tomllib.loads(text)

    def places(value: object, path: tuple[str | int, ...]) -> None:
        items: list[tuple[str | int, object]] = []
        if isinstance(value, dict):
            items = list(value.items())
        elif isinstance(value, list):
            items = list(enumerate(value))
        for key, inner in items:
            at = lines[(*path, key)]
            if isinstance(key, str):
                shown = text.split("\n")[at - 1]
                assert key in shown or tomli_w.dumps({key: 1})[:-5] in shown
            places(inner, (*path, key))

    places(read_back, ())
    assert len(lines) >= len(read_back)


EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.toml"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_fit_the_schema(path: Path) -> None:
    schema = ExperimentFile.model_json_schema()
    jsonschema.validate(tomllib.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads("client = 4\n" + path.read_text()), schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_mean_something(path: Path) -> None:
    experiment = made(meant(path))
    assert experiment.question is not None
    assert len(experiment.variants) > 1
