//! The report of a run on stdout: pgbench's lines, to the letter, as the emulated version writes them.
//!
//! One thing differs on purpose: the average latency is measured in every run (pgbench computes it from the run's
//! duration unless `-P`, `-R` or `-L` is given), so it never says "(including failures)" while anything was committed.

use std::io::{self, Write};

use super::emulation::Emulation;
use super::options::{Length, Options, PartitionMethod, Switch};
use super::tally::{Tally, fixed};
use crate::plan::Protocol;

/// What was asked of the run, and what was learned before it began.
#[derive(Clone, Debug)]
pub struct Reported<'a> {
    /// The command line.
    pub options: &'a Options,
    /// Scale factor: counted for built-in scripts, else given.
    pub scale: i64,
    /// Of pgbench_accounts; None: it is an ordinary table, or was not looked at.
    pub partitions: Option<(PartitionMethod, u64)>,
    /// By script: first lines of its commands.
    pub commands: Vec<Vec<String>>,
}

/// One command's share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandResult {
    /// Mean of its successful executions, in milliseconds; 0 when there were none.
    pub mean_ms: f64,
    /// Errors that ended their transaction as failed.
    pub failures: u64,
    /// Errors after which the transaction was tried again.
    pub retries: u64,
}

/// What became of one script's transactions, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptResult {
    /// Counts and sums.
    pub tally: Tally,
    /// Latency in microseconds for each of `json::percentiles`: those that `Options::percentiles` asks for, where it does.
    pub percentiles_us: Vec<f64>,
    /// In the order of its commands; empty for all scripts together.
    pub commands: Vec<CommandResult>,
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// All scripts together.
    pub total: ScriptResult,
    /// In the order of `Options::scripts`.
    pub scripts: Vec<ScriptResult>,
    /// From when the first transaction could start until the last one ended, in microseconds.
    pub bench_us: f64,
    /// Until all clients were connected, or with `-C` the time of all connections together, in microseconds.
    pub connection_us: f64,
}

impl Reported<'_> {
    /// Whether scripts are reported one by one.
    fn per_script(&self) -> bool {
        self.options.scripts.len() > 1
    }

    fn throttled(&self) -> bool {
        self.options.rate_per_s.is_some()
    }

    /// Whether pgbench would have measured latencies one by one.
    fn measured_by_pgbench(&self) -> bool {
        let options = self.options;
        self.throttled() || options.progress_s.is_some() || options.latency_limit.is_some()
    }

    /// Whether every transaction of a script is counted, and a run in which all failed is reported: since 18.
    fn whole_script_counts(&self) -> bool {
        self.options.emulation >= Emulation::V18
    }
}

/// Write the report.
///
/// # Errors
/// Whatever `out` says.
pub fn write_report(
    out: &mut impl Write,
    reported: &Reported<'_>,
    results: &Results,
) -> io::Result<()> {
    let tally = &results.total.tally;
    write_head(out, reported, tally)?;
    if reported.whole_script_counts() && tally.total() == 0 {
        return Ok(());
    }
    write_failures(out, reported, "", tally)?;
    if tally.committed + tally.skipped == 0 && !reported.whole_script_counts() {
        return Ok(());
    }
    write_skipped(out, reported, "", tally)?;
    if let Some(limit) = reported.options.latency_limit {
        writeln!(
            out,
            "number of transactions above the {} ms latency limit: {}/{} ({}%)",
            fixed(limit.as_micros() as f64 / 1000.0, 1),
            tally.late,
            tally.committed,
            if tally.committed > 0 {
                percent(tally.late, tally.committed)
            } else {
                fixed(0.0, 3)
            }
        )?;
    }
    write_latency(out, reported, results)?;
    write_rates(out, reported, results)?;
    if reported.per_script() || reported.options.has(Switch::ReportPerCommand) {
        for number in 0..reported.options.scripts.len() {
            write_script(out, reported, results, number)?;
        }
    }
    Ok(())
}

