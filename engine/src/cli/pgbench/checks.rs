//! What options mean together: defaults, and what goes with what, in the order in which pgbench looks.

use super::arguments::{Given, try_help};
use super::options::{Length, Options, Switch};
use super::stop::Stop;
use super::voice::Voice;
use super::{builtin, scripts};

/// Transactions of each client when neither `-t` nor `-T` is given.
const TRANSACTIONS: u32 = 10;
/// Open files beside those of clients, as pgbench counts.
const FILES_BESIDE_CLIENTS: u64 = 3;

/// Whether so many clients may have a connection each.
///
/// # Errors
/// They may not, which was told.
pub fn open_files(clients: u64, voice: &Voice) -> Result<(), Stop> {
    let needed = clients + FILES_BESIDE_CLIENTS;
    match crate::process::raise_open_files_limit() {
        Ok(limit) if limit < needed => {
            voice.error(&format!(
                "need at least {needed} open files, but system limit is {limit}"
            ));
            voice.hint(
                "Reduce number of clients, or use limit/ulimit to increase the system limit.",
            );
            Err(Stop::Failed)
        }
        _ => Ok(()),
    }
}

/// Look at everything that was given, and fill in what was not.
///
/// # Errors
/// What does not go together was told.
pub fn complete(mut given: Given, others: &[String], voice: &Voice) -> Result<Options, Stop> {
    let told = |message: String| {
        voice.error(&message);
        Stop::Failed
    };
    if given.options.scripts.is_empty() && !given.initialize {
        given.benchmarking = true;
        let script = builtin::find("tpcb-like", voice)?;
        given.options.scripts.push(scripts::of_builtin(&script, 1));
    }
    let no_weight = given
        .options
        .scripts
        .iter()
        .all(|script| script.weight == 0);
    if no_weight && !given.initialize {
        return Err(told("total script weight must not be zero".to_owned()));
    }
    let mut others = others.iter();
    if given.options.database.is_none() {
        given.options.database = others.next().cloned();
    }
    if let Some(first) = others.next() {
        voice.error(&format!(
            "too many command-line arguments (first is \"{first}\")"
        ));
        return Err(try_help(voice));
    }
    match contradiction(&given) {
        Some(message) => Err(told(message)),
        None => Ok(settled(given)),
    }
}

/// The first thing that does not go with another.
fn contradiction(given: &Given) -> Option<String> {
    if given.initialize {
        if given.benchmarking {
            return Some(
                "some of the specified options cannot be used in initialization (-i) mode".into(),
            );
        }
        let lacking = given.partitions == 0 && given.partition_method.is_some();
        return lacking
            .then(|| "--partition-method requires greater than zero --partitions".into());
    }
    if given.initializing {
        return Some("some of the specified options cannot be used in benchmarking mode".into());
    }
    let has = |switch| given.switches.contains(&switch);
    let options = &given.options;
    if given.transactions.is_some() && given.duration_s.is_some() {
        return Some(
            "specify either a number of transactions (-t) or a duration (-T), not both".into(),
        );
    }
    let log = has(Switch::Log);
    if options.sampling_rate.is_some() && !log {
        let message =
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)";
        return Some(message.into());
    }
    if options.sampling_rate.is_some() && options.aggregate_interval_s.is_some() {
        let message = "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time";
        return Some(message.into());
    }
    if options.aggregate_interval_s.is_some() && !log {
        let message = "log aggregation is allowed only when actually logging transactions";
        return Some(message.into());
    }
    if given.log_prefix.is_some() && !log {
        let message =
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)";
        return Some(message.into());
    }
    if let (Some(duration_s), Some(interval_s)) = (given.duration_s, options.aggregate_interval_s) {
        if interval_s > duration_s {
            return Some(format!(
                "number of seconds for aggregation ({interval_s}) must not be higher than test duration ({duration_s})"
            ));
        }
        if duration_s % interval_s != 0 {
            return Some(format!(
                "duration ({duration_s}) must be a multiple of aggregation interval ({interval_s})"
            ));
        }
    }
    if has(Switch::ProgressTimestamp) && options.progress_s.is_none() {
        return Some("--progress-timestamp is allowed only under --progress".into());
    }
    let unlimited = options.max_tries == 0;
    if unlimited && options.latency_limit.is_none() && given.duration_s.is_none() {
        let message = "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)";
        return Some(message.into());
    }
    None
}

/// Everything in its place.
fn settled(given: Given) -> Options {
    let init = given.initialize.then(|| given.init_options());
    let Given {
        mut options,
        switches,
        transactions,
        duration_s,
        log_prefix,
        jobs,
        ..
    } = given;
    options.switches = switches;
    options.init = init;
    options.length = match duration_s {
        Some(seconds) => Length::Seconds(seconds),
        None => Length::Transactions(transactions.unwrap_or(TRANSACTIONS)),
    };
    options.log_prefix = log_prefix.unwrap_or_else(|| "pgbench_log".to_owned());
    options.jobs = jobs.unwrap_or(1).min(options.clients);
    options
}
