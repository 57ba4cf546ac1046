//! The report held to what stock 15.18, 16.14 and 18.4 print.

use std::time::Duration;

use super::super::tally::Moments;
use super::super::test_options::options;
use super::*;

fn shown(reported: &Reported<'_>, results: &Results) -> String {
    let mut text = Vec::new();
    write_report(&mut text, reported, results).unwrap();
    String::from_utf8(text).unwrap()
}

fn reported(options: &Options) -> Reported<'_> {
    Reported {
        options,
        scale: 1,
        partitions: None,
        commands: Vec::new(),
    }
}

/// Two values whose mean and standard deviation these are.
fn moments(count: u64, mean_us: f64, stddev_us: f64, max_us: f64) -> Moments {
    let count_f64 = count as f64;
    Moments {
        count,
        sum_us: mean_us * count_f64,
        sum_squares_us2: (mean_us * mean_us + stddev_us * stddev_us) * count_f64,
        min_us: 0.0,
        max_us,
    }
}

fn committed(count: u64, latency: Moments) -> Tally {
    Tally {
        committed: count,
        latency,
        ..Tally::default()
    }
}

fn total(tally: Tally, bench_us: f64, connection_us: f64) -> Results {
    Results {
        total: ScriptResult {
            tally,
            ..ScriptResult::default()
        },
        scripts: vec![ScriptResult::default()],
        bench_us,
        connection_us,
    }
}

const TPCB: &[(&str, u32)] = &[("<builtin: TPC-B (sort of)>", 1)];

#[test]
fn a_plain_run() {
    let mut options = options(Emulation::V18, TPCB, &[]);
    options.clients = 2;
    let tally = committed(20, moments(20, 875.0, 100.0, 0.0));
    let results = total(tally, 8_753.545, 3_580.0);
    assert_eq!(
        "\
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 2
query mode: simple
number of clients: 2
number of threads: 1
maximum number of tries: 1
number of transactions per client: 10
number of transactions actually processed: 20/20
number of failed transactions: 0 (0.000%)
latency average = 0.875 ms
initial connection time = 3.580 ms
tps = 2284.788620 (without initial connection time)
",
        shown(
            &Reported {
                scale: 2,
                ..reported(&options)
            },
            &results
        )
    );
}

#[test]
fn a_throttled_run_of_partitioned_tables() {
    let mut options = options(Emulation::V16, TPCB, &[]);
    options.length = Length::Seconds(1);
    options.protocol = Protocol::Prepared;
    options.rate_per_s = Some(200.0);
    options.latency_limit = Some(Duration::from_millis(10));
    options.max_tries = 0;
    let tally = Tally {
        skipped: 7,
        late: 3,
        lag: moments(193, 150.0, 1.0, 841.0),
        ..committed(193, moments(193, 672.0, 250.0, 0.0))
    };
    let results = total(tally, 997_382.7, 3_412.0);
    let mut reported = reported(&options);
    reported.partitions = Some((PartitionMethod::Hash, 3));
    assert_eq!(
        "\
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
partition method: hash
partitions: 3
query mode: prepared
number of clients: 1
number of threads: 1
duration: 1 s
number of transactions actually processed: 193
number of failed transactions: 0 (0.000%)
number of transactions retried: 0 (0.000%)
total number of retries: 0
number of transactions skipped: 7 (3.500%)
number of transactions above the 10.0 ms latency limit: 3/193 (1.554%)
latency average = 0.672 ms
latency stddev = 0.250 ms
rate limit schedule lag: avg 0.150 (max 0.841) ms
initial connection time = 3.412 ms
tps = 193.506464 (without initial connection time)
",
        shown(&reported, &results)
    );
}

#[test]
fn a_connection_for_each_transaction() {
    let options = options(Emulation::V15, TPCB, &[Switch::Connect]);
    let tally = Tally {
        deadlock: 7,
        ..committed(3, moments(3, 4_238.0, 1.0, 0.0))
    };
    let text = shown(&reported(&options), &total(tally, 12_715.0, 34_270.0));
    let tail = text.split_once("failed transactions: ").unwrap().1;
    // The average is measured, so it includes no failures, and does not say so.
    assert_eq!(
        "\
7 (70.000%)
latency average = 4.238 ms
average connection time = 3.427 ms
tps = 235.941801 (including reconnection times)
",
        tail
    );
}