/// What was asked, and how much was done.
fn write_head(out: &mut impl Write, reported: &Reported<'_>, tally: &Tally) -> io::Result<()> {
    let kind = match reported.options.scripts.as_slice() {
        [only] => only.description.as_str(),
        _ => "multiple scripts",
    };
    writeln!(out, "transaction type: {kind}")?;
    writeln!(out, "scaling factor: {}", reported.scale)?;
    if let Some((method, partitions)) = reported.partitions {
        let method = match method {
            PartitionMethod::Range => "range",
            PartitionMethod::Hash => "hash",
        };
        writeln!(out, "partition method: {method}\npartitions: {partitions}")?;
    }
    writeln!(out, "query mode: {}", query_mode(reported.options.protocol))?;
    writeln!(out, "number of clients: {}", reported.options.clients)?;
    writeln!(out, "number of threads: {}", reported.options.jobs)?;
    if reported.options.max_tries > 0 {
        writeln!(
            out,
            "maximum number of tries: {}",
            reported.options.max_tries
        )?;
    }
    let committed = tally.committed;
    match reported.options.length {
        Length::Transactions(each) => {
            let wanted = u128::from(each) * reported.options.clients as u128;
            writeln!(out, "number of transactions per client: {each}")?;
            writeln!(
                out,
                "number of transactions actually processed: {committed}/{wanted}"
            )
        }
        Length::Seconds(duration_s) => {
            writeln!(out, "duration: {duration_s} s")?;
            writeln!(
                out,
                "number of transactions actually processed: {committed}"
            )
        }
    }
}

/// What `-M` calls it.
pub fn query_mode(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Simple => "simple",
        Protocol::Extended => "extended",
        Protocol::Prepared => "prepared",
    }
}

/// Failed and retried transactions, as shares of all.
fn write_failures(
    out: &mut impl Write,
    reported: &Reported<'_>,
    prefix: &str,
    tally: &Tally,
) -> io::Result<()> {
    let total = tally.total();
    let mut line = |what: &str, count: u64| {
        writeln!(
            out,
            "{prefix}number of {what}: {count} ({}%)",
            percent(count, total)
        )
    };
    line("failed transactions", tally.failures())?;
    if reported.options.has(Switch::FailuresDetailed) {
        line("serialization failures", tally.serialization)?;
        line("deadlock failures", tally.deadlock)?;
        let options = reported.options;
        if options.has(Switch::ContinueOnError) || options.has(Switch::Reconnect) {
            line("other failures", tally.other)?;
        }
    }
    if reported.options.max_tries != 1 {
        line("transactions retried", tally.retried)?;
        writeln!(out, "{prefix}total number of retries: {}", tally.retries)?;
    }
    Ok(())
}

fn write_skipped(
    out: &mut impl Write,
    reported: &Reported<'_>,
    prefix: &str,
    tally: &Tally,
) -> io::Result<()> {
    if !reported.throttled() || reported.options.latency_limit.is_none() {
        return Ok(());
    }
    writeln!(
        out,
        "{prefix}number of transactions skipped: {} ({}%)",
        tally.skipped,
        percent(tally.skipped, tally.total())
    )
}

/// Average and standard deviation of all transactions, and how far starts lagged behind the schedule.
fn write_latency(
    out: &mut impl Write,
    reported: &Reported<'_>,
    results: &Results,
) -> io::Result<()> {
    let tally = &results.total.tally;
    let latency = &tally.latency;
    if latency.count > 0 {
        writeln!(out, "latency average = {} ms", ms(latency.mean_us()))?;
        if reported.measured_by_pgbench() {
            writeln!(out, "latency stddev = {} ms", ms(latency.stddev_us()))?;
        }
    } else if !reported.measured_by_pgbench() {
        // Nothing was committed, so there is nothing to measure: what pgbench computes.
        let computed_us = results.bench_us * reported.options.clients as f64 / tally.total() as f64;
        let failures = if tally.failures() > 0 {
            " (including failures)"
        } else {
            ""
        };
        writeln!(out, "latency average = {} ms{failures}", ms(computed_us))?;
    }
    write_percentiles(out, reported, "", &results.total)?;
    if reported.throttled() {
        writeln!(
            out,
            "rate limit schedule lag: avg {} (max {}) ms",
            ms(tally.lag.sum_us / tally.committed as f64),
            ms(tally.lag.max_us)
        )?;
    }
    Ok(())
}

fn write_percentiles(
    out: &mut impl Write,
    reported: &Reported<'_>,
    prefix: &str,
    result: &ScriptResult,
) -> io::Result<()> {
    if result.tally.latency.count == 0 {
        return Ok(());
    }
    for (percentile, time_us) in reported
        .options
        .percentiles
        .iter()
        .zip(&result.percentiles_us)
    {
        writeln!(out, "{prefix}latency p{percentile} = {} ms", ms(*time_us))?;
    }
    Ok(())
}

