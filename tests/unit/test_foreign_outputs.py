"""Outputs of pgbench and sysbench: real ones of the versions at hand, older forms written out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.experiment.readings import Reading
from pgdyno.foreign import pgbench, pgbench_log, sysbench
from pgdyno.foreign.files import read_files

pytestmark = pytest.mark.unit
GOLDEN = Path(__file__).parent.parent / "golden" / "foreign"

PGBENCH_9 = """\
transaction type: Custom query
scaling factor: 1
query mode: prepared
number of clients: 16
number of threads: 4
duration: 60 s
number of transactions actually processed: 189494
tps = 3152.515039 (including connections establishing)
tps = 4051.201821 (excluding connections establishing)
statement latencies in milliseconds:
        0.003500        \\setrandom userid 1 20000000
"""
SYSBENCH_04 = """\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 100

OLTP test statistics:
    queries performed:
        read:                            24530310
    transactions:                        1752165 (29200.43 per sec.)
    deadlocks:                           0      (0.00 per sec.)

Test execution summary:
    total time:                          60.0048s
    total number of events:              1752165
    per-request statistics:
         min:                                  0.14ms
         avg:                                  3.42ms
         max:                                968.42ms
         approx.  95 percentile:               0.34ms
"""
SYSBENCH_NEWEST = """\
sysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 8
Target transaction rate: 500/sec

Throughput:
    events/s (eps):                      498.2100
    time elapsed:                        10.0021s
    total number of events:              4983

Latency (ms):
         min:                                    0.90
         avg:                                    1.20
         max:                                   12.03
         99th percentile:                        2.10
         sum:                                 5979.60
