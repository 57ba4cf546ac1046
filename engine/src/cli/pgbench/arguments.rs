//! From the words of a command line to [`Options`]: options act in their order, and the first that is wrong ends the
//! program, as in pgbench.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::emulation::Emulation;
use super::getopt::{self, Item};
use super::numbers::{prefix_double, prefix_integer, whole};
use super::options::{InitOptions, Length, Options, PartitionMethod, Script, Switch};
use super::stop::Stop;
use super::table::{self, Meaning};
use super::voice::Voice;
use super::{builtin, checks, scripts, seed};
use crate::plan::Protocol;

/// Greatest number most options take.
const INT_MAX: i64 = i32::MAX as i64;
/// Steps of `-i`, and a blank.
const INIT_STEPS: &str = " dtgGvpf";
/// Percentiles of `--percentiles` without a list.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// What is given, before it is checked as a whole; absent where an option was not.
pub struct Given {
    /// Options without a value.
    pub switches: BTreeSet<Switch>,
    /// `-i` was given.
    pub initialize: bool,
    /// Something that only `-i` takes.
    pub initializing: bool,
    /// Something that only a run takes.
    pub benchmarking: bool,
    /// `-I`.
    pub steps: Option<String>,
    /// `-F`.
    pub fillfactor: u32,
    /// `--tablespace`.
    pub tablespace: Option<String>,
    /// `--index-tablespace`.
    pub index_tablespace: Option<String>,
    /// `--partitions`.
    pub partitions: u32,
    /// `--partition-method`.
    pub partition_method: Option<PartitionMethod>,
    /// `-t`.
    pub transactions: Option<u32>,
    /// `-T`.
    pub duration_s: Option<u32>,
    /// `--log-prefix`.
    pub log_prefix: Option<String>,
    /// `-j`.
    pub jobs: Option<usize>,
    /// Everything whose absence means its default; `init`, `length`, `log_prefix`, `jobs` are still to be set.
    pub options: Options,
}

/// Where a value is wrong: what to say.
type Wrong = String;

/// Read everything that was given.
///
/// # Errors
/// Something is wrong, or nothing is left to be done; it was told.
pub fn read(words: &[String], voice: &Voice, called: &str) -> Result<Options, Stop> {
    let (emulation, chosen) = chosen_emulation(words, voice)?;
    let environment = std::env::var("PGBENCH_RANDOM_SEED").ok();
    let seed = seed::seed(environment.as_deref(), voice).inspect_err(|_| {
        voice
            .error("error while setting random seed from PGBENCH_RANDOM_SEED environment variable");
    })?;
    let table = table::options(emulation, chosen);
    let known: Vec<_> = table.iter().map(|(known, _)| *known).collect();
    let (items, others) = getopt::read(words, &known);
    let mut given = Given::new(emulation, seed);
    for item in items {
        match item {
            Item::Option(index, value) => given.take(table[index].1, &value, voice)?,
            Item::Wrong(message) => {
                eprintln!("{called}: {message}");
                return Err(try_help(voice));
            }
        }
    }
    checks::complete(given, &others, voice)
}

/// Point to `--help`.
pub fn try_help(voice: &Voice) -> Stop {
    voice.hint(&format!(
        "Try \"{} --help\" for more information.",
        voice.program()
    ));
    Stop::Failed
}

/// The version to speak, and whether somebody asked for it: by the last `--emulate`, else by PGDYNO_PGBENCH.
fn chosen_emulation(words: &[String], voice: &Voice) -> Result<(Emulation, bool), Stop> {
    let table = table::options(Emulation::DEFAULT, false);
    let known: Vec<_> = table.iter().map(|(known, _)| *known).collect();
    let (items, _) = getopt::read(words, &known);
    let option = items.into_iter().rev().find_map(|item| match item {
        Item::Option(index, value) if table[index].1 == Meaning::Emulate => Some(value),
        _ => None,
    });
    let Some(word) = option.or_else(environment_word) else {
        return Ok((Emulation::DEFAULT, false));
    };
    match Emulation::by_name(&word) {
        Some(emulation) => Ok((emulation, true)),
        None => {
            voice.error(&format!("cannot speak as pgbench {word}"));
            voice.hint("--emulate and PGDYNO_PGBENCH take 15, 16, 17 or 18.");
            Err(Stop::Failed)
        }
    }
}

