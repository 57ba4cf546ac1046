//! The scripts of a plan, compiled: what every client's program and every worker's mix are made
//! from.

use std::sync::Arc;

use super::command::{Action, Command, Meta};
use super::parser::{Strictness, parse_script};
use super::problem::Fault;
use super::program::ScriptProgram;
use super::variables::{Names, Variables};
use crate::blocks::block_of;
use crate::plan::{Plan, Protocol};
use crate::program::{
    Language, Mix, Program, ScriptProblem, StatementDefinition, StatementId, StatementKind,
};
use crate::random::Generator;
use crate::random::seeding::{DefaultSeed, Generators};

/// Most variables one statement may mention in the extended and prepared protocols, as in pgbench.
const PARAMETERS_MAX: usize = 255;

/// One script, and the statement its first command is.
#[derive(Debug)]
pub struct Script {
    /// All commands.
    pub commands: Vec<Command>,
    /// Statement of the first; the others follow.
    pub first: StatementId,
}

/// What all clients share.
#[derive(Debug)]
pub struct Compiled {
    /// One for each transaction type.
    pub scripts: Vec<Script>,
    /// Simple, extended or prepared.
    pub protocol: Protocol,
    /// Every command of every script.
    pub statements: Vec<StatementDefinition>,
}

/// pgbench's language, for one plan.
#[derive(Debug)]
pub struct ScriptLanguage {
    compiled: Arc<Compiled>,
    generators: Generators,
    weights: Arc<[u32]>,
    variables: Variables,
}

impl ScriptLanguage {
    /// Compile the scripts of a plan.
    ///
    /// # Errors
    /// Every problem of every script.
    pub fn new(plan: &Plan) -> Result<Self, Vec<ScriptProblem>> {
        Self::compile(plan, Strictness::AllFaults)
    }

    /// Compile them as pgbench does: some faults are noticed only by the clients that come to them.
    ///
    /// # Errors
    /// Every problem of every script.
    pub fn lenient(plan: &Plan) -> Result<Self, Vec<ScriptProblem>> {
        Self::compile(plan, Strictness::AsPgbench)
    }

    fn compile(plan: &Plan, strictness: Strictness) -> Result<Self, Vec<ScriptProblem>> {
        let mut names = Names::default();
        let mut problems = Vec::new();
        let mut scripts = Vec::new();
        let mut statements = Vec::new();
        for (index, kind) in plan.transaction_types.iter().enumerate() {
            let parsed = parse_script(&kind.source, &kind.script, &mut names, strictness).and_then(
                |commands| {
                    let commands = (commands, strictness);
                    check_protocol(plan.protocol, commands, &kind.source, &kind.script)
                },
            );
            match parsed {
                Ok(commands) => {
                    let first = StatementId(statements.len() as u32);
                    statements.extend(definitions(index, &commands, plan.protocol));
                    scripts.push(Script { commands, first });
                }
                Err(found) => problems.extend(found),
            }
        }
        problems.extend(plan_variable_problems(plan));
        if !problems.is_empty() {
            return Err(problems);
        }
        let defined = plan.variables.contains_key("default_seed");
        let default_seed = if defined {
            DefaultSeed::Defined
        } else {
            DefaultSeed::Drawn
        };
        let generators = Generators::new(plan.seed, plan.clients, plan.lane_count(), default_seed);
        let variables = starting_variables(plan, names, &generators);
        Ok(Self {
            compiled: Arc::new(Compiled {
                scripts,
                protocol: plan.protocol,
                statements,
            }),
            generators,
            weights: plan
                .transaction_types
                .iter()
                .map(|kind| kind.weight)
                .collect(),
            variables,
        })
    }
}

impl ScriptLanguage {
    /// The generators that decide which transactions go to a sampled log, by lane.
    pub fn sampling(&self) -> Vec<Generator> {
        let threads = self.generators.threads.iter();
        threads.map(|thread| thread.sampling).collect()
    }
}

impl Language for ScriptLanguage {
    fn statements(&self) -> &[StatementDefinition] {
        &self.compiled.statements
    }

    fn program(&self, client: usize) -> Box<dyn Program> {
        let mut variables = self.variables.clone();
        // The plan's variables win over automatic ones; this is the only one that differs between
        // clients.
        if let Some(slot) = variables.names().find("client_id")
            && !variables.is_defined(slot)
        {
            variables.set_text(slot, client.to_string().as_bytes());
        }
        Box::new(ScriptProgram::new(
            self.compiled.clone(),
            variables,
            self.generators.clients[client],
        ))
    }