const HALF_AND_ABORT: &[(&str, u32)] = &[("half.sql", 1), ("abort.sql", 0)];

fn two_scripts(emulation: Emulation) -> Options {
    let switches = [Switch::FailuresDetailed, Switch::ReportPerCommand];
    let mut options = options(emulation, HALF_AND_ABORT, &switches);
    options.length = Length::Transactions(50);
    options.rate_per_s = Some(100.0);
    options.latency_limit = Some(Duration::from_micros(200));
    options.max_tries = 2;
    options
}

fn of_two_scripts() -> (Vec<Vec<String>>, Results) {
    let tally = Tally {
        skipped: 2,
        deadlock: 9,
        retried: 1,
        retries: 1,
        late: 28,
        lag: moments(39, 129.0, 1.0, 358.0),
        ..committed(39, moments(39, 361.0, 233.0, 0.0))
    };
    let command = |mean_ms, failures, retries| CommandResult {
        mean_ms,
        failures,
        retries,
    };
    let results = Results {
        scripts: vec![
            ScriptResult {
                tally,
                percentiles_us: Vec::new(),
                commands: vec![command(0.004, 0, 0), command(0.228, 9, 1)],
            },
            ScriptResult {
                commands: vec![CommandResult::default(); 2],
                ..ScriptResult::default()
            },
        ],
        ..total(tally, 489_213.9, 1_746.0)
    };
    let commands = [
        ["\\set x random(1, 3)", "DO $$ BEGIN END $$;"],
        ["\\set x random(1, 3)", "SELECT 1/0;"],
    ];
    let commands = commands.map(|texts| texts.map(String::from).to_vec());
    (commands.to_vec(), results)
}

#[test]
fn two_scripts_as_18_tells_them() {
    let options = two_scripts(Emulation::V18);
    let (commands, results) = of_two_scripts();
    let text = shown(
        &Reported {
            commands,
            ..reported(&options)
        },
        &results,
    );
    assert_eq!(
        "\
transaction type: multiple scripts
scaling factor: 1
query mode: simple
number of clients: 1
number of threads: 1
maximum number of tries: 2
number of transactions per client: 50
number of transactions actually processed: 39/50
number of failed transactions: 9 (18.000%)
number of serialization failures: 0 (0.000%)
number of deadlock failures: 9 (18.000%)
number of transactions retried: 1 (2.000%)
total number of retries: 1
number of transactions skipped: 2 (4.000%)
number of transactions above the 0.2 ms latency limit: 28/39 (71.795%)
latency average = 0.361 ms
latency stddev = 0.233 ms
rate limit schedule lag: avg 0.129 (max 0.358) ms
initial connection time = 1.746 ms
tps = 79.719730 (without initial connection time)
SQL script 1: half.sql
 - weight: 1 (targets 100.0% of total)
 - 50 transactions (100.0% of total)
 - number of transactions actually processed: 39 (tps = 79.719730)
 - number of failed transactions: 9 (18.000%)
 - number of serialization failures: 0 (0.000%)
 - number of deadlock failures: 9 (18.000%)
 - number of transactions retried: 1 (2.000%)
 - total number of retries: 1
 - number of transactions skipped: 2 (4.000%)
 - latency average = 0.361 ms
 - latency stddev = 0.233 ms
 - statement latencies in milliseconds, failures and retries:
         0.004           0          0 \\set x random(1, 3)
         0.228           9          1 DO $$ BEGIN END $$;
SQL script 2: abort.sql
 - weight: 0 (targets 0.0% of total)
 - 0 transactions (0.0% of total)
 - statement latencies in milliseconds, failures and retries:
         0.000           0          0 \\set x random(1, 3)
         0.000           0          0 SELECT 1/0;
",
        text
    );
}