"""


def only(name: str, *more: str) -> Reading:
    (reading,) = read_files([GOLDEN / each for each in (name, *more)])
    return reading


def test_a_report_of_pgbench() -> None:
    reading = only("pgbench-15.txt")
    assert reading.values["throughput_per_s"] == 927.408115
    assert reading.values["average_us"] == 4313
    assert reading.committed == 2778
    assert reading.circumstances.load["clients"] == "4"
    assert reading.circumstances.data == {
        "transaction type": "<builtin: TPC-B (sort of)>", "scaling factor": "1",
    }  # fmt: skip
    assert (reading.circumstances.tool_version, reading.circumstances.durability) == ("15.18", None)
    assert "durability class" in reading.unknown
    # Without -P, -R or -L pgbench computes the average from clients and throughput.
    assert any("not measured" in each for each in reading.unknown)
    assert "p99_us" in reading.absent


def test_progress_lines_make_the_average_a_measured_one() -> None:
    assert not any("not measured" in each for each in only("pgbench-15-progress.txt").unknown)


def test_what_older_versions_print() -> None:
    (reading,) = pgbench.read_text(PGBENCH_9, "old.txt")
    assert reading.values["throughput_per_s"] == 4051.201821
    assert "version of pgbench and of the server" in reading.unknown
    assert any("-C" in each for each in reading.unknown)


def test_reports_one_after_the_other_are_trials() -> None:
    readings = pgbench.read_text(PGBENCH_9 + (GOLDEN / "pgbench-15-progress.txt").read_text(), "a")
    assert [each.values["throughput_per_s"] for each in readings] == [4051.201821, 844.341812]
    assert readings[0].circumstances.tool_version is None
    assert readings[1].circumstances.tool_version == "15.18"


def test_a_connection_for_each_transaction_is_said() -> None:
    reading = only("pgbench-15-connect.txt")
    assert reading.circumstances.load["connections"] == "one for each transaction"
    assert reading.values["throughput_per_s"] == 204.402296


def test_a_run_that_was_cut_off_is_incomplete() -> None:
    whole = (GOLDEN / "pgbench-15-progress.txt").read_text()
    (reading,) = pgbench.read_text(whole.partition("transaction type")[0], "cut.txt")
    assert not reading.complete
    assert reading.reason == "was cut off: only 3 progress lines are there"
    assert reading.values["throughput_per_s"] == pytest.approx((875.9 + 922.9 + 737.1) / 3)


def test_a_log_has_the_percentiles_that_its_report_lacks() -> None:
    log, report = only("pgbench_rate.24440"), only("pgbench-15-rate.txt")
    both = only("pgbench-15-rate.txt", "pgbench_rate.24440")
    assert log.committed == report.committed == 357
    # 28 skipped of 385 scheduled, as the report says.
    assert log.values["skipped_share"] == report.values["skipped_share"] == 28 / 385
    assert log.values["average_us"] == pytest.approx(report.values["average_us"], rel=1e-3)
    assert log.values["throughput_per_s"] == pytest.approx(179.4, rel=0.02)
    assert both.values["throughput_per_s"] == report.values["throughput_per_s"]
    times = sorted(
        int(line.split()[2])
        for line in (GOLDEN / "pgbench_rate.24440").read_text().splitlines()
        if line.split()[2] != "skipped"
    )
    assert both.values["p50_us"] == times[178]  # rank ⌈0.5 · 357⌉ = 179


def test_logs_of_all_threads_are_one_trial(tmp_path: Path) -> None:
    (tmp_path / "pgbench_log.77").write_text(
        "0 1 900 0 1700000000 900\n0 2 100 0 1700000000 5000\n"
    )
    (tmp_path / "pgbench_log.77.1").write_text("1 1 500 0 1700000000 600\n1 2 700 0 17000000")
    (reading,) = read_files([tmp_path / "pgbench_log.77"])
    # The last line of the second was cut off.
    assert reading.committed == 3
    assert reading.values["average_us"] == 500
    assert reading.values["throughput_per_s"] == pytest.approx(3 / 0.005)


def test_a_sampled_log_has_no_throughput() -> None:
    reading = only("pgbench_sampled.24911")
    assert "throughput_per_s" not in reading.values
    assert "--sampling-rate" in reading.absent["throughput_per_s"]
    assert reading.values["p50_us"] > 0


def test_sums_of_intervals() -> None:
    reading = only("pgbench_sums.24291")
    # The first interval was not whole.
    assert reading.values["throughput_per_s"] == (1346 + 946) / 2
    assert reading.values["average_us"] == (4062923 + 3975800) / (1346 + 946)
    assert reading.values["max_us"] == 48116
    assert "p99_us" in reading.absent


def test_a_report_of_sysbench() -> None:
    reading = only("sysbench-1.0.txt")
    assert reading.values["throughput_per_s"] == 70.17
    assert reading.values["p95_us"] == 25280
    assert reading.values["not_committed_share"] == 14 / 250
    assert reading.circumstances.tool_version == "1.0.20"
    assert "which script, tables and sizes" in reading.unknown


@pytest.mark.parametrize(
    ("text", "version", "values"),
    [
        (SYSBENCH_04, "0.4.12", {"throughput_per_s": 29200.43, "average_us": 3420, "p95_us": 340}),
        (SYSBENCH_NEWEST, "1.1.0", {"throughput_per_s": 498.21, "p99_us": 2100, "max_us": 12030}),
    ],
)  # fmt: skip
def test_other_versions_of_sysbench(text: str, version: str, values: dict[str, float]) -> None:
    (reading,) = sysbench.read_text(text, "a.txt")
    assert reading.complete and reading.circumstances.tool_version == version
    assert {name: reading.values[name] for name in values} == values


def test_two_reports_of_sysbench_in_one_file() -> None:
    readings = sysbench.read_text(SYSBENCH_04 + SYSBENCH_NEWEST, "a.txt")
    assert [each.circumstances.tool_version for each in readings] == ["0.4.12", "1.1.0"]


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "passwd"
    other.write_text("root:x:0:0:root:/root:/bin/bash\n")
    with pytest.raises(InvalidInput, match="neither a run nor an output of pgbench or sysbench"):
        read_files([other])


def test_blanks_of_a_page_are_blanks(tmp_path: Path) -> None:
    page = tmp_path / "page.txt"
    page.write_text(PGBENCH_9.replace("tps = 4051", "tps\u00a0=\u00a04051"))
    (reading,) = read_files([page])
    assert reading.values["throughput_per_s"] == 4051.201821


@pytest.mark.parametrize("line", ["0 1 3900 0 1795291302 718738", "0 1 skipped 0 1795291302 7 97"])
def test_lines_of_a_log_are_known(line: str) -> None:
    assert pgbench_log.is_log(line + "\n")
    assert not pgbench_log.is_log("12 apples and 3 pears\n")
