//! From what the engine recorded to what reports tell: counts and sums by script, means by command.

use super::json::percentiles;
use super::options::Options;
use super::report::{CommandResult, Results, ScriptResult};
use super::tally::Tally;
use crate::program::StatementDefinition;
use crate::recorder::{Recording, StatementRecording, TimesRecorder};
use crate::results::Counters;
use crate::series::SeriesRecorder;

/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1000.0;
/// Nanoseconds in a millisecond.
const NS_PER_MS: f64 = 1e6;

/// How long a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunTimes {
    /// From when the first transaction could start until the last one ended, in microseconds.
    pub bench_us: f64,
    /// Until all clients were connected, or with `-C` the time of all connections together, in microseconds.
    pub connection_us: f64,
}

/// First lines of the commands of each script, as `-r` shows them.
pub fn commands(scripts: usize, definitions: &[StatementDefinition]) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new(); scripts];
    for definition in definitions {
        commands[definition.transaction_type].push(definition.label.clone());
    }
    commands
}

/// What a run found; `recording` holds all its transactions.
pub fn results(
    options: &Options,
    definitions: &[StatementDefinition],
    recording: &Recording,
    times: RunTimes,
) -> Results {
    let mut scripts: Vec<_> = recording
        .types
        .iter()
        .map(|of_type| script_result(options, &of_type.counters, &of_type.times))
        .collect();
    for (definition, statement) in definitions.iter().zip(&recording.statements) {
        let commands = &mut scripts[definition.transaction_type].commands;
        commands.push(command_result(statement));
    }
    let total = total_times(recording);
    Results {
        total: total.map_or_else(ScriptResult::default, |times| {
            script_result(options, &recording.counters(), &times)
        }),
        scripts,
        bench_us: times.bench_us,
        connection_us: times.connection_us,
    }
}

/// Times of all scripts together: from merged histograms.
pub fn total_times(recording: &Recording) -> Option<TimesRecorder> {
    let (first, others) = recording.types.split_first()?;
    let mut times = first.times.clone();
    others.iter().for_each(|other| times.merge(&other.times));
    Some(times)
}

/// What pgbench calls latency: from the intended start, where starts are scheduled.
pub fn latency(times: &TimesRecorder) -> Option<&SeriesRecorder> {
    let named = |wanted: &str| {
        let mut all = times.named();
        all.find_map(|(name, series)| (name == wanted).then_some(series))
    };
    named("response").or_else(|| named("service"))
}

/// A percentile (in percent) in microseconds: the greatest time equivalent to the one at that rank.
pub fn percentile_us(series: &SeriesRecorder, percent: f64) -> f64 {
    let time_ns = series.histogram().value_at_quantile(percent / 100.0);
    time_ns.min(series.summarize().max_ns) as f64 / NS_PER_US
}

fn script_result(options: &Options, counters: &Counters, times: &TimesRecorder) -> ScriptResult {
    let at = |series| {
        let percentiles = percentiles(options).into_iter();
        percentiles
            .map(|percent| percentile_us(series, percent))
            .collect()
    };
    let percentiles_us = latency(times).map_or_else(Vec::new, at);
    ScriptResult {
        tally: Tally::of(counters, &times.summarize()),
        percentiles_us,
        commands: Vec::new(),
    }
}

fn command_result(statement: &StatementRecording) -> CommandResult {
    let time = statement.time.summarize();
    CommandResult {
        mean_ms: match time.count {
            0 => 0.0,
            count => time.sum_ns as f64 / count as f64 / NS_PER_MS,
        },
        failures: statement.failures,
        retries: statement.retries,
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulation::Emulation;
    use super::super::test_options::options;
    use super::*;
    use crate::outcome::{FailureClass, TransactionOutcome};
    use crate::program::{StatementId, StatementKind};
    use crate::recorder::{Ended, Shape};

    fn definition(transaction_type: usize, label: &str) -> StatementDefinition {
        StatementDefinition {
            transaction_type,
            number: 1,
            kind: StatementKind::Sql,
            label: label.into(),
            sql: label.into(),
            parameters: 0,
            wants_rows: false,
        }
    }

    #[test]
    fn scripts_and_commands_find_their_own() {
        let mut recording = Recording::new(Shape {
            transaction_types: 2,
            statements: 3,
            open_loop: true,
            response_time_limit_ns: 3_000_000,
        });
        let mut ended = |transaction_type, outcome, took_us: u64| {
            recording.transaction(&Ended {
                transaction_type,
                outcome,
                intended_start_ns: 1_000,
                actual_start_ns: 101_000,
                end_ns: 1_000 + took_us * 1_000,
                tries: 1,
            });
        };
        ended(0, TransactionOutcome::Committed, 2_000);
        ended(1, TransactionOutcome::Committed, 4_000);
        ended(1, TransactionOutcome::Failed(FailureClass::Deadlock), 9_000);
        recording.statement(StatementId(2), 1_500_000, 0);
        recording.statements[2].failures = 1;
        let definitions = [definition(0, "a"), definition(1, "b"), definition(1, "c")];
        let mut options = options(Emulation::V18, &[("x.sql", 1), ("y.sql", 1)], &[]);
        options.percentiles = vec![50.0, 100.0];
        let times = RunTimes {
            bench_us: 7.0,
            connection_us: 8.0,
        };
        let found = results(&options, &definitions, &recording, times);
        assert_eq!(vec![vec!["a"], vec!["b", "c"]], commands(2, &definitions));
        let tally = found.total.tally;
        assert_eq!((2, 1, 1), (tally.committed, tally.deadlock, tally.late));
        assert_eq!(
            (3_000.0, 100.0),
            (tally.latency.mean_us(), tally.lag.mean_us())
        );
        assert_eq!(4_000.0, found.total.percentiles_us[1]);
        assert!((found.total.percentiles_us[0] - 2_000.0).abs() < 2.0);
        assert_eq!(1, found.scripts[0].commands.len());
        let command = CommandResult {
            mean_ms: 1.5,
            failures: 1,
            retries: 0,
        };
        assert_eq!(command, found.scripts[1].commands[1]);
    }
}
