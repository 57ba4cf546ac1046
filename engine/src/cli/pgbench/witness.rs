//! What happens to clients, in pgbench's words on the standard error stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::options::{Options, Switch};
use super::voice::Voice;
use crate::client::rules::{Happening, Spot, Tried, Witness};
use crate::plan::Protocol;
use crate::program::{Abort, StatementDefinition, StatementKind};
use crate::wire::message::ServerError;
use crate::wire::wording::{Told, wording};

/// See the module.
pub struct Teller {
    voice: Voice,
    steps: bool,
    verbose: bool,
    max_tries: u32,
    latency_limit: Option<Duration>,
    protocol: Protocol,
    statements: Vec<StatementDefinition>,
    descriptions: Vec<String>,
    aborted: AtomicUsize,
}

impl Teller {
    /// Of a run.
    pub fn new(options: &Options, statements: &[StatementDefinition], voice: &Voice) -> Self {
        let scripts = options.scripts.iter();
        Self {
            voice: voice.clone(),
            steps: options.has(Switch::Debug),
            verbose: options.has(Switch::VerboseErrors) || options.has(Switch::Debug),
            max_tries: options.max_tries,
            latency_limit: options.latency_limit,
            protocol: options.protocol,
            statements: statements.to_vec(),
            descriptions: scripts.map(|script| script.description.clone()).collect(),
            aborted: AtomicUsize::new(0),
        }
    }

    /// Clients that ended early.
    pub fn aborted(&self) -> usize {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Number of a command within its script, from 0.
    fn command(&self, spot: Spot) -> u32 {
        let definition = self.statements.get(spot.statement.index());
        definition.map_or(0, |definition| definition.number.saturating_sub(1))
    }

    /// What pgbench calls a prepared statement: its number among the SQL commands of all scripts.
    fn prepared_name(&self, spot: Spot) -> String {
        let before = self.statements.iter().take(spot.statement.index());
        let number = before
            .filter(|definition| definition.kind == StatementKind::Sql)
            .count();
        format!("P_{number}")
    }

    fn abort(&self, message: &str) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
        self.voice.error(message);
    }

    fn aborted_in(&self, spot: Spot, message: &str) {
        let Spot {
            client,
            script,
            results,
            ..
        } = spot;
        let command = self.command(spot);
        self.abort(&format!(
            "client {client} script {script} aborted in command {command} query {results}: {message}"
        ));
    }

    fn command_failed(&self, spot: Spot, name: &str, message: &str) {
        let Spot { client, script, .. } = spot;
        let command = self.command(spot);
        self.abort(&format!(
            "client {client} aborted in command {command} ({name}) of script {script}; {message}"
        ));
    }

    fn ended_by_parse(&self, spot: Spot, error: &ServerError<'_>, sql: &str) {
        self.voice.error(&wording(error, Some(sql), Told::Error));
        let name = self.prepared_name(spot);
        let message = format!("ERROR:  prepared statement \"{name}\" does not exist");
        self.aborted_in(spot, &message);
    }

