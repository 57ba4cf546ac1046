"""Reports: figures of a measurement, what is missing and why, series on the time axis."""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from pgdyno.contract import Interval
from pgdyno.hosts.base import Noop as NoHost
from pgdyno.model import CheckResult, Durability, Phase, Placement, Trial
from pgdyno.observers.host import host_observers
from pgdyno.observers.postgres import postgres_observers
from pgdyno.observers.process import ProcessObserver
from pgdyno.reports import wording
from pgdyno.reports.charts import encode_values
from pgdyno.reports.documents import read_run
from pgdyno.reports.figures import milliseconds, moment, prose, rate, visible
from pgdyno.reports.measured import committed_per_s, measure, spread_of
from pgdyno.reports.observed import thinned
from pgdyno.reports.resource_panels import resource_panels
from pgdyno.reports.resources import TRAFFIC, host_cpus, role_cpus, traffic
from pgdyno.reports.timeline import response_panel, slices, time_axis
from pgdyno.stats.rates import CPU_KINDS
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit

BROKEN = CheckResult(
    check="sessions",
    rule="row.sessions == users",
    after="measurement",
    verdict="broken",
    detail="1 gone",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def documents_of(folder: Path, **options: object):
    """The documents of the one trial of a fresh run."""
    return read_run(build_run(folder, RunOptions(duration_s=8, warmup_s=2, **options))).trials[0]


def test_figures_come_from_the_summary(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    measured, summary = measure(documents), documents.summary
    assert measured is not None and summary is not None
    assert measured.throughput_per_s == summary.measurement.committed / 8
    assert measured.server_commits_per_s == 2 * measured.throughput_per_s
    assert measured.response == summary.times.service
    assert measured.engine_cost is not None
    each_us = (0.11 + 0.19) * 8 * 1e6 / summary.measurement.committed
    assert measured.engine_cost.cpu_per_transaction_us == pytest.approx(each_us)
    assert not measured.partial
    assert not documents.missing


def test_after_a_kill_the_same_figures_come_from_intervals_and_histograms(tmp_path: Path) -> None:
    whole = measure(documents_of(tmp_path / "whole"))
    killed = documents_of(tmp_path / "killed", missing=("summary.json",), outcome=None)
    partial = measure(killed)
    assert whole is not None and partial is not None and partial.partial
    assert partial.throughput_per_s == whole.throughput_per_s
    assert partial.response is not None and whole.response is not None
    assert partial.response.count == whole.response.count
    assert partial.response.sum_ns == whole.response.sum_ns
    # Summary and log were made by different code with one rule; buckets are 0.1 % wide.
    assert partial.response.p99_ns == pytest.approx(whole.response.p99_ns, rel=0.002)
    sentences = " ".join(wording.trouble(killed, partial))
    assert "never came to its end" in sentences
    assert "no summary" in sentences


def test_without_histograms_a_killed_trial_has_no_percentiles(tmp_path: Path) -> None:
    killed = documents_of(tmp_path, missing=("summary.json", "transactions.hlog"), outcome=None)
    partial = measure(killed)
    assert partial is not None and partial.response is None
    assert "percentiles are not known" in " ".join(wording.trouble(killed, partial))
    assert "that were recorded" in wording.headline(killed, partial)


def test_an_empty_trial_says_what_is_missing_and_why(tmp_path: Path) -> None:
    documents = documents_of(tmp_path, empty=True, outcome="failed", reason="no space left")
    assert measure(documents) is None
    assert wording.headline(documents, None).startswith("No result: the trial failed during")
    missing = {one.what: one.why for one in documents.missing}
    assert "the trial failed during the measurement" in missing["the engine's summary"]
    assert "CPU, disk, network and WAL over time" in missing


@pytest.mark.parametrize(
    "name", ["summary.json", "settings.json", "transactions.hlog", "checks.json"]
)
def test_a_damaged_file_is_told_and_the_rest_is_shown(tmp_path: Path, name: str) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=4, warmup_s=0))
    path = run.trials[0].folder / name
    path.write_text("Tag=x.service,0.0,1.0,1.0,notbase64!\n" if name.endswith("hlog") else "{]")
    documents = read_run(run).trials[0]
    assert any("damaged" in one.why for one in documents.missing)
    assert measure(documents) is not None


