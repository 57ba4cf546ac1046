//! `summary.json`: put together from what workers and writer found, and written so that it is whole or not there.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::Totals;
use crate::books::BooksTotal;
use crate::error_log::ErrorLog;
use crate::plan::Plan;
use crate::program::StatementKind;
use crate::results::{
    ClientResult, ClockAnchor, Counters, EngineFacts, Outcome, OwnCost, Phase, RESULT_VERSION,
    StatementResult, Summary, Timeline, TransactionTypeResult,
};
use crate::series::SeriesRecorder;
use crate::statements::Statements;
use crate::worker::{Cost, Sessions, WorkerReport};

/// Everything a summary is made of.
pub struct Findings<'a> {
    /// What was asked.
    pub plan: &'a Plan,
    /// Its statements.
    pub statements: &'a Statements,
    /// Which engine.
    pub engine: EngineFacts,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was not completed.
    pub message: Option<String>,
    /// Ties the clocks.
    pub clock: ClockAnchor,
    /// When what was reached.
    pub timeline: Timeline,
    /// How many clients had a session at the start.
    pub connected: usize,
    /// What was learned of them.
    pub sessions: Sessions,
    /// From the writer.
    pub totals: Totals,
    /// From the workers.
    pub reports: Vec<WorkerReport>,
}

/// Put the summary together. Where counters that must agree do not, the outcome is `aborted` and says so.
pub fn summarize(mut findings: Findings<'_>) -> Summary {
    let problem = disagreement(&findings).or_else(|| gap_in_history(&findings));
    if let Some(problem) = problem {
        findings.outcome = Outcome::Aborted;
        findings.message = Some(problem);
    }
    let Findings {
        plan,
        statements,
        totals,
        ..
    } = &findings;
    let [warmup, measurement] = &totals.recordings;
    let mut errors = ErrorLog::default();
    let mut clients = vec![ClientResult::default(); plan.clients];
    for report in &findings.reports {
        errors.merge(report.total.errors.clone());
        let end = report.first_client + report.total.clients.len();
        clients[report.first_client..end].copy_from_slice(&report.total.clients);
    }
    let named = |recording: &crate::recorder::Recording| -> BTreeMap<String, Counters> {
        let names = plan.transaction_types.iter().map(|kind| kind.name.clone());
        names
            .zip(recording.types.iter().map(|of_type| of_type.counters))
            .collect()
    };
    let totals_of_workers = || findings.reports.iter().map(|report| &report.total);
    let outages = totals_of_workers()
        .flat_map(|total| total.outages.iter().copied())
        .collect();
    let added = |read: &dyn Fn(&BooksTotal) -> u64| totals_of_workers().map(read).sum();
    let connect_times = findings.sessions.connect_times.summarize();
    let first = findings.sessions.first.clone().unwrap_or_default();
    Summary {
        version: RESULT_VERSION,
        engine: findings.engine.clone(),
        outcome: findings.outcome,
        message: findings.message.clone(),
        clock: findings.clock,
        timeline: findings.timeline,
        clients_asked: plan.clients,
        clients_connected: findings.connected,
        connect_time: (connect_times.count > 0).then_some(connect_times),
        server_version: first.learned.server_version,
        session_settings: first.settings.into_iter().collect(),
        warmup: warmup.counters(),
        warmup_by_type: named(warmup),
        warmup_server_commits: warmup.server_commits(),
        measurement: measurement.counters(),
        server_commits: measurement.server_commits(),
        times: measurement.times(statements.shape()),
        transaction_types: type_results(plan, measurement),
        statements: statement_results(plan, statements, measurement),
        clients,
        errors: errors.results(plan, statements),
        outages: crate::outages::merged(outages),
        notices: added(&|total| total.notices),
        statement_timeouts: added(&|total| total.statement_timeouts),
        transaction_log_dropped: added(&|total| total.dropped.transactions),
        own_cost: own_cost(&findings.reports),
    }
}

/// The lines written, their totals and what the workers counted for themselves must be the same.
fn disagreement(findings: &Findings<'_>) -> Option<String> {
    for phase in Phase::ALL {
        let mut counted = Counters::default();
        findings
            .reports
            .iter()
            .for_each(|report| counted += report.total.tallies[phase.index()]);
        let total = findings.totals.recordings[phase.index()].counters();
        let lines = findings.totals.lines[phase.index()];
        if counted != total || (lines != total && findings.totals.failed.is_none()) {
            return Some(format!(
                "internal error: the counters of the {phase:?} do not agree: counted {counted:?}, total {total:?}, lines {lines:?}"
            ));
        }
    }
    let committed: u64 = findings
        .reports
        .iter()
        .flat_map(|report| &report.total.clients)
        .map(|c| c.committed)
        .sum();
    let total = findings.totals.recordings[Phase::Measurement.index()]
        .counters()
        .committed;
    (committed != total)
        .then(|| format!("internal error: clients committed {committed}, the total is {total}"))
}

