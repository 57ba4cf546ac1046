//! A run: a plan of the options, measured under pgbench's rules, and reported.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::advice::advice;
use super::connecting::{Arrival, Place, arrive, refusal};
use super::json::{self, Ending};
use super::log::Log;
use super::options::{Length, Options, Switch};
use super::outlet::{RunOutlet, SharedIntervals};
use super::preparation::{Tables, prepare, print_versions};
use super::report::{Reported, Results, write_report};
use super::results::{self, RunTimes};
use super::script_errors;
use super::stop::Stop;
use super::voice::Voice;
use super::witness::Teller;
use crate::cli::{COULD_NOT, DONE, INTERRUPTED};
use crate::client::rules::{AfterAbort, AfterError, CommandTimes, Rules, SessionUse};
use crate::control::{Begin, Measured, Measurement, ResultsGo, measure};
use crate::plan::{
    CONTRACT_VERSION, Load, OnConnectionLoss, OpenLoad, Plan, ReactorChoice, Receive, Reconnect,
    Retry, TransactionLog, TransactionType, WarmupEnds,
};
use crate::program::Language;
use crate::results::{Outcome, Summary};
use crate::script::language::ScriptLanguage;
use crate::statements::Statements;
use crate::wire::target::Address;

/// A client was aborted.
const ABORTED: u8 = 2;
/// As good as for ever: a year, in seconds.
const FOR_EVER_S: f64 = 366.0 * 86_400.0;
/// Length of intervals nobody asked to see, in seconds.
const QUIET_INTERVAL_S: f64 = 3600.0;
/// Length of intervals for `--json` and `--hdr`, in seconds.
const KEPT_INTERVAL_S: f64 = 1.0;

/// Do it; the exit status.
///
/// # Errors
/// Something went wrong before the run; it was told.
pub fn run(options: &Options, voice: &Voice) -> Result<u8, Stop> {
    // The scripts are looked at before anything is connected to.
    compile(&plan(options, 1), options, voice)?;
    let arrival = arrive(options, voice).inspect_err(|_| {
        voice.error("could not create connection for setup");
    })?;
    let Arrival { place, mut session } = arrival;
    print_versions(options.emulation, &session);
    if options.has(Switch::Debug) {
        tell_place(options, &place, voice);
    }
    let tables = prepare(options, &mut session, &place.database, voice)?;
    drop(session);
    let plan = plan(options, tables.scale);
    let language = compile(&plan, options, voice)?;
    let log = open_log(options, &language, voice)?;
    let language = Arc::new(language);
    let teller = Arc::new(Teller::new(options, language.statements(), voice));
    let statements = Statements::new(&plan, language.statements());
    let outlet = RunOutlet::new(options.clone(), statements.shape(), log);
    let intervals = outlet.intervals();
    let measured = measure(Measurement {
        plan,
        language: language.clone(),
        destination: place.destination.as_ref().clone(),
        results: ResultsGo::To(Box::new(outlet)),
        rules: Some(rules(options, teller.clone())),
        begin: begin(options),
    });
    let measured = measured.map_err(|error| {
        voice.error(&error.message);
        if let Some(hint) = &error.hint {
            voice.hint(hint);
        }
        Stop::Failed
    })?;
    let summary = &measured.summary;
    if summary.timeline.connect_end_ns.is_none() && summary.outcome == Outcome::Aborted {
        let told = summary.message.as_deref().unwrap_or_default();
        voice.error(&refusal(&place.destination, told));
        voice.error(&format!(
            "could not create connection for client {}",
            summary.clients_connected
        ));
        return Ok(COULD_NOT);
    }
    conclude(
        options,
        &measured,
        tables,
        (language.as_ref(), &teller, &intervals),
        voice,
    )
}

/// Where the run leads, for `--debug`.
fn tell_place(options: &Options, place: &Place, voice: &Voice) {
    let hosts = &place.destination.target.hosts;
    let (host, port) = match hosts.first().map(|host| &host.address) {
        Some(Address::Tcp(host, port)) => (host.clone(), port.to_string()),
        Some(Address::Unix(path)) => {
            let folder = path.parent().unwrap_or(path).display().to_string();
            let port = path.extension().unwrap_or_default().to_string_lossy();
            (folder, port.into_owned())
        }
        None => Default::default(),
    };
    let length = match options.length {
        Length::Transactions(count) => format!("nxacts: {count}"),
        Length::Seconds(seconds) => format!("duration: {seconds}"),
    };
    voice.debug(&format!(
        "pghost: {host} pgport: {port} nclients: {} {length} dbName: {}",
        options.clients, place.database
    ));
}