    fn mix(&self) -> Box<dyn Mix> {
        let total = self.weights.iter().map(|weight| i64::from(*weight)).sum();
        let lanes = self.generators.threads.iter();
        Box::new(WeightedMix {
            weights: self.weights.clone(),
            total,
            clients: self.generators.clients.len(),
            lanes: lanes.map(|lane| lane.choice).collect(),
        })
    }

    fn arrival_draws(&self, worker: usize) -> Box<dyn FnMut() -> f64> {
        let mut generator = self.generators.threads[worker].schedule;
        Box::new(move || generator.unit())
    }
}

/// pgbench's choice: one draw from 0…total-1, no draw when there is nothing to choose.
#[derive(Debug)]
struct WeightedMix {
    weights: Arc<[u32]>,
    total: i64,
    clients: usize,
    /// By lane. Every worker has all of them, and uses those of its own clients.
    lanes: Vec<Generator>,
}

impl Mix for WeightedMix {
    fn choose(&mut self, client: usize) -> usize {
        if self.weights.len() == 1 {
            return 0;
        }
        let lane = block_of(self.clients, self.lanes.len(), client);
        let mut left = self.lanes[lane].between(0, self.total - 1);
        for (index, weight) in self.weights.iter().enumerate() {
            left -= i64::from(*weight);
            if left < 0 {
                return index;
            }
        }
        self.weights.len() - 1
    }
}

/// What the protocol forbids, which is known before the start.
fn check_protocol(
    protocol: Protocol,
    (commands, strictness): (Vec<Command>, Strictness),
    file: &str,
    source: &str,
) -> Result<Vec<Command>, Vec<ScriptProblem>> {
    let problem = |command: &Command| match &command.action {
        Action::Sql(sql)
            if protocol != Protocol::Simple && sql.template.slots().len() > PARAMETERS_MAX =>
        {
            Some(format!(
                "statement has too many arguments (maximum is {PARAMETERS_MAX})"
            ))
        }
        Action::Meta(Meta::StartPipeline)
            if protocol == Protocol::Simple && strictness == Strictness::AllFaults =>
        {
            Some("cannot use pipeline mode with the simple query protocol".to_owned())
        }
        _ => None,
    };
    let problems: Vec<_> = commands
        .iter()
        .filter_map(|command| {
            problem(command).map(|message| Fault::new(command.offset, message).locate(file, source))
        })
        .collect();
    if problems.is_empty() {
        Ok(commands)
    } else {
        Err(problems)
    }
}

/// Values that no message of the protocol can carry.
fn plan_variable_problems(plan: &Plan) -> impl Iterator<Item = ScriptProblem> + '_ {
    plan.variables
        .iter()
        .filter(|(_, value)| value.contains('\0'))
        .map(|(name, _)| ScriptProblem {
            source: "plan".into(),
            line: 1,
            column: 1,
            message: format!("variable {name}: a zero byte cannot stand in a value"),
            source_line: String::new(),
        })
}

/// The table of statements of one script.
fn definitions(
    transaction_type: usize,
    commands: &[Command],
    protocol: Protocol,
) -> impl Iterator<Item = StatementDefinition> + '_ {
    commands.iter().zip(1u32..).map(move |(command, number)| {
        let mut definition = StatementDefinition {
            transaction_type,
            number,
            kind: StatementKind::Meta,
            label: command.label.clone(),
            sql: String::new(),
            parameters: 0,
            wants_rows: false,
        };
        if let Action::Sql(sql) = &command.action {
            definition.kind = StatementKind::Sql;
            definition.wants_rows = sql.capture.is_some();
            if protocol == Protocol::Simple {
                definition.sql = sql.template.written();
            } else {
                definition.sql = sql.template.numbered();
                definition.parameters = sql.template.slots().len() as u16;
            }
        }
        definition
    })
}

/// What every client begins with: the plan's variables, then the automatic ones that it does not
/// define.
fn starting_variables(plan: &Plan, names: Names, generators: &Generators) -> Variables {
    let mut variables = Variables::new(Arc::new(names));
    variables.set_text_by_name("scale", b"1");
    variables.set_text_by_name("random_seed", (plan.seed as i64).to_string().as_bytes());
    if let Some(seed) = generators.default_seed {
        variables.set_text_by_name("default_seed", seed.to_string().as_bytes());
    }
    for (name, value) in &plan.variables {
        variables.set_text_by_name(name, value.as_bytes());
    }
    variables
}
