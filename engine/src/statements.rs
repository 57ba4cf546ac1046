//! What every client must know of the plan's statements: definitions, effects, failure columns. Shared, never changed.

use std::sync::Arc;

use crate::outcome::Effect;
use crate::plan::{Failure, Plan};
use crate::program::{StatementDefinition, StatementId};
use crate::recorder::Shape;
use crate::wire::outgoing::Encodings;

/// See the module.
#[derive(Debug)]
pub struct Statements {
    definitions: Vec<StatementDefinition>,
    effects: Vec<Effect>,
    /// By transaction type.
    failures: Vec<Option<Failure>>,
    encodings: Arc<Encodings>,
    shape: Shape,
}

impl Statements {
    /// Of a plan whose scripts define these.
    pub fn new(plan: &Plan, definitions: &[StatementDefinition]) -> Self {
        let failures: Vec<_> = plan
            .transaction_types
            .iter()
            .map(|kind| kind.failure.clone())
            .collect();
        // A failure column must be looked for, so the columns of every statement of such a type must be told.
        let told = |d: &StatementDefinition| d.wants_rows || failures[d.transaction_type].is_some();
        let rows_wanted: Vec<_> = definitions.iter().map(told).collect();
        Self {
            encodings: Arc::new(Encodings::new(plan.protocol, definitions, &rows_wanted)),
            effects: definitions.iter().map(Effect::of).collect(),
            definitions: definitions.to_vec(),
            shape: Shape {
                transaction_types: failures.len(),
                statements: definitions.len(),
                open_loop: plan.load.is_open(),
                response_time_limit_ns: plan
                    .response_time_limit_s
                    .map_or(u64::MAX, crate::clock::seconds_to_ns),
            },
            failures,
        }
    }

    /// Constant bytes of all statements.
    pub fn encodings(&self) -> Arc<Encodings> {
        self.encodings.clone()
    }

    /// How many of what there is to record.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// All of them, in order.
    pub fn definitions(&self) -> &[StatementDefinition] {
        &self.definitions
    }

    /// One of them.
    pub fn definition(&self, statement: StatementId) -> &StatementDefinition {
        &self.definitions[statement.index()]
    }

    /// What it may do to its transaction.
    pub fn effect(&self, statement: StatementId) -> Effect {
        self.effects[statement.index()]
    }

    /// How a row of it tells that the work was not done.
    pub fn failure(&self, statement: StatementId) -> Option<&Failure> {
        self.failures[self.definition(statement).transaction_type].as_ref()
    }

    /// Whether any transaction type has a failure column.
    pub fn any_failure(&self) -> bool {
        self.failures.iter().any(Option::is_some)
    }
}