/// A history with a gap must not be taken for a whole one.
fn gap_in_history(findings: &Findings<'_>) -> Option<String> {
    let reports = findings.reports.iter();
    let dropped: u64 = reports.map(|report| report.total.dropped.history).sum();
    (dropped > 0).then(|| {
        format!("history.jsonl lacks {dropped} lines: it could not be written as fast as it grew")
    })
}

fn type_results(
    plan: &Plan,
    measurement: &crate::recorder::Recording,
) -> Vec<TransactionTypeResult> {
    let result = |(kind, of_type): (
        &crate::plan::TransactionType,
        &crate::recorder::TypeRecording,
    )| {
        TransactionTypeResult {
            name: kind.name.clone(),
            weight: kind.weight,
            counters: of_type.counters,
            server_commits: of_type.server_commits,
            times: of_type.times.summarize(),
        }
    };
    plan.transaction_types
        .iter()
        .zip(&measurement.types)
        .map(result)
        .collect()
}

fn statement_results(
    plan: &Plan,
    statements: &Statements,
    measurement: &crate::recorder::Recording,
) -> Vec<StatementResult> {
    let result = |(definition, recorded): (
        &crate::program::StatementDefinition,
        &crate::recorder::StatementRecording,
    )| {
        StatementResult {
            transaction_type: plan.transaction_types[definition.transaction_type]
                .name
                .clone(),
            number: definition.number,
            kind: match definition.kind {
                StatementKind::Sql => "sql",
                StatementKind::Meta => "meta",
            },
            text: definition.label.clone(),
            time: recorded.time.summarize(),
            rows: recorded.rows,
            errors: recorded.errors,
            copy_bytes: recorded.copy_bytes,
        }
    };
    statements
        .definitions()
        .iter()
        .zip(&measurement.statements)
        .map(result)
        .collect()
}

/// The process's CPU is read by every worker: the earliest begin and the latest end are taken. Activity is each
/// worker's own.
fn own_cost(reports: &[WorkerReport]) -> Option<OwnCost> {
    let both = |report: &WorkerReport| -> Option<(Cost, Cost)> {
        Some((report.cost[0]?, report.cost[1]?))
    };
    let costs: Vec<_> = reports.iter().filter_map(both).collect();
    let begin = costs
        .iter()
        .map(|(begin, _)| begin)
        .min_by_key(|cost| cost.at_ns)?;
    let end = costs
        .iter()
        .map(|(_, end)| end)
        .max_by_key(|cost| cost.at_ns)?;
    let spent = |read: &dyn Fn(&Cost) -> u64| -> u64 {
        costs
            .iter()
            .map(|(begin, end)| read(end) - read(begin))
            .sum()
    };
    let delays = costs
        .iter()
        .map(|(begin, end)| Some(end.run_delay_ns? - begin.run_delay_ns?));
    let mut schedule_error = SeriesRecorder::default();
    reports
        .iter()
        .for_each(|report| schedule_error.merge(&report.schedule_error));
    let classes = 0..begin.activity.batch_sizes.len();
    Some(OwnCost {
        cpu_user_ns: end.usage.user_ns.saturating_sub(begin.usage.user_ns),
        cpu_sys_ns: end.usage.sys_ns.saturating_sub(begin.usage.sys_ns),
        max_rss_bytes: end.usage.max_rss_bytes,
        loops: spent(&|cost| cost.activity.loops),
        events: spent(&|cost| cost.activity.events),
        run_delay_ns: delays.sum(),
        batch_sizes: classes
            .map(|class| spent(&|cost| cost.activity.batch_sizes[class]))
            .collect(),
        schedule_error: (!schedule_error.is_empty()).then(|| schedule_error.summarize()),
    })
}

/// Write `summary.json`: to a temporary name first, so that a reader never sees half of it.
pub fn write_summary(folder: &Path, summary: &Summary) -> io::Result<()> {
    let temporary = folder.join("summary.json.new");
    let mut text = serde_json::to_vec_pretty(summary)?;
    text.push(b'\n');
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(&text)?;
    file.sync_all()?;
    std::fs::rename(temporary, folder.join("summary.json"))
}