    fn cannot_go_on(&self, spot: Spot, abort: &Abort) {
        let message = abort.message.as_str();
        let Some(definition) = self.statements.get(spot.statement.index()) else {
            return self.abort(message);
        };
        if message.starts_with("end of script") {
            return self.abort(&format!("client {} aborted: {message}", spot.client));
        }
        if definition.kind == StatementKind::Sql {
            return self.capture_failed(spot, message);
        }
        let name = definition.label.trim_start_matches('\\');
        let name = name.split_ascii_whitespace().next().unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            name @ ("startpipeline" | "syncpipeline" | "endpipeline") => {
                self.command_failed(spot, name, message);
            }
            name @ ("sleep" | "shell" | "setshell") => {
                self.voice.error(message);
                self.command_failed(spot, name, "execution of meta-command failed");
            }
            name => {
                self.voice.error(message);
                let assigned = message.starts_with("set: invalid variable name");
                let part = if assigned { "assignment" } else { "evaluation" };
                self.command_failed(spot, name, &format!("{part} of meta-command failed"));
            }
        }
    }

    /// `\gset` or `\aset`.
    fn capture_failed(&self, spot: Spot, message: &str) {
        if message.contains("pipeline mode") {
            let name = message.trim_start_matches('\\').split(' ').next();
            return self.command_failed(spot, name.unwrap_or_default(), message);
        }
        let Spot {
            client,
            script,
            results,
            ..
        } = spot;
        let query = results.saturating_sub(1);
        let place = format!(
            "client {client} script {script} command {} query {query}",
            self.command(spot)
        );
        let Some((_, name)) = message.split_once("invalid variable name: ") else {
            return self.abort(&format!("{place}: {message}"));
        };
        self.voice.error(message);
        let name = name.trim_matches('"');
        self.abort(&format!("{place}: error storing into variable {name}"));
    }

    fn tried(&self, spot: Spot, tried: Tried, what: &str) {
        if !self.verbose {
            return;
        }
        let Tried { tries, spent_ns } = tried;
        let most = match self.max_tries {
            0 => String::new(),
            most => format!("/{most}"),
        };
        let share = self.latency_limit.map_or(String::new(), |limit| {
            let percent = 100.0 * spent_ns as f64 / limit.as_nanos() as f64;
            format!(", {percent:.3}% of the maximum time of tries was used")
        });
        self.voice.info(&format!(
            "client {} {what} (try {tries}{most}{share})",
            spot.client
        ));
    }

    fn sending(&self, spot: Spot, text: Option<&[u8]>) {
        let definition = self.statements.get(spot.statement.index());
        let shown = match (text, self.protocol) {
            (Some(text), _) => String::from_utf8_lossy(text).into_owned(),
            (None, Protocol::Prepared) => self.prepared_name(spot),
            (None, _) => definition.map_or(String::new(), |definition| definition.sql.clone()),
        };
        let message = format!("client {} sending {shown}", spot.client);
        self.voice.debug(&message);
    }
}

/// A backslash command as `--debug` tells it: without its expression.
fn shown(label: &str) -> &str {
    let words = match label.split_ascii_whitespace().next() {
        Some("\\set") => 2,
        Some("\\if" | "\\elif") => 1,
        _ => return label,
    };
    let end = label
        .match_indices(' ')
        .map(|(at, _)| at)
        .nth(words - 1)
        .unwrap_or(label.len());
    &label[..end]
}

impl Witness for Teller {
    fn wants_steps(&self) -> bool {
        self.steps
    }

    fn saw(&self, spot: Spot, happening: Happening<'_>) {
        let Spot { client, script, .. } = spot;
        match happening {
            Happening::ScriptBegins => {
                let description = self.descriptions.get(script);
                let description = description.map_or("", String::as_str);
                self.voice
                    .debug(&format!("client {client} executing script \"{description}\""));
            }
            Happening::Sending(text) => self.sending(spot, text),
            Happening::Receiving => self.voice.debug(&format!("client {client} receiving")),
            Happening::Executed => {
                let definition = self.statements.get(spot.statement.index());
                let label = definition.map_or("", |definition| definition.label.as_str());
                let shown = shown(label);
                self.voice
                    .debug(&format!("client {client} executing {shown}"));
            }
            Happening::Failed(error, sql) => {
                if self.verbose {
                    let command = self.command(spot);
                    self.voice.info(&format!(
                        "client {client} got an error in command {command} (SQL) of script {script}; {}",
                        wording(error, sql, Told::Error)
                    ));
                }
            }
            Happening::Repeats(tried) => {
                self.tried(spot, tried, "repeats the transaction after the error");
            }
            Happening::GivesUp(tried) => self.tried(spot, tried, "ends the failed transaction"),
            Happening::EndedByError(error, sql) => {
                self.aborted_in(spot, &wording(error, sql, Told::Error));
            }
            Happening::EndedByParse(error, sql) => self.ended_by_parse(spot, error, sql),
            Happening::ConnectionLost(message) => self.aborted_in(spot, message),
            Happening::NotConnected(message) => {
                self.voice.error(message);
                self.abort(&format!("client {client} aborted while establishing connection"));
            }
            Happening::CannotGoOn(abort) => self.cannot_go_on(spot, abort),
            Happening::Copy => self.abort("COPY is not supported in pgbench, aborting"),
            Happening::BlockOpen => self.abort(&format!(
                "client {client} aborted: end of script reached without completing the last transaction"
            )),
            Happening::Notice(notice) => eprintln!("{}", wording(notice, None, Told::Notice)),
        }
    }
}
