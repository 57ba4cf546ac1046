//! One client's way through its scripts: evaluates, substitutes, encodes; allocates nothing in
//! steady state.

use std::sync::Arc;

use super::capture::CaptureState;
use super::command::{Action, Amount, Command, Meta, Sql, Unit};
use super::evaluation::{Place, Scope};
use super::expression::Expression;
use super::language::{Compiled, Script};
use super::shell;
use super::values::Value;
use super::variables::{Slot, Variables};
use crate::plan::Protocol;
use crate::program::{Abort, Completion, Program, StatementId, Step};
use crate::random::Generator;
use crate::wire::message::{Columns, Row};
use crate::wire::outgoing::Outgoing;

/// A client's scripts, and where it is in them.
#[derive(Debug)]
pub struct ScriptProgram {
    /// Shared by all clients, so that not even its count of references is touched while they run.
    compiled: Arc<Compiled>,
    walk: Walk,
}

/// A client's way: its variables, its generator, its place.
#[derive(Debug)]
struct Walk {
    variables: Variables,
    generator: Generator,
    /// The generator as the transaction found it: a retry draws the same values.
    generator_at_begin: Generator,
    script: usize,
    position: usize,
    arrival: Arrival,
    pipeline: Pipeline,
    /// For each statement, made at its first rows.
    captures: Vec<CaptureState>,
    /// The statement whose rows become variables before the next command.
    capturing: Option<usize>,
    scratch: Vec<u8>,
}

/// How a command of a conditional was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// From the command before it: a branch ends here.
    Onwards,
    /// From a condition that was false: its own branch is next.
    Jump,
}

/// Whether a pipeline is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipeline {
    Closed,
    Open,
}

impl ScriptProgram {
    /// A client's program before its first transaction.
    pub fn new(compiled: Arc<Compiled>, variables: Variables, generator: Generator) -> Self {
        let wants_rows = compiled
            .statements
            .iter()
            .any(|statement| statement.wants_rows);
        let states = if wants_rows {
            compiled.statements.len()
        } else {
            0
        };
        Self {
            walk: Walk {
                captures: (0..states).map(|_| CaptureState::default()).collect(),
                variables,
                generator,
                generator_at_begin: generator,
                script: 0,
                position: 0,
                arrival: Arrival::Onwards,
                pipeline: Pipeline::Closed,
                capturing: None,
                scratch: Vec::new(),
            },
            compiled,
        }
    }
}

impl Walk {
    fn restart(&mut self) {
        self.position = 0;
        self.arrival = Arrival::Onwards;
        self.pipeline = Pipeline::Closed;
        self.capturing = None;
    }

    /// The capture of a statement, if it has one.
    fn captured_sql(compiled: &Compiled, statement: StatementId) -> Option<&Sql> {
        let definition = compiled.statements.get(statement.index())?;
        let commands = &compiled.scripts[definition.transaction_type].commands;
        match &commands[definition.number as usize - 1].action {
            Action::Sql(sql) if sql.capture.is_some() => Some(sql),
            _ => None,
        }
    }

    /// Assign what the last statement captured.
    fn end_capture(&mut self, compiled: &Compiled) -> Result<(), String> {
        let Some(index) = self.capturing.take() else {
            return Ok(());
        };
        let sql = Self::captured_sql(compiled, StatementId(index as u32));
        match sql.and_then(|sql| sql.capture.as_ref()) {
            Some(capture) => self.captures[index].end(capture.kind, &mut self.variables),
            None => Ok(()),
        }
    }

