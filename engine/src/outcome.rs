//! What became of a transaction: SQLSTATE → class, and which messages could have committed something.

use crate::program::StatementDefinition;
use crate::results::Counters;

/// Why a transaction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// 40001: could not be serialized.
    Serialization,
    /// 40P01: chosen as the victim of a deadlock.
    Deadlock,
    /// Any other reason.
    Other,
    /// The connection or the server went away.
    Connection,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// The script ended and every message was acknowledged.
    Committed,
    /// It did not happen, or not as a whole.
    Failed(FailureClass),
    /// A message that could commit was sent, and no answer came.
    Unknown,
    /// Cut off by the drain deadline or by a second signal.
    InFlightAtEnd,
}

impl FailureClass {
    /// The class of an SQLSTATE, as the glossary defines it.
    pub fn of_sqlstate(sqlstate: &[u8]) -> Self {
        match sqlstate {
            b"40001" => Self::Serialization,
            b"40P01" => Self::Deadlock,
            b"57P01" | b"57P02" | b"57P03" => Self::Connection,
            _ if sqlstate.starts_with(b"08") => Self::Connection,
            _ => Self::Other,
        }
    }
}

impl TransactionOutcome {
    /// Count one transaction that ended so; the partition holds before and after.
    pub fn count(self, counters: &mut Counters) {
        counters.scheduled += 1;
        match self {
            Self::Committed => counters.committed += 1,
            Self::Unknown => counters.unknown += 1,
            Self::InFlightAtEnd => counters.in_flight_at_end += 1,
            Self::Failed(FailureClass::Serialization) => counters.failed.serialization += 1,
            Self::Failed(FailureClass::Deadlock) => counters.failed.deadlock += 1,
            Self::Failed(FailureClass::Other) => counters.failed.other += 1,
            Self::Failed(FailureClass::Connection) => counters.failed.connection += 1,
        }
        debug_assert!(counters.add_up());
    }
}

/// What a statement may do to the transaction it runs in, from its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// BEGIN or START: sent outside a block, it commits nothing.
    opens_block: bool,
    /// COMMIT, END, PREPARE TRANSACTION, or several commands in one message.
    may_end_block: bool,
}

impl Effect {
    /// Of a statement's text.
    pub fn of(statement: &StatementDefinition) -> Self {
        let sql = statement.sql.as_str();
        let word = first_word(sql);
        let is = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
        // A semicolon before the end means a compound (or a literal with one: then we only err on the safe side).
        let several = sql.trim_end().trim_end_matches(';').contains(';');
        Self {
            opens_block: is(&["begin", "start"]) && !several,
            may_end_block: is(&["commit", "end", "prepare"]) || several,
        }
    }

    /// Whether this statement, sent when the session is in a block (or not), could commit something.
    pub fn could_commit(self, in_block: bool) -> bool {
        if in_block {
            self.may_end_block
        } else {
            !self.opens_block
        }
    }
}

/// The first word of a statement, after blanks and comments.
fn first_word(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment
                .split_once('\n')
                .map_or("", |(_, after)| after)
                .trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = after_comment(comment).trim_start();
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            return &rest[..end.unwrap_or(rest.len())];
        }
    }
}

/// What follows the end of a comment that began before `text`; comments nest.
fn after_comment(text: &str) -> &str {
    let mut depth = 1;
    let mut rest = text;
    while depth > 0 {
        let Some(at) = rest.find(['*', '/']) else {
            return "";
        };
        rest = &rest[at..];
        let step = match rest.get(..2) {
            Some("*/") => {
                depth -= 1;
                2
            }
            Some("/*") => {
                depth += 1;
                2
            }
            _ => 1,
        };
        rest = &rest[step..];
    }
    rest
}

/// Commits the server has made for one request, by its answers; they count when ReadyForQuery comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitCount {
    ended_blocks: u64,
    open_work: bool,
}