def test_a_damaged_observation_is_told(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=4, warmup_s=0))
    (run.trials[0].folder / "observations" / "host_cpu.parquet").write_text("rubbish")
    documents = read_run(run).trials[0]
    assert [one.what for one in documents.missing] == ["observations of host_cpu"]
    assert "host_disk" in documents.observations


def test_stragglers_of_the_warm_up_share_their_slice(tmp_path: Path) -> None:
    intervals = list(documents_of(tmp_path).intervals)
    first = next(one for one in intervals if one.phase == "measurement")
    straggler = first.model_copy(update={"phase": "warmup"})
    both: list[Interval] = [*intervals, straggler]
    assert len(slices(both)) == len(slices(intervals))
    shared = next(one for one in slices(both) if one.begin_ns == first.begin_ns)
    assert shared.committed == 2 * first.counters.committed
    assert len(committed_per_s(both)) == len(intervals)
    assert spread_of(both) == spread_of(intervals)


def test_spread_leaves_out_a_short_last_interval(tmp_path: Path) -> None:
    intervals = list(documents_of(tmp_path).intervals)
    last = intervals[-1]
    cut = last.model_copy(update={"end_ns": last.begin_ns + 1000})
    spread = spread_of([*intervals[:-1], cut])
    assert spread is not None and spread.intervals == 7
    assert spread_of(intervals[:2]) is None