    /// The next command.
    fn next(
        &mut self,
        compiled: &Compiled,
        outgoing: &mut Outgoing,
    ) -> Result<Step, (StatementId, String)> {
        let Script { commands, first } = &compiled.scripts[self.script];
        let last_index = commands.len().saturating_sub(1);
        let current = |position: usize| StatementId(first.0 + position.min(last_index) as u32);
        if self.capturing.is_some() {
            let statement = current(self.position.saturating_sub(1));
            self.end_capture(compiled)
                .map_err(|message| (statement, message))?;
        }
        let statement = current(self.position);
        let step = match commands.get(self.position) {
            Some(command) => self.command(compiled, command, statement, outgoing),
            None if self.pipeline == Pipeline::Open => {
                Err("end of script reached with pipeline open".to_owned())
            }
            None => Ok(Step::Done),
        };
        step.map_err(|message| (statement, message))
    }

    fn command(
        &mut self,
        compiled: &Compiled,
        command: &Command,
        statement: StatementId,
        outgoing: &mut Outgoing,
    ) -> Result<Step, String> {
        match &command.action {
            Action::Sql(sql) => self.sql(compiled.protocol, sql, statement, outgoing),
            Action::Meta(meta) => self.meta(compiled, meta, statement, outgoing),
        }
    }

    fn sql(
        &mut self,
        protocol: Protocol,
        sql: &Sql,
        statement: StatementId,
        outgoing: &mut Outgoing,
    ) -> Result<Step, String> {
        if let Some(capture) = &sql.capture {
            if self.pipeline == Pipeline::Open {
                let name = capture.kind.name();
                return Err(format!("\\{name} is not allowed in pipeline mode"));
            }
            self.captures[statement.index()].begin();
            self.capturing = Some(statement.index());
        }
        if protocol == Protocol::Simple {
            self.scratch.clear();
            sql.template.substitute(&self.variables, &mut self.scratch);
            let mut query = outgoing.query(statement);
            query.text(&self.scratch);
            query.end();
        } else {
            let mut bind = outgoing.bind(statement);
            for slot in sql.template.slots() {
                if self.variables.is_null(slot) {
                    bind.null();
                } else {
                    self.scratch.clear();
                    self.variables.append_text(slot, &mut self.scratch);
                    bind.text(&self.scratch);
                }
            }
            bind.end();
        }
        self.position += 1;
        Ok(match self.pipeline {
            Pipeline::Open => Step::Queued { statement },
            Pipeline::Closed => Step::Request { statement },
        })
    }

    fn meta(
        &mut self,
        compiled: &Compiled,
        meta: &Meta,
        statement: StatementId,
        outgoing: &mut Outgoing,
    ) -> Result<Step, String> {
        let mut target = self.position + 1;
        let arrival = std::mem::replace(&mut self.arrival, Arrival::Onwards);
        match meta {
            Meta::Set(slot, expression) => {
                let value = self.evaluate(compiled, expression, statement)?;
                self.variables.set(*slot, value);
            }
            Meta::If(condition, otherwise) => {
                if !self.evaluate(compiled, condition, statement)?.is_true() {
                    target = *otherwise;
                    self.arrival = Arrival::Jump;
                }
            }
            Meta::Elif(_, _, end) | Meta::Else(end) if arrival == Arrival::Onwards => target = *end,
            Meta::Elif(condition, otherwise, _) => {
                if !self.evaluate(compiled, condition, statement)?.is_true() {
                    target = *otherwise;
                    self.arrival = Arrival::Jump;
                }
            }
            Meta::Else(_) | Meta::Endif => {}
            Meta::SetShell(slot, words) => {
                let number = shell::integer(words, &self.variables)?;
                self.variables.set(*slot, Value::Integer(number));
            }
            Meta::Faulty(message) => return Err(message.to_string()),
            Meta::Shell(words) => shell::run(words, &self.variables)?,
            Meta::Sleep(amount, unit) => {
                let duration_ns = self.sleep_ns(*amount, *unit)?;
                self.position = target;
                return Ok(Step::Sleep {
                    statement,
                    duration_ns,
                });
            }
            Meta::StartPipeline | Meta::SyncPipeline | Meta::EndPipeline => {
                return self.pipeline(compiled.protocol, meta, statement, outgoing);
            }
        }
        self.position = target;
        Ok(Step::Local { statement })
    }