/// Judge a run and report it.
fn conclude(
    options: &Options,
    measured: &Measured,
    tables: Tables,
    (language, teller, intervals): (&ScriptLanguage, &Teller, &SharedIntervals),
    voice: &Voice,
) -> Result<u8, Stop> {
    let Measured { summary, recording } = measured;
    let message = summary.message.as_deref().unwrap_or_default();
    if options.has(Switch::ExitOnAbort) && teller.aborted() > 0 {
        voice.error(message);
        return Ok(ABORTED);
    }
    if message.starts_with("cannot write") {
        voice.error(message);
        return Ok(COULD_NOT);
    }
    let reported = Reported {
        options,
        scale: tables.scale,
        partitions: tables.partitions,
        commands: results::commands(options.scripts.len(), language.statements()),
    };
    let times = times(options, summary);
    let results = results::results(options, language.statements(), recording, times);
    let mut out = Vec::new();
    let written = write_report(&mut out, &reported, &results)
        .and_then(|()| std::io::stdout().lock().write_all(&out));
    if let Err(error) = written {
        voice.error(&format!("could not write the report: {error}"));
        return Ok(COULD_NOT);
    }
    let ending = match summary.outcome {
        _ if teller.aborted() > 0 => Ending::Aborted,
        Outcome::Interrupted => Ending::Interrupted,
        _ => Ending::Completed,
    };
    if !write_json(&reported, &results, intervals, ending, voice) {
        return Ok(COULD_NOT);
    }
    if options.has(Switch::Advise)
        && let Some(cost) = &summary.own_cost
        && let Some((message, hint)) = advice(cost, os_threads(options), results.bench_us)
    {
        voice.warning(&message);
        voice.hint(hint);
    }
    if teller.aborted() > 0 {
        voice.error("Run was aborted; the above results are incomplete.");
        return Ok(ABORTED);
    }
    Ok(match summary.outcome {
        Outcome::Interrupted => INTERRUPTED,
        _ => DONE,
    })
}

/// `--json`: true when it is written, or not asked for; what went wrong was told.
fn write_json(
    reported: &Reported<'_>,
    results: &Results,
    intervals: &SharedIntervals,
    ending: Ending,
    voice: &Voice,
) -> bool {
    let Some(path) = &reported.options.json else {
        return true;
    };
    let intervals = intervals.lock().unwrap_or_else(PoisonError::into_inner);
    let written = json::write(path, reported, results, &intervals, ending);
    if let Err(error) = &written {
        let reason = crate::reactor::reason(error);
        voice.error(&format!("could not write \"{}\": {reason}", path.display()));
    }
    written.is_ok()
}

/// How long intervals are.
fn interval_s(options: &Options) -> f64 {
    let kept = options.json.is_some() || options.hdr.is_some();
    let unseen_s = if kept {
        KEPT_INTERVAL_S
    } else {
        QUIET_INTERVAL_S
    };
    options.progress_s.map_or(unseen_s, f64::from)
}

/// OS threads that do the work of `-j`: more of them than CPUs would only stand in each other's way, and each has
/// histograms of its own.
fn os_threads(options: &Options) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    options.jobs.min(cpus)
}