def test_second_zero_is_the_beginning_of_the_measurement(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    axis = time_axis(documents)
    assert axis is not None
    assert (axis.begin_s, axis.measurement_end_s, axis.end_s) == (-2.0, 8.0, 8.0)
    summary = documents.summary
    assert summary is not None and summary.timeline.measurement_begin_ns is not None
    assert axis.seconds(summary.timeline.measurement_begin_ns + 10**9) == 1.0


def test_samples_of_a_host_with_another_clock_are_placed_by_the_wall_clock(tmp_path: Path) -> None:
    run = build_run(tmp_path, RunOptions(duration_s=8, warmup_s=2))
    before = _times_of_panel(run, "host_disk")
    path = run.trials[0].folder / "observations" / "host_disk.parquet"
    table = parquet.read_table(path)
    shifted = [value + 77_000_000_000_000 for value in table["monotonic_ns"].to_pylist()]
    place = table.column_names.index("monotonic_ns")
    parquet.write_table(table.set_column(place, "monotonic_ns", [shifted]), path)
    assert _times_of_panel(run, "host_disk") == before


def _times_of_panel(run, key: str) -> list[float | None]:
    documents = read_run(run).trials[0]
    axis = time_axis(documents)
    assert axis is not None
    panel = next(one for one in resource_panels(documents, axis) if one.key == key)
    assert all(-2 <= time_s <= 8.1 for time_s in panel.horizontal if time_s is not None)
    return list(panel.horizontal)


def test_resources_over_the_measurement(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    axis = time_axis(documents)
    assert axis is not None
    (host,) = host_cpus(documents, axis)
    shares = [host.kinds[kind].average for kind in ("user", "sys", "wait", "steal", "idle")]
    assert sum(shares) == pytest.approx(1.0)
    assert host.kinds["busy"].average == pytest.approx(shares[0] + shares[1])
    assert {role.role for role in role_cpus(documents, axis)} == {"engine", "server"}
    names = {one.name for one in traffic(documents, axis)}
    assert {"disk vda, written", "WAL written", "context switches"} <= names
    keys = [panel.key for panel in resource_panels(documents, axis)]
    assert keys == ["host_cpu", "processes", "host_disk", "wal", "host_network"]


def test_a_sample_out_of_turn_makes_no_spike() -> None:
    second_ns = 10**9
    regular = [{"monotonic_ns": at * second_ns, "user_jiffies": 50 * at} for at in range(6)]
    extra = {"monotonic_ns": 2 * second_ns + 1_000_000, "user_jiffies": 101}
    rows = thinned([*regular[:3], extra, *regular[3:]])
    assert rows == regular
    # The last one bounds the measurement: it stays, and its neighbour goes.
    late = {"monotonic_ns": 5 * second_ns + 1_000_000, "user_jiffies": 251}
    assert thinned([*regular, late]) == [*regular[:-1], late]
    assert thinned(regular[:2]) == regular[:2]


def test_cpu_panel_is_in_percent_and_adds_up(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    axis = time_axis(documents)
    assert axis is not None
    panel = resource_panels(documents, axis)[0]
    for values in zip(*(line.values for line in panel.lines), strict=True):
        assert sum(value or 0.0 for value in values) == pytest.approx(100.0)


def test_broken_checks_and_failures_stand_against_the_headline(tmp_path: Path) -> None:
    documents = documents_of(tmp_path, extra_checks=(BROKEN,))
    sentences = wording.trouble(documents, measure(documents))
    assert sentences == ("The data is wrong: 1 check is broken: sessions (row.sessions == users).",)


def test_one_trial_is_called_an_anecdote() -> None:
    assert "One trial is an anecdote" in wording.anecdote(1, None)
    assert "anecdote" not in wording.anecdote(5, None)


@pytest.mark.parametrize("name", ["D0", "D1", "D2", "D3", "D3w", "D4", "D?", "none"])
def test_every_durability_class_has_its_words(name: str) -> None:
    durability = Durability(durability_class=name, because=(), unlogged_tables=("log",))
    assert wording.durability_words(durability)
    assert "log" in wording.durability_cost(durability)


def test_every_phase_has_its_words() -> None:
    for name in Phase.model_fields["name"].annotation.__args__:
        trial = Trial(number=1, variant="x", began="", phases=(Phase(name=name, begin_s=0),))
        assert wording.PHASE_WORDS[trial.phases[0].name]


def test_values_are_little_endian_with_nan_for_nothing() -> None:
    packed = base64.b64decode(encode_values([1.5, None, -2.0], "f"))
    first, second, third = struct.unpack("<3f", packed)
    assert (first, third) == (1.5, -2.0)
    assert math.isnan(second)


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0.000"), (99_999, "0.099999"), (100_000, "0.100"), (2e9, "2 000.0")]
)
def test_milliseconds(ns: float, text: str) -> None:
    assert milliseconds(ns) == text


def test_rates_keep_digits_that_matter() -> None:
    assert [rate(value) for value in (0.123456, 12.34, 14506.3)] == ["0.123", "12.3", "14 506"]


def test_a_name_cannot_move_the_cursor() -> None:
    assert visible("a\x1b]0;evil\x07\u202eb\x9b") == "a␛]0;evil␇�b�"
    assert moment("not a time\x1b") == "not a time␛"


def declared_columns() -> dict[str, set[str]]:
    """Columns of every table that the observers of a trial write."""
    observers = (
        *host_observers(NoHost()),
        *postgres_observers("host=nowhere"),
        ProcessObserver(host=NoHost(), groups=()),
    )
    clocks = {"monotonic_ns", "wall_unix_ns"}
    return {
        one.table.name: {column.name for column in one.table.columns} | clocks for one in observers
    }


def test_simulated_observations_are_as_the_observers_declare_them(tmp_path: Path) -> None:
    declared = declared_columns()
    for name, table in documents_of(tmp_path).observations.items():
        assert set(table.column_names) <= declared[name], name


def test_reports_ask_only_for_columns_that_observers_declare() -> None:
    declared = declared_columns()
    for suffix, label, counter, _, _ in TRAFFIC:
        (columns,) = [columns for name, columns in declared.items() if name.endswith(suffix)]
        assert {counter, *([label] if label else [])} <= columns
    jiffies = {f"{kind}_jiffies" for kind in CPU_KINDS}
    assert jiffies | {"cpu"} <= declared["host_cpu"]
    assert {"role", "user_jiffies", "sys_jiffies"} <= declared["processes"]


def test_a_last_slice_of_a_moment_is_no_spike(tmp_path: Path) -> None:
    intervals = list(documents_of(tmp_path).intervals)
    last = intervals[-1]
    brief = last.model_copy(
        update={"begin_ns": last.end_ns, "end_ns": last.end_ns + 1_000_000, "in_flight": 0}
    )
    found = slices([*intervals, brief])
    assert len(found) == len(slices(intervals))
    assert (found[-1].begin_ns, found[-1].end_ns) == (last.begin_ns, brief.end_ns)
    assert found[-1].committed == 2 * last.counters.committed
    # Half a second stands for itself.
    half = brief.model_copy(update={"end_ns": last.end_ns + 500_000_000})
    assert len(slices([*intervals, half])) == len(found) + 1


def test_rows_of_one_sample_share_their_place_on_the_axis(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    processes = documents.observations["processes"]
    # The two clocks are read one after the other, never quite as far apart.
    jitter = [number % 7 * 150 for number in range(processes.num_rows)]
    wall = pc.add(processes["wall_unix_ns"], pa.array(jitter))
    at = processes.column_names.index("wall_unix_ns")
    table = processes.set_column(at, "wall_unix_ns", wall)
    documents = replace(documents, observations={**documents.observations, "processes": table})
    axis = time_axis(documents)
    assert axis is not None
    panel = next(one for one in resource_panels(documents, axis) if one.key == "processes")
    assert len(panel.lines) == 2
    for line in panel.lines:
        assert None not in line.values


def test_a_trial_without_a_success_has_no_response_panel_and_no_fairness(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    summary = documents.summary
    assert summary is not None and measure(documents).fairness is not None
    failed = summary.measurement.model_copy(update={"committed": 0})
    documents = replace(documents, summary=summary.model_copy(update={"measurement": failed}))
    assert measure(documents).fairness is None
    axis = time_axis(documents)
    assert axis is not None
    several = [replace(one, response=None) for one in slices(documents.intervals)]
    assert response_panel(axis, several) is None
    assert response_panel(axis, slices(documents.intervals)) is not None


def test_sentences_keep_quantities_whole() -> None:
    assert (
        prose("users = 200 000 in 4.2 ms, 2 tables")
        == "users = 200\u00a0000 in 4.2\u00a0ms, 2 tables"
    )


def test_an_interrupt_is_told_once(tmp_path: Path) -> None:
    documents = documents_of(tmp_path, outcome="interrupted", reason="interrupted; kept")
    summary = documents.summary
    assert summary is not None
    cut = summary.model_copy(update={"outcome": "interrupted", "message": "by a signal"})
    told = wording.trouble(replace(documents, summary=cut), measure(documents))
    assert [one for one in told if "interrupted" in one] == [
        "This trial was interrupted: interrupted; kept"
    ]
    aborted = summary.model_copy(update={"outcome": "aborted", "message": "the server went away"})
    told = wording.trouble(replace(documents, summary=aborted), measure(documents))
    assert "The engine's work was aborted: the server went away" in told


def test_clients_that_never_had_a_session_are_told(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    summary = documents.summary
    assert summary is not None
    whole = " ".join(wording.trouble(documents, measure(documents)))
    fewer = summary.model_copy(update={"clients_connected": summary.clients_asked - 1})
    told = wording.trouble(replace(documents, summary=fewer), measure(documents))
    sentence = f"Only {fewer.clients_connected} of {fewer.clients_asked} clients had a session"
    assert sentence in " ".join(told) and sentence not in whole


def test_a_server_elsewhere_is_told_from_the_load_host(tmp_path: Path) -> None:
    documents = documents_of(tmp_path)
    assert wording.host_label(documents) == "host"
    far = {**documents.trial.placement, "server": Placement(host="db.example", cpus=())}
    trial = documents.trial.model_copy(update={"placement": far})
    documents = replace(documents, trial=trial)
    assert wording.host_label(documents) == "load host"
    assert wording.server_words(documents).endswith("on db.example")
