//! Errors seen, counted by kind: same SQLSTATE, same place. Only an error allocates, and only the first of its kind.

use crate::plan::Plan;
use crate::program::StatementId;
use crate::results::{ErrorSeen, Phase};
use crate::statements::Statements;

/// More kinds than this are not told apart: the rest is counted with the last kind of its place.
const MOST_KINDS: usize = 1000;

/// Where an error happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index of the transaction type.
    pub transaction_type: Option<usize>,
    /// Which statement.
    pub statement: Option<StatementId>,
    /// None before the start.
    pub phase: Option<Phase>,
}

/// One error.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// None where it is not the server's.
    pub sqlstate: Option<&'a [u8]>,
    /// Primary text.
    pub message: &'a str,
    /// Where.
    pub place: Place,
    /// When.
    pub at_ns: u64,
}

#[derive(Clone, Debug)]
struct Kind {
    sqlstate: Option<Vec<u8>>,
    message: String,
    place: Place,
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Kind {
    /// Errors of the server are one kind whatever values their text has; our own are told apart by their text.
    fn fits(&self, sqlstate: Option<&[u8]>, message: &str, place: Place) -> bool {
        self.place == place
            && self.sqlstate.as_deref() == sqlstate
            && (sqlstate.is_some() || self.message == message)
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct ErrorLog {
    kinds: Vec<Kind>,
}

impl ErrorLog {
    /// Count one error.
    pub fn note(&mut self, seen: Seen<'_>) {
        self.add(Kind {
            sqlstate: seen.sqlstate.map(<[u8]>::to_vec),
            message: seen.message.to_string(),
            place: seen.place,
            count: 1,
            first_ns: seen.at_ns,
            last_ns: seen.at_ns,
        });
    }

    /// Take in what another one saw.
    pub fn merge(&mut self, other: Self) {
        other.kinds.into_iter().for_each(|kind| self.add(kind));
    }

    fn add(&mut self, kind: Kind) {
        let full = self.kinds.len() >= MOST_KINDS;
        let known = self.kinds.iter_mut().find(|known| {
            known.fits(kind.sqlstate.as_deref(), &kind.message, kind.place)
                || (full && known.place == kind.place)
        });
        match known {
            Some(known) => {
                if kind.first_ns < known.first_ns {
                    (known.first_ns, known.message) = (kind.first_ns, kind.message);
                }
                known.count += kind.count;
                known.last_ns = known.last_ns.max(kind.last_ns);
            }
            None if full => {}
            None => self.kinds.push(kind),
        }
    }

    /// What is written: the most frequent first.
    pub fn results(&self, plan: &Plan, statements: &Statements) -> Vec<ErrorSeen> {
        let result = |kind: &Kind| ErrorSeen {
            sqlstate: kind
                .sqlstate
                .as_ref()
                .map(|state| String::from_utf8_lossy(state).into_owned()),
            message: kind.message.clone(),
            transaction_type: kind
                .place
                .transaction_type
                .map(|index| plan.transaction_types[index].name.clone()),
            statement: kind
                .place
                .statement
                .map(|statement| statements.definition(statement).number),
            phase: kind.place.phase,
            count: kind.count,
            first_ns: kind.first_ns,
            last_ns: kind.last_ns,
        };
        let mut results: Vec<_> = self.kinds.iter().map(result).collect();
        results.sort_by_key(|error| (std::cmp::Reverse(error.count), error.first_ns));
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_state_and_place() {
        let mut log = ErrorLog::default();
        let place = Place {
            transaction_type: Some(0),
            ..Place::default()
        };
        for (sqlstate, message, place, at_ns) in [
            (Some(&b"23505"[..]), "key 2", place, 20),
            (Some(b"23505"), "key 1", place, 10),
            (Some(b"23505"), "elsewhere", Place::default(), 30),
            (None, "closed", place, 40),
            (None, "other", place, 50),
        ] {
            log.note(Seen {
                sqlstate,
                message,
                place,
                at_ns,
            });
        }
        assert_eq!(4, log.kinds.len());
        let first = &log.kinds[0];
        assert_eq!(
            ("key 1", 2, 10, 20),
            (
                first.message.as_str(),
                first.count,
                first.first_ns,
                first.last_ns
            )
        );
        let mut merged = log.clone();
        merged.merge(log);
        assert_eq!((4, 4), (merged.kinds.len(), merged.kinds[0].count));
    }

    #[test]
    fn kinds_are_bounded() {
        let mut log = ErrorLog::default();
        for number in 0..5_000 {
            let message = format!("{number}");
            log.note(Seen {
                sqlstate: None,
                message: &message,
                place: Place::default(),
                at_ns: number,
            });
        }
        assert_eq!(MOST_KINDS, log.kinds.len());
        assert_eq!(5_000, log.kinds.iter().map(|kind| kind.count).sum::<u64>());
    }
}