/// The options as a plan.
fn plan(options: &Options, scale: i64) -> Plan {
    let mut variables: BTreeMap<_, _> = options.variables.iter().cloned().collect();
    variables
        .entry("scale".to_owned())
        .or_insert_with(|| scale.to_string());
    let kind = |(number, script): (usize, &super::options::Script)| TransactionType {
        name: format!("script-{number}"),
        weight: script.weight,
        source: script.description.clone(),
        script: script.text.clone(),
        failure: None,
    };
    let limit_s = options.latency_limit.map(|limit| limit.as_secs_f64());
    let (duration_s, transactions_per_client) = match options.length {
        Length::Seconds(seconds) => (Some(f64::from(seconds)), None),
        Length::Transactions(count) => (None, Some(u64::from(count))),
    };
    let load = options.rate_per_s.map_or_else(Load::default, |rate_per_s| {
        Load::Open(OpenLoad {
            rate_per_s: Some(rate_per_s),
            backlog_limit_s: limit_s,
            ..OpenLoad::default()
        })
    });
    Plan {
        version: CONTRACT_VERSION,
        name: "pgbench".to_owned(),
        conninfo: String::new(),
        protocol: options.protocol,
        clients: options.clients,
        threads: os_threads(options),
        lanes: options.jobs,
        cpus: Vec::new(),
        reactor: ReactorChoice::Auto,
        receive: Receive::default(),
        seed: options.seed,
        load,
        response_time_limit_s: limit_s,
        warmup_s: 0.0,
        warmup_ends: WarmupEnds::Time,
        duration_s,
        transactions_per_client,
        interval_s: interval_s(options),
        connect_deadline_s: FOR_EVER_S,
        min_clients: None,
        drain_deadline_s: FOR_EVER_S,
        statement_timeout_s: None,
        retry: (options.max_tries != 1).then_some(Retry {
            max_tries: options.max_tries,
            max_time_s: limit_s,
        }),
        on_connection_loss: if options.has(Switch::Reconnect) {
            OnConnectionLoss::Reconnect
        } else {
            OnConnectionLoss::Abort
        },
        reconnect: Reconnect::default(),
        transaction_log: options.has(Switch::Log).then(|| TransactionLog {
            rate: 1.0,
            file: String::new(),
        }),
        history: false,
        variables,
        transaction_types: options.scripts.iter().enumerate().map(kind).collect(),
        session_settings: Vec::new(),
        output_dir: PathBuf::new(),
    }
}

/// Compile the scripts; the first problem is told, as pgbench stops at it.
fn compile(plan: &Plan, options: &Options, voice: &Voice) -> Result<ScriptLanguage, Stop> {
    ScriptLanguage::lenient(plan).map_err(|problems| {
        if let Some(problem) = problems.first() {
            let script = options
                .scripts
                .iter()
                .find(|script| script.description == problem.source);
            let text = script.map_or("", |script| script.text.as_str());
            voice.error(&script_errors::message(problem, text));
        }
        Stop::Failed
    })
}

fn open_log(
    options: &Options,
    language: &ScriptLanguage,
    voice: &Voice,
) -> Result<Option<Log>, Stop> {
    if !options.has(Switch::Log) {
        return Ok(None);
    }
    match Log::create(options, std::process::id(), &language.sampling()) {
        Ok(log) => Ok(Some(log)),
        Err(message) => {
            voice.error(&message);
            Err(Stop::Failed)
        }
    }
}

fn rules(options: &Options, witness: Arc<Teller>) -> Rules {
    Rules {
        sessions: if options.has(Switch::Connect) {
            SessionUse::PerTransaction
        } else {
            SessionUse::Kept
        },
        after_error: if options.has(Switch::ContinueOnError) {
            AfterError::FailTransaction
        } else {
            AfterError::EndClient
        },
        after_abort: if options.has(Switch::ExitOnAbort) {
            AfterAbort::AllEnd
        } else {
            AfterAbort::OthersGoOn
        },
        command_times: if options.has(Switch::ReportPerCommand) || options.json.is_some() {
            CommandTimes::Kept
        } else {
            CommandTimes::Unwanted
        },
        witness,
    }
}

/// With a connection for each transaction the first ones count, too.
fn begin(options: &Options) -> Begin {
    if options.has(Switch::Connect) || options.has(Switch::TimeIncludesConnect) {
        Begin::FirstAttempt
    } else {
        Begin::AllConnected
    }
}

/// How long it took to connect, and to run.
fn times(options: &Options, summary: &Summary) -> RunTimes {
    let timeline = &summary.timeline;
    let us = |begin_ns: Option<u64>, end_ns: Option<u64>| {
        let (begin_ns, end_ns) = (begin_ns.unwrap_or(0), end_ns.unwrap_or(0));
        end_ns.saturating_sub(begin_ns) as f64 / 1e3
    };
    let begin_ns = match begin(options) {
        Begin::AllConnected => timeline.connect_end_ns,
        Begin::FirstAttempt => Some(timeline.connect_begin_ns),
    };
    let connection_us = if options.has(Switch::Connect) {
        let times = summary.connect_time.unwrap_or_default();
        times.sum_ns as f64 / 1e3
    } else {
        us(Some(timeline.connect_begin_ns), timeline.connect_end_ns)
    };
    RunTimes {
        bench_us: us(begin_ns, timeline.drain_end_ns),
        connection_us,
    }
}