impl CommitCount {
    /// A command ended with this tag (`INSERT 0 1`, `COMMIT`, …).
    pub fn command(&mut self, tag: &[u8]) {
        match tag {
            b"COMMIT" | b"PREPARE TRANSACTION" => {
                self.ended_blocks += 1;
                self.open_work = false;
            }
            b"ROLLBACK" => self.open_work = false,
            _ => self.open_work = true,
        }
    }

    /// The request failed: what it had not committed is gone.
    pub fn error(&mut self) {
        self.open_work = false;
    }

    /// ReadyForQuery came: how many commits that acknowledges. `idle`: no block is open.
    pub fn acknowledge(&mut self, idle: bool) -> u64 {
        let commits = self.ended_blocks + u64::from(idle && self.open_work);
        *self = Self::default();
        commits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::StatementKind;
    use proptest::prelude::*;

    fn effect(sql: &str) -> Effect {
        Effect::of(&StatementDefinition {
            transaction_type: 0,
            number: 1,
            kind: StatementKind::Sql,
            label: String::new(),
            sql: sql.into(),
            parameters: 0,
            wants_rows: false,
        })
    }

    #[test]
    fn sqlstates_have_classes() {
        let classes = ["40001", "40P01", "57P01", "08006", "23505", "57014"]
            .map(|s| FailureClass::of_sqlstate(s.as_bytes()));
        use FailureClass::*;
        assert_eq!(
            [
                Serialization,
                Deadlock,
                Connection,
                Connection,
                Other,
                Other
            ],
            classes
        );
    }

    #[test]
    fn only_some_statements_can_commit() {
        for (sql, outside, inside) in [
            ("SELECT f(1)", true, false),
            ("BEGIN;", false, false),
            ("-- note\n/* a /* b */ c */ start transaction", false, false),
            ("end", true, true),
            ("COMMIT;", true, true),
            ("begin; update t set a = 1; commit", true, true),
        ] {
            assert_eq!(
                (outside, inside),
                (
                    effect(sql).could_commit(false),
                    effect(sql).could_commit(true)
                ),
                "{sql}"
            );
        }
    }

    #[test]
    fn commits_are_counted_when_acknowledged() {
        let count = |tags: &[&str], idle| {
            let mut commits = CommitCount::default();
            tags.iter().for_each(|tag| commits.command(tag.as_bytes()));
            commits.acknowledge(idle)
        };
        assert_eq!(1, count(&["SELECT 1"], true));
        assert_eq!(0, count(&["BEGIN"], false));
        assert_eq!(1, count(&["COMMIT"], true));
        assert_eq!(0, count(&["ROLLBACK"], true));
        assert_eq!(2, count(&["BEGIN", "COMMIT", "SELECT 1"], true));
        let mut failed = CommitCount::default();
        failed.command(b"UPDATE 1");
        failed.error();
        assert_eq!(0, failed.acknowledge(true));
    }

    proptest! {
        #[test]
        fn any_sequence_of_outcomes_adds_up(choices in proptest::collection::vec(0_usize..7, 0..200)) {
            use TransactionOutcome::*;
            let all = [
                Committed, Unknown, InFlightAtEnd, Failed(FailureClass::Serialization), Failed(FailureClass::Deadlock),
                Failed(FailureClass::Other), Failed(FailureClass::Connection),
            ];
            let mut counters = Counters::default();
            for &choice in &choices {
                all[choice].count(&mut counters);
            }
            prop_assert!(counters.add_up());
            prop_assert_eq!(choices.len() as u64, counters.scheduled);
            prop_assert_eq!(choices.iter().filter(|&&c| c == 0).count() as u64, counters.committed);
            prop_assert_eq!(choices.iter().filter(|&&c| c > 2).count() as u64, counters.failed.total());
        }

        #[test]
        fn any_text_has_an_effect(sql in "[ -~\n]{0,60}|[/*]{0,12}.{0,10}") {
            effect(&sql);
        }
    }
}