fn environment_word() -> Option<String> {
    let word = std::env::var("PGDYNO_PGBENCH").ok();
    word.filter(|word| !word.is_empty())
}

/// The version PGDYNO_PGBENCH names, else the default.
pub fn environment_emulation() -> Emulation {
    let named = environment_word().and_then(|word| Emulation::by_name(&word));
    named.unwrap_or(Emulation::DEFAULT)
}

impl Given {
    fn new(emulation: Emulation, seed: u64) -> Self {
        Self {
            switches: BTreeSet::new(),
            initialize: false,
            initializing: false,
            benchmarking: false,
            steps: None,
            fillfactor: 100,
            tablespace: None,
            index_tablespace: None,
            partitions: 0,
            partition_method: None,
            transactions: None,
            duration_s: None,
            log_prefix: None,
            jobs: None,
            options: Options {
                emulation,
                switches: BTreeSet::new(),
                host: None,
                port: None,
                user: None,
                database: None,
                init: None,
                scale: None,
                clients: 1,
                jobs: 1,
                length: Length::Transactions(10),
                protocol: Protocol::Simple,
                scripts: Vec::new(),
                variables: Vec::new(),
                rate_per_s: None,
                latency_limit: None,
                max_tries: 1,
                progress_s: None,
                sampling_rate: None,
                aggregate_interval_s: None,
                log_prefix: String::new(),
                seed,
                percentiles: Vec::new(),
                json: None,
                hdr: None,
            },
        }
    }

    /// One option acts.
    fn take(&mut self, meaning: Meaning, value: &str, voice: &Voice) -> Result<(), Stop> {
        use Meaning as M;
        match meaning {
            M::Builtin | M::ShowScript => return self.builtin(meaning, value, voice),
            M::SelectOnly => return self.builtin(M::Builtin, "select-only", voice),
            M::SkipSomeUpdates => return self.builtin(M::Builtin, "simple-update", voice),
            M::InitSteps => return self.init_steps(value, voice),
            M::RandomSeed => {
                self.benchmarking = true;
                self.options.seed = seed::seed(Some(value), voice).inspect_err(|_| {
                    voice.error("error while setting random seed from --random-seed option");
                })?;
                return Ok(());
            }
            _ => {}
        }
        let taken = self
            .take_switch(meaning, value)
            .or_else(|| self.take_common(meaning, value))
            .or_else(|| self.take_initializing(meaning, value))
            .or_else(|| self.take_benchmarking(meaning, value));
        taken.unwrap_or(Ok(())).map_err(|wrong| {
            voice.error(&wrong);
            Stop::Failed
        })?;
        if meaning == M::Client {
            checks::open_files(self.options.clients as u64, voice)?;
        }
        Ok(())
    }

    /// Options without a value.
    fn take_switch(&mut self, meaning: Meaning, value: &str) -> Option<Result<(), Wrong>> {
        use Meaning as M;
        let (switch, kind) = match meaning {
            M::Debug => (Switch::Debug, None),
            M::DatabaseOrDebug if value.is_empty() => (Switch::Debug, None),
            M::NoVacuum => (Switch::NoVacuum, None),
            M::Quiet => (Switch::Quiet, Some(true)),
            M::UnloggedTables => (Switch::UnloggedTables, Some(true)),
            M::ForeignKeys => (Switch::ForeignKeys, Some(true)),
            M::VacuumAll => (Switch::VacuumAll, Some(false)),
            M::Connect => (Switch::Connect, Some(false)),
            M::Log => (Switch::Log, Some(false)),
            M::ReportPerCommand => (Switch::ReportPerCommand, Some(false)),
            M::ProgressTimestamp => (Switch::ProgressTimestamp, Some(false)),
            M::FailuresDetailed => (Switch::FailuresDetailed, Some(false)),
            M::VerboseErrors => (Switch::VerboseErrors, Some(false)),
            M::ExitOnAbort => (Switch::ExitOnAbort, Some(false)),
            M::ContinueOnError => (Switch::ContinueOnError, Some(false)),
            M::Reconnect => (Switch::Reconnect, Some(false)),
            M::TimeIncludesConnect => (Switch::TimeIncludesConnect, Some(false)),
            M::Advise => (Switch::Advise, Some(false)),
            _ => return None,
        };
        match kind {
            Some(true) => self.initializing = true,
            Some(false) => self.benchmarking = true,
            None => {}
        }
        self.switches.insert(switch);
        Some(Ok(()))
    }

