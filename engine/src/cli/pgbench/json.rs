//! `--json FILE`: everything the report tells, percentiles and the course of the run, as one document.
//!
//! Its shape is written down in `docs/pgbench.md`. Times ending in `_us` are microseconds; what is not known is null.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::options::{Length, Options, PartitionMethod};
use super::outlet::IntervalResult;
use super::report::{Reported, Results, ScriptResult, query_mode};
use super::tally::{Moments, Tally};

/// Of the shape.
const VERSION: u32 = 1;
/// What is kept where `--percentiles` names none.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// All that was asked for.
    Completed,
    /// A client aborted; the results are incomplete.
    Aborted,
    /// Ctrl-C.
    Interrupted,
}

/// The percentiles of a run with these options: those asked for, or the usual ones for `--json`.
pub fn percentiles(options: &Options) -> Vec<f64> {
    match options.percentiles.as_slice() {
        [] if options.json.is_some() => PERCENTILES.to_vec(),
        asked => asked.to_vec(),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    engine_version: &'static str,
    emulated: u32,
    ending: Ending,
    run: Run<'a>,
    total: Outcome<'a>,
    scripts: Vec<ScriptOutcome<'a>>,
    intervals: Vec<IntervalOutcome>,
}

/// What was asked for.
#[derive(Serialize)]
struct Run<'a> {
    scale: i64,
    partition_method: Option<&'static str>,
    partitions: Option<u64>,
    query_mode: &'static str,
    clients: usize,
    threads: usize,
    max_tries: u32,
    transactions_per_client: Option<u32>,
    duration_s: Option<u32>,
    rate_per_s: Option<f64>,
    latency_limit_us: Option<f64>,
    seed: u64,
    variables: BTreeMap<&'a str, &'a str>,
    measured_s: f64,
    connection_us: f64,
}

/// What became of transactions.
#[derive(Serialize)]
struct Outcome<'a> {
    committed: u64,
    tps: Option<f64>,
    serialization_failures: u64,
    deadlock_failures: u64,
    other_failures: u64,
    skipped: u64,
    retried: u64,
    retries: u64,
    late: u64,
    latency: Option<Times<'a>>,
    lag: Option<Times<'a>>,
}

/// Times of committed transactions.
#[derive(Serialize)]
struct Times<'a> {
    mean_us: f64,
    stddev_us: f64,
    min_us: f64,
    max_us: f64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    percentiles_us: BTreeMap<&'a str, f64>,
}

#[derive(Serialize)]
struct ScriptOutcome<'a> {
    description: &'a str,
    weight: u32,
    #[serde(flatten)]
    outcome: Outcome<'a>,
    commands: Vec<Command<'a>>,
}

#[derive(Serialize)]
struct Command<'a> {
    text: &'a str,
    mean_us: f64,
    failures: u64,
    retries: u64,
}

#[derive(Serialize)]
struct IntervalOutcome {
    end_s: f64,
    length_s: f64,
    end_unix_s: f64,
    committed: u64,
    failed: u64,
    skipped: u64,
    retries: u64,
    late: u64,
    latency_mean_us: Option<f64>,
    latency_max_us: Option<f64>,
    latency_percentiles_us: BTreeMap<String, f64>,
}

/// Names of percentiles and their values; `percentiles` and `results` are of the same length.
struct Named<'a> {
    names: &'a [String],
    bench_us: f64,
}

impl Named<'_> {
    fn outcome(&self, result: &ScriptResult) -> Outcome<'_> {
        let Tally {
            committed,
            skipped,
            serialization,
            deadlock,
            other,
            retried,
            retries,
            late,
            latency,
            lag,
        } = result.tally;
        Outcome {
            committed,
            tps: (self.bench_us > 0.0).then(|| committed as f64 / self.bench_us * 1e6),
            serialization_failures: serialization,
            deadlock_failures: deadlock,
            other_failures: other,
            skipped,
            retried,
            retries,
            late,
            latency: self.times(&latency, &result.percentiles_us),
            lag: self.times(&lag, &[]),
        }
    }

    fn times(&self, moments: &Moments, percentiles_us: &[f64]) -> Option<Times<'_>> {
        let names = self.names.iter().map(String::as_str);
        (moments.count > 0).then(|| Times {
            mean_us: moments.mean_us(),
            stddev_us: moments.stddev_us(),
            min_us: moments.min_us,
            max_us: moments.max_us,
            percentiles_us: names.zip(percentiles_us.iter().copied()).collect(),
        })
    }
}

/// Write the document, so that it is whole or not there.
///
/// # Errors
/// The file cannot be written.
pub fn write(
    path: &Path,
    reported: &Reported<'_>,
    results: &Results,
    intervals: &[IntervalResult],
    ending: Ending,
) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(&document(reported, results, intervals, ending))?;
    text.push(b'\n');
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(&unfinished, path)
}

fn document(
    reported: &Reported<'_>,
    results: &Results,
    intervals: &[IntervalResult],
    ending: Ending,
) -> serde_json::Value {
    let options = reported.options;
    let names: Vec<_> = percentiles(options)
        .iter()
        .map(|percent| format!("p{percent}"))
        .collect();
    let named = Named {
        names: &names,
        bench_us: results.bench_us,
    };
    let scripts = options.scripts.iter().enumerate();
    let scripts = scripts.map(|(number, script)| ScriptOutcome {
        description: &script.description,
        weight: script.weight,
        outcome: named.outcome(&results.scripts[number]),
        commands: commands(&reported.commands[number], &results.scripts[number]),
    });
    let document = Document {
        version: VERSION,
        engine_version: env!("CARGO_PKG_VERSION"),
        emulated: options.emulation.number(),
        ending,
        run: run(reported, results),
        total: named.outcome(&results.total),
        scripts: scripts.collect(),
        intervals: intervals
            .iter()
            .map(|interval| interval_outcome(interval, &names))
            .collect(),
    };
    serde_json::to_value(document).expect("every key is text")
}