    fn pipeline(
        &mut self,
        protocol: Protocol,
        meta: &Meta,
        statement: StatementId,
        outgoing: &mut Outgoing,
    ) -> Result<Step, String> {
        let opens = matches!(meta, Meta::StartPipeline);
        if opens && protocol == Protocol::Simple {
            return Err("cannot use pipeline mode with the simple query protocol".to_owned());
        }
        match (self.pipeline, opens) {
            (Pipeline::Open, true) => return Err("already in pipeline mode".to_owned()),
            (Pipeline::Closed, false) => return Err("not in pipeline mode".to_owned()),
            _ => {}
        }
        self.position += 1;
        match meta {
            Meta::EndPipeline => {
                self.pipeline = Pipeline::Closed;
                return Ok(Step::Flush { statement });
            }
            Meta::SyncPipeline => outgoing.sync(),
            _ => self.pipeline = Pipeline::Open,
        }
        Ok(Step::Local { statement })
    }

    fn evaluate(
        &mut self,
        compiled: &Compiled,
        expression: &Expression,
        statement: StatementId,
    ) -> Result<Value, String> {
        let first = compiled.scripts[self.script].first;
        let place = Place {
            script: self.script,
            command: statement.0 - first.0 + 1,
        };
        let mut scope = Scope {
            variables: &mut self.variables,
            generator: &mut self.generator,
            place,
        };
        scope
            .evaluate(expression)
            .map_err(|error| error.to_string())
    }

    fn sleep_ns(&mut self, amount: Amount, unit: Unit) -> Result<u64, String> {
        let amount = match amount {
            Amount::Constant(amount) => amount,
            Amount::Variable(slot) => self.sleep_amount(slot)?,
        };
        Ok(unit.to_ns(amount))
    }

    /// A variable as a whole number; doubles are cut.
    fn sleep_amount(&mut self, slot: Slot) -> Result<i64, String> {
        match self
            .variables
            .value(slot)
            .map_err(|error| format!("sleep: {error}"))?
        {
            Value::Integer(amount) => Ok(amount),
            Value::Double(amount) if amount.is_finite() => Ok(amount as i64),
            _ => {
                let name = self.variables.names().name(slot);
                Err(format!("\\sleep: variable \"{name}\" is no number"))
            }
        }
    }
}

impl Program for ScriptProgram {
    fn begin(&mut self, transaction_type: usize) {
        self.walk.script = transaction_type;
        self.walk.generator_at_begin = self.walk.generator;
        self.walk.restart();
    }

    fn next(&mut self, outgoing: &mut Outgoing) -> Step {
        self.walk
            .next(&self.compiled, outgoing)
            .unwrap_or_else(|(statement, message)| {
                Step::Abort(Box::new(Abort { statement, message }))
            })
    }

    fn columns(&mut self, statement: StatementId, columns: &Columns<'_>) {
        let sql = Walk::captured_sql(&self.compiled, statement);
        if let Some(capture) = sql.and_then(|sql| sql.capture.as_ref()) {
            let Walk {
                captures,
                variables,
                ..
            } = &mut self.walk;
            captures[statement.index()].columns(capture, columns, variables);
        }
    }

    fn row(&mut self, statement: StatementId, row: &Row<'_>) {
        if let Some(state) = self.walk.captures.get_mut(statement.index()) {
            state.row(row);
        }
    }

    fn complete(&mut self, completion: Completion) {
        let index = completion.statement.index();
        if !completion.succeeded || self.walk.capturing != Some(index) {
            return;
        }
        let sql = Walk::captured_sql(&self.compiled, completion.statement);
        if let Some(capture) = sql.and_then(|sql| sql.capture.as_ref()) {
            self.walk.captures[index].complete(capture.kind, &mut self.walk.variables);
        }
    }

    fn sent_text(&self) -> &[u8] {
        &self.walk.scratch
    }

    fn rewind(&mut self) {
        self.walk.generator = self.walk.generator_at_begin;
        self.walk.restart();
    }
}
