//! The files of records on request: `history.jsonl` and the sampled log of transactions, one JSON object a line.
//!
//! Shapes: `HistoryEvent` and `LoggedTransaction` in `pgdyno/contract.py`. Lines are appended as buffers come from
//! the workers: those of one client are in order, those of different workers are not.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::history::{HistoryRecord, Record, TransactionRecord, TryEvent};
use crate::outcome::{FailureClass, TransactionOutcome};
use crate::plan::Plan;
use crate::results::Phase;

/// Text is written to its file when it is this long, and after every buffer.
const CHUNK_BYTES: usize = 256 << 10;

/// One file, and the text that goes to it next.
struct Lines {
    file: File,
    text: Vec<u8>,
}

/// See the module.
pub struct RecordFiles {
    history: Option<Lines>,
    transactions: Option<Lines>,
    /// Names of the transaction types; plain, so that they need no escapes (`Plan::validate`).
    type_names: Vec<String>,
}

impl Lines {
    fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self {
            file,
            text: Vec::new(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

impl RecordFiles {
    /// Create the files the plan asks for.
    pub fn create(plan: &Plan) -> Result<Self, String> {
        let create = |name: &str| Lines::create(&plan.output_dir.join(name));
        let history = plan.history.then(|| create("history.jsonl"));
        let log = plan.transaction_log.as_ref().map(|log| create(&log.file));
        let names = plan.transaction_types.iter().map(|kind| kind.name.clone());
        Ok(Self {
            history: history.transpose()?,
            transactions: log.transpose()?,
            type_names: names.collect(),
        })
    }

    /// Write a buffer of records.
    pub fn write(&mut self, records: &[Record]) -> io::Result<()> {
        for record in records {
            let (lines, written) = match (record, &mut self.history, &mut self.transactions) {
                (Record::History(record), Some(lines), _) => {
                    let written = history_line(&mut lines.text, record, &self.type_names);
                    (lines, written)
                }
                (Record::Transaction(record), _, Some(lines)) => {
                    let written = transaction_line(&mut lines.text, record, &self.type_names);
                    (lines, written)
                }
                _ => continue,
            };
            written?;
            if lines.text.len() >= CHUNK_BYTES {
                lines.flush()?;
            }
        }
        for lines in [&mut self.history, &mut self.transactions]
            .into_iter()
            .flatten()
        {
            lines.flush()?;
        }
        Ok(())
    }
}

fn history_line(text: &mut Vec<u8>, record: &HistoryRecord, names: &[String]) -> io::Result<()> {
    let event = match record.event {
        TryEvent::Begin => "begin",
        TryEvent::Acknowledged => "acknowledged",
        TryEvent::Failed => "failed",
        TryEvent::Unknown => "unknown",
    };
    writeln!(
        text,
        r#"{{"client":{},"sequence":{},"event":"{event}","transaction_type":"{}","at_ns":{}}}"#,
        record.client, record.sequence, names[record.transaction_type], record.at_ns
    )
}

fn transaction_line(
    text: &mut Vec<u8>,
    record: &TransactionRecord,
    names: &[String],
) -> io::Result<()> {
    let phase = match record.phase {
        Phase::Warmup => "warmup",
        Phase::Measurement => "measurement",
    };
    let outcome = match record.outcome {
        TransactionOutcome::Committed => "committed",
        TransactionOutcome::Unknown => "unknown",
        TransactionOutcome::InFlightAtEnd => "in_flight_at_end",
        TransactionOutcome::Failed(FailureClass::Serialization) => "serialization",
        TransactionOutcome::Failed(FailureClass::Deadlock) => "deadlock",
        TransactionOutcome::Failed(FailureClass::Other) => "other",
        TransactionOutcome::Failed(FailureClass::Connection) => "connection",
    };
    let TransactionRecord {
        client,
        tries,
        intended_start_ns,
        actual_start_ns,
        end_ns,
        ..
    } = record;
    writeln!(
        text,
        concat!(
            r#"{{"client":{},"transaction_type":"{}","phase":"{}","outcome":"{}","tries":{},"#,
            r#""intended_start_ns":{},"actual_start_ns":{},"end_ns":{}}}"#
        ),
        client,
        names[record.transaction_type],
        phase,
        outcome,
        tries,
        intended_start_ns,
        actual_start_ns,
        end_ns
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_object_of_the_contract() {
        let names = vec!["login".to_string()];
        let mut text = Vec::new();
        let history = HistoryRecord {
            client: 3,
            sequence: 9,
            event: TryEvent::Acknowledged,
            transaction_type: 0,
            at_ns: u64::MAX,
        };
        history_line(&mut text, &history, &names).unwrap();
        let logged = TransactionRecord {
            client: 3,
            transaction_type: 0,
            phase: Phase::Measurement,
            outcome: TransactionOutcome::Failed(FailureClass::Deadlock),
            tries: 2,
            intended_start_ns: 1,
            actual_start_ns: 2,
            end_ns: 3,
        };
        transaction_line(&mut text, &logged, &names).unwrap();
        let lines: Vec<serde_json::Value> = String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            serde_json::json!({"client": 3, "sequence": 9, "event": "acknowledged",
                "transaction_type": "login", "at_ns": u64::MAX}),
            lines[0]
        );
        assert_eq!(
            serde_json::json!({"client": 3, "transaction_type": "login", "phase": "measurement",
                "outcome": "deadlock", "tries": 2, "intended_start_ns": 1, "actual_start_ns": 2, "end_ns": 3}),
            lines[1]
        );
    }
}