    /// Options with a value that both `-i` and a run take.
    fn take_common(&mut self, meaning: Meaning, value: &str) -> Option<Result<(), Wrong>> {
        use Meaning as M;
        let text = || Some(value.to_owned());
        let options = &mut self.options;
        match meaning {
            M::Dbname | M::DatabaseOrDebug => options.database = text(),
            M::Host => options.host = text(),
            M::Port => options.port = text(),
            M::Username => options.user = text(),
            M::Initialize => self.initialize = true,
            M::Scale => {
                let scale = whole(value, "-s/--scale", 1, INT_MAX);
                return Some(scale.map(|scale| options.scale = Some(scale as u32)));
            }
            // Of a run alone in pgbench; `-i` loads with so many connections here.
            M::Jobs => {
                let jobs = whole(value, "-j/--jobs", 1, INT_MAX);
                return Some(jobs.map(|jobs| self.jobs = Some(jobs as usize)));
            }
            M::Emulate => {}
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Options with a value that only `-i` takes.
    fn take_initializing(&mut self, meaning: Meaning, value: &str) -> Option<Result<(), Wrong>> {
        use Meaning as M;
        let outcome = match meaning {
            M::Fillfactor => whole(value, "-F/--fillfactor", 10, 100)
                .map(|percent| self.fillfactor = percent as u32),
            M::Tablespace => {
                self.tablespace = Some(value.to_owned());
                Ok(())
            }
            M::IndexTablespace => {
                self.index_tablespace = Some(value.to_owned());
                Ok(())
            }
            M::Partitions => {
                whole(value, "--partitions", 0, INT_MAX).map(|count| self.partitions = count as u32)
            }
            M::PartitionMethod => match value.to_ascii_lowercase().as_str() {
                "range" => {
                    self.partition_method = Some(PartitionMethod::Range);
                    Ok(())
                }
                "hash" => {
                    self.partition_method = Some(PartitionMethod::Hash);
                    Ok(())
                }
                _ => Err(format!(
                    "invalid partition method, expecting \"range\" or \"hash\", got: \"{value}\""
                )),
            },
            _ => return None,
        };
        self.initializing = true;
        Some(outcome)
    }

    /// Options with a value that only a run takes.
    fn take_benchmarking(&mut self, meaning: Meaning, value: &str) -> Option<Result<(), Wrong>> {
        use Meaning as M;
        self.benchmarking = true;
        let options = &mut self.options;
        let positive = |what: &str| match prefix_double(value) {
            number if number > 0.0 => Ok(number),
            _ => Err(format!("invalid {what}: \"{value}\"")),
        };
        let outcome = match meaning {
            M::Client => whole(value, "-c/--clients", 1, INT_MAX)
                .map(|clients| options.clients = clients as usize),
            M::Define => define(value).map(|variable| options.variables.push(variable)),
            M::File => self.file(value),
            M::LatencyLimit => positive("latency limit").map(|limit_ms| {
                // Whole microseconds, as in pgbench.
                let limit_us = (limit_ms * 1e3) as u64;
                options.latency_limit = Some(Duration::from_micros(limit_us));
            }),
            M::Progress => whole(value, "-P/--progress", 1, INT_MAX)
                .map(|seconds| options.progress_s = Some(seconds as u32)),
            M::Protocol => protocol(value).map(|protocol| options.protocol = protocol),
            M::Rate => positive("rate limit").map(|rate| options.rate_per_s = Some(rate)),
            M::Time => whole(value, "-T/--time", 1, INT_MAX)
                .map(|seconds| self.duration_s = Some(seconds as u32)),
            M::Transactions => whole(value, "-t/--transactions", 1, INT_MAX)
                .map(|count| self.transactions = Some(count as u32)),
            M::SamplingRate => match prefix_double(value) {
                rate if rate > 0.0 && rate <= 1.0 => {
                    options.sampling_rate = Some(rate);
                    Ok(())
                }
                _ => Err(format!("invalid sampling rate: \"{value}\"")),
            },
            M::AggregateInterval => whole(value, "--aggregate-interval", 1, INT_MAX)
                .map(|seconds| options.aggregate_interval_s = Some(seconds as u32)),
            M::LogPrefix => {
                self.log_prefix = Some(value.to_owned());
                Ok(())
            }
            M::MaxTries => match prefix_integer(value).0 {
                Some(tries) if (0..=INT_MAX).contains(&tries) => {
                    options.max_tries = tries as u32;
                    Ok(())
                }
                _ => Err(format!("invalid number of maximum tries: \"{value}\"")),
            },
            M::Percentiles => percentiles(value).map(|list| options.percentiles = list),
            M::Json => {
                options.json = Some(PathBuf::from(value));
                Ok(())
            }
            M::Hdr => {
                options.hdr = Some(PathBuf::from(value));
                Ok(())
            }
            _ => return None,
        };
        Some(outcome)
    }

    fn file(&mut self, value: &str) -> Result<(), Wrong> {
        let (name, weight) = scripts::weighted(value)?;
        let script = scripts::of_file(name, weight)?;
        self.add_script(script)
    }

    fn add_script(&mut self, script: Script) -> Result<(), Wrong> {
        self.benchmarking = true;
        if self.options.scripts.len() >= scripts::SCRIPTS_MAX {
            return Err(format!(
                "at most {} SQL scripts are allowed",
                scripts::SCRIPTS_MAX
            ));
        }
        self.options.scripts.push(script);
        Ok(())
    }

    fn builtin(&mut self, meaning: Meaning, value: &str, voice: &Voice) -> Result<(), Stop> {
        if meaning == Meaning::ShowScript {
            builtin::show(&builtin::find(value, voice)?);
            return Err(Stop::Done);
        }
        if value == "list" {
            builtin::list();
            return Err(Stop::Done);
        }
        let told = |wrong: Wrong| {
            voice.error(&wrong);
            Stop::Failed
        };
        let (name, weight) = scripts::weighted(value).map_err(told)?;
        let script = builtin::find(name, voice)?;
        self.add_script(scripts::of_builtin(&script, weight))
            .map_err(told)
    }

    fn init_steps(&mut self, value: &str, voice: &Voice) -> Result<(), Stop> {
        if value.is_empty() {
            voice.error("no initialization steps specified");
            return Err(Stop::Failed);
        }
        if let Some(step) = value.chars().find(|&step| !INIT_STEPS.contains(step)) {
            voice.error(&format!("unrecognized initialization step \"{step}\""));
            let letters = INIT_STEPS.trim();
            voice.detail(&format!("Allowed step characters are: \"{letters}\"."));
            return Err(Stop::Failed);
        }
        self.steps = Some(value.to_owned());
        self.initializing = true;
        Ok(())
    }

    /// `-i` and what belongs to it, as it is meant.
    pub fn init_options(&self) -> InitOptions {
        let mut steps = self.steps.clone().unwrap_or_else(|| "dtgvp".to_owned());
        if self.switches.contains(&Switch::NoVacuum) {
            steps = steps.replace('v', " ");
        }
        if self.switches.contains(&Switch::ForeignKeys) && !steps.contains('f') {
            steps.push('f');
        }
        InitOptions {
            steps,
            fillfactor: self.fillfactor,
            tablespace: self.tablespace.clone(),
            index_tablespace: self.index_tablespace.clone(),
            partitions: self.partitions,
            partition_method: self.partition_method.unwrap_or(PartitionMethod::Range),
            jobs: self.jobs.unwrap_or(1),
        }
    }
}

/// `-D name=value`.
fn define(value: &str) -> Result<(String, String), Wrong> {
    match value.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            if crate::script::variables::is_name(name.as_bytes()) {
                Ok((name.to_owned(), value.to_owned()))
            } else {
                Err(format!("option: invalid variable name: \"{name}\""))
            }
        }
        _ => Err(format!("invalid variable definition: \"{value}\"")),
    }
}

fn protocol(value: &str) -> Result<Protocol, Wrong> {
    match value {
        "simple" => Ok(Protocol::Simple),
        "extended" => Ok(Protocol::Extended),
        "prepared" => Ok(Protocol::Prepared),
        _ => Err(format!("invalid query mode (-M): \"{value}\"")),
    }
}

/// A list of percentages, `50,99,99.9`.
fn percentiles(value: &str) -> Result<Vec<f64>, Wrong> {
    if value.is_empty() {
        return Ok(PERCENTILES.to_vec());
    }
    let one = |word: &str| {
        word.trim()
            .parse()
            .ok()
            .filter(|percent: &f64| (0.0..=100.0).contains(percent))
            .ok_or_else(|| format!("invalid percentile: \"{word}\""))
    };
    value.split(',').map(one).collect()
}