fn run<'a>(reported: &Reported<'a>, results: &Results) -> Run<'a> {
    let options = reported.options;
    let variables = options.variables.iter();
    Run {
        scale: reported.scale,
        partition_method: reported.partitions.map(|(method, _)| match method {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        }),
        partitions: reported.partitions.map(|(_, partitions)| partitions),
        query_mode: query_mode(options.protocol),
        clients: options.clients,
        threads: options.jobs,
        max_tries: options.max_tries,
        transactions_per_client: match options.length {
            Length::Transactions(each) => Some(each),
            Length::Seconds(_) => None,
        },
        duration_s: match options.length {
            Length::Transactions(_) => None,
            Length::Seconds(seconds) => Some(seconds),
        },
        rate_per_s: options.rate_per_s,
        latency_limit_us: options.latency_limit.map(|limit| limit.as_secs_f64() * 1e6),
        seed: options.seed,
        variables: variables
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        measured_s: results.bench_us / 1e6,
        connection_us: results.connection_us,
    }
}

fn commands<'a>(texts: &'a [String], result: &ScriptResult) -> Vec<Command<'a>> {
    let commands = texts.iter().zip(&result.commands);
    commands
        .map(|(text, command)| Command {
            text,
            mean_us: command.mean_ms * 1000.0,
            failures: command.failures,
            retries: command.retries,
        })
        .collect()
}

fn interval_outcome(result: &IntervalResult, names: &[String]) -> IntervalOutcome {
    let IntervalResult {
        interval,
        tally,
        percentiles_us,
    } = result;
    let any = tally.latency.count > 0;
    IntervalOutcome {
        end_s: interval.end_s,
        length_s: interval.length_s,
        end_unix_s: interval.end_unix_s,
        committed: tally.committed,
        failed: tally.failures(),
        skipped: tally.skipped,
        retries: tally.retries,
        late: tally.late,
        latency_mean_us: any.then(|| tally.latency.mean_us()),
        latency_max_us: any.then_some(tally.latency.max_us),
        latency_percentiles_us: names
            .iter()
            .cloned()
            .zip(percentiles_us.iter().copied())
            .filter(|_| any)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulation::Emulation;
    use super::super::progress::Interval;
    use super::super::report::CommandResult;
    use super::super::test_options::options;
    use super::*;

    #[test]
    fn a_document_is_whole() {
        let mut options = options(Emulation::V18, &[("a.sql", 2)], &[]);
        let path = std::env::temp_dir().join(format!("pgdyno-json-{}", std::process::id()));
        options.json = Some(path.clone());
        assert_eq!(PERCENTILES.to_vec(), percentiles(&options));
        options.percentiles = vec![50.0, 99.9];
        let mut latency = Moments::default();
        latency.record(500.0);
        let tally = Tally {
            committed: 1,
            deadlock: 3,
            latency,
            ..Tally::default()
        };
        let result = ScriptResult {
            tally,
            percentiles_us: vec![500.0, 501.0],
            commands: vec![CommandResult {
                mean_ms: 0.25,
                failures: 3,
                retries: 0,
            }],
        };
        let results = Results {
            total: result.clone(),
            scripts: vec![result],
            bench_us: 2e6,
            connection_us: 3e3,
        };
        let interval = Interval {
            length_s: 1.0,
            end_s: 1.0,
            end_unix_s: 1.7e9,
        };
        let intervals = [tally, Tally::default()].map(|tally| IntervalResult {
            interval,
            tally,
            percentiles_us: vec![500.0, 501.0],
        });
        let reported = Reported {
            options: &options,
            scale: 1,
            partitions: Some((PartitionMethod::Hash, 3)),
            commands: vec![vec!["SELECT 1;".into()]],
        };
        write(&path, &reported, &results, &intervals, Ending::Completed).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let at = |pointer: &str| read.pointer(pointer).unwrap_or(&serde_json::Value::Null);
        for (pointer, expected) in [
            ("/version", serde_json::json!(1)),
            ("/ending", serde_json::json!("completed")),
            ("/run/query_mode", serde_json::json!("simple")),
            ("/run/transactions_per_client", serde_json::json!(10)),
            ("/run/duration_s", serde_json::json!(null)),
            ("/run/partition_method", serde_json::json!("hash")),
            ("/total/tps", serde_json::json!(0.5)),
            ("/total/lag", serde_json::json!(null)),
            (
                "/total/latency/percentiles_us/p99.9",
                serde_json::json!(501.0),
            ),
            ("/scripts/0/deadlock_failures", serde_json::json!(3)),
            ("/scripts/0/commands/0/mean_us", serde_json::json!(250.0)),
            (
                "/intervals/0/latency_percentiles_us/p50",
                serde_json::json!(500.0),
            ),
            ("/intervals/1/latency_mean_us", serde_json::json!(null)),
        ] {
            assert_eq!(&expected, at(pointer), "{pointer}");
        }
    }
}