#[test]
fn two_scripts_as_15_to_17_tell_them() {
    for emulation in [Emulation::V15, Emulation::V16, Emulation::V17] {
        let options = two_scripts(emulation);
        let (commands, results) = of_two_scripts();
        let text = shown(
            &Reported {
                commands,
                ..reported(&options)
            },
            &results,
        );
        assert_eq!(
            "\
SQL script 1: half.sql
 - weight: 1 (targets 100.0% of total)
 - 39 transactions (100.0% of total, tps = 79.719730)
 - number of failed transactions: 9 (18.000%)
 - number of serialization failures: 0 (0.000%)
 - number of deadlock failures: 9 (18.000%)
 - number of transactions retried: 1 (2.000%)
 - total number of retries: 1
 - number of transactions skipped: 2 (4.000%)
 - latency average = 0.361 ms
 - latency stddev = 0.233 ms
 - statement latencies in milliseconds, failures and retries:
         0.004           0           0  \\set x random(1, 3)
         0.228           9           1  DO $$ BEGIN END $$;
SQL script 2: abort.sql
 - weight: 0 (targets 0.0% of total)
 - 0 transactions (0.0% of total, tps = 0.000000)
 - number of failed transactions: 0 (NaN%)
 - number of serialization failures: 0 (NaN%)
 - number of deadlock failures: 0 (NaN%)
 - number of transactions retried: 0 (NaN%)
 - total number of retries: 0
 - statement latencies in milliseconds, failures and retries:
         0.000           0           0  \\set x random(1, 3)
         0.000           0           0  SELECT 1/0;
",
            &text[text.find("SQL script 1").unwrap()..]
        );
    }
}

fn tail_of(emulation: Emulation, change: impl Fn(&mut Options, &mut Tally)) -> String {
    let mut options = options(emulation, &[("fail.sql", 1)], &[]);
    options.length = Length::Transactions(5);
    let mut tally = Tally::default();
    change(&mut options, &mut tally);
    let text = shown(&reported(&options), &total(tally, 1_745.0, 1_922.0));
    text.split_once("actually processed: ").unwrap().1.into()
}

#[test]
fn nothing_done_at_all() {
    let text = |emulation| tail_of(emulation, |_, _| {});
    assert_eq!(
        "0/5\nnumber of failed transactions: 0 (NaN%)\n",
        text(Emulation::V15)
    );
    assert_eq!("0/5\n", text(Emulation::V18));
}

#[test]
fn all_failed() {
    let text = |emulation| tail_of(emulation, |_, tally| tally.serialization = 5);
    let failed = "0/5\nnumber of failed transactions: 5 (100.000%)\n";
    assert_eq!(failed, text(Emulation::V17));
    assert_eq!(
        format!(
            "{failed}latency average = 0.349 ms (including failures)\n\
             initial connection time = 1.922 ms\ntps = 0.000000 (without initial connection time)\n"
        ),
        text(Emulation::V18)
    );
}

#[test]
fn failed_and_skipped_only() {
    for emulation in [Emulation::V15, Emulation::V18] {
        let text = tail_of(emulation, |options, tally| {
            options.rate_per_s = Some(1e5);
            options.latency_limit = Some(Duration::from_micros(1));
            options.switches.insert(Switch::Connect);
            (tally.serialization, tally.skipped) = (1, 4);
        });
        assert_eq!(
            "\
0/5
number of failed transactions: 1 (20.000%)
number of transactions skipped: 4 (80.000%)
number of transactions above the 0.0 ms latency limit: 0/0 (0.000%)
rate limit schedule lag: avg NaN (max 0.000) ms
average connection time = 1.922 ms
tps = 0.000000 (including reconnection times)
",
            text
        );
    }
}

#[test]
fn other_failures_and_percentiles_are_told_when_asked_for() {
    let switches = [Switch::ContinueOnError, Switch::FailuresDetailed];
    let mut options = options(Emulation::V18, &[("a.sql", 1), ("b.sql", 3)], &switches);
    options.percentiles = vec![50.0, 99.9];
    let result = ScriptResult {
        tally: Tally {
            other: 1,
            ..committed(9, moments(9, 500.0, 1.0, 0.0))
        },
        percentiles_us: vec![481.0, 9_000.4],
        commands: Vec::new(),
    };
    let results = Results {
        total: result.clone(),
        scripts: vec![result, ScriptResult::default()],
        bench_us: 1e6,
        connection_us: 0.0,
    };
    let text = shown(&reported(&options), &results);
    for line in [
        "number of other failures: 1 (10.000%)\n",
        "latency average = 0.500 ms\nlatency p50 = 0.481 ms\nlatency p99.9 = 9.000 ms\n",
        " - weight: 1 (targets 25.0% of total)\n",
        " - number of other failures: 1 (10.000%)\n",
        " - latency p99.9 = 9.000 ms\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}