/// Connection time and throughput.
fn write_rates(out: &mut impl Write, reported: &Reported<'_>, results: &Results) -> io::Result<()> {
    let tally = &results.total.tally;
    let tps = fixed(per_second(tally.committed, results.bench_us), 6);
    if reported.options.has(Switch::Connect) {
        let connected = tally.committed + tally.failures();
        writeln!(
            out,
            "average connection time = {} ms",
            ms(results.connection_us / connected as f64)
        )?;
        writeln!(out, "tps = {tps} (including reconnection times)")
    } else {
        writeln!(
            out,
            "initial connection time = {} ms",
            ms(results.connection_us)
        )?;
        writeln!(out, "tps = {tps} (without initial connection time)")
    }
}

/// The section of one script.
fn write_script(
    out: &mut impl Write,
    reported: &Reported<'_>,
    results: &Results,
    number: usize,
) -> io::Result<()> {
    let result = &results.scripts[number];
    if reported.per_script() {
        write_script_head(out, reported, results, number)?;
        let (tally, prefix) = (&result.tally, " - ");
        let any = tally.total() > 0;
        if any || !reported.whole_script_counts() {
            write_failures(out, reported, prefix, tally)?;
        }
        if any {
            write_skipped(out, reported, prefix, tally)?;
        }
        if tally.latency.count > 0 {
            let latency = &tally.latency;
            writeln!(out, " - latency average = {} ms", ms(latency.mean_us()))?;
            writeln!(out, " - latency stddev = {} ms", ms(latency.stddev_us()))?;
            write_percentiles(out, reported, prefix, result)?;
        }
    }
    if reported.options.has(Switch::ReportPerCommand) {
        write_commands(out, reported, number, result)?;
    }
    Ok(())
}

/// Weight, number and rate of one script's transactions.
fn write_script_head(
    out: &mut impl Write,
    reported: &Reported<'_>,
    results: &Results,
    number: usize,
) -> io::Result<()> {
    let (script, tally) = (
        &reported.options.scripts[number],
        &results.scripts[number].tally,
    );
    let weights: u64 = reported
        .options
        .scripts
        .iter()
        .map(|s| u64::from(s.weight))
        .sum();
    let share = |part: u64, whole: u64| fixed(100.0 * part as f64 / whole as f64, 1);
    let tps = fixed(per_second(tally.committed, results.bench_us), 6);
    writeln!(out, "SQL script {}: {}", number + 1, script.description)?;
    writeln!(
        out,
        " - weight: {} (targets {}% of total)",
        script.weight,
        share(u64::from(script.weight), weights)
    )?;
    let all = &results.total.tally;
    if !reported.whole_script_counts() {
        let (done, share) = (tally.committed, share(tally.committed, all.committed));
        return writeln!(
            out,
            " - {done} transactions ({share}% of total, tps = {tps})"
        );
    }
    let (total, share) = (tally.total(), share(tally.total(), all.total()));
    writeln!(out, " - {total} transactions ({share}% of total)")?;
    if total == 0 {
        return Ok(());
    }
    writeln!(
        out,
        " - number of transactions actually processed: {} (tps = {tps})",
        tally.committed
    )
}

/// Mean time and errors of each command.
fn write_commands(
    out: &mut impl Write,
    reported: &Reported<'_>,
    number: usize,
    result: &ScriptResult,
) -> io::Result<()> {
    let prefix = if reported.per_script() { " - " } else { "" };
    let (what, retries) = match reported.options.max_tries {
        1 => (" and failures", false),
        _ => (", failures and retries", true),
    };
    // Version 18 lost a blank before the last two columns.
    let blank = if reported.options.emulation >= Emulation::V18 {
        ""
    } else {
        " "
    };
    writeln!(out, "{prefix}statement latencies in milliseconds{what}:")?;
    for (text, command) in reported.commands[number].iter().zip(&result.commands) {
        let mean = fixed(command.mean_ms, 3);
        write!(out, "   {mean:>11}  {:>10}{blank}", command.failures)?;
        if retries {
            write!(out, " {:>10}{blank}", command.retries)?;
        }
        writeln!(out, " {text}")?;
    }
    Ok(())
}

/// Microseconds, shown as milliseconds.
fn ms(time_us: f64) -> String {
    fixed(0.001 * time_us, 3)
}

fn percent(part: u64, whole: u64) -> String {
    fixed(100.0 * part as f64 / whole as f64, 3)
}

fn per_second(count: u64, time_us: f64) -> f64 {
    count as f64 / (time_us / 1e6)
}

#[cfg(test)]
mod tests;
