//! Ways of being a bad server, for tests of clients: `--misbehave KIND`.

use std::str::FromStr;

/// Where in the protocol a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// As soon as it was accepted.
    Connect,
    /// When the start-up message has come, without an answer.
    Startup,
    /// After AuthenticationOk.
    Authentication,
    /// After the first ReadyForQuery.
    Ready,
    /// When a simple Query has come.
    Query,
    /// When a Parse has come.
    Parse,
    /// When a Bind has come.
    Bind,
    /// When a Describe has come.
    Describe,
    /// When an Execute has come.
    Execute,
    /// When a Sync has come: everything is answered but ReadyForQuery.
    Sync,
    /// After the first row of a result.
    Row,
    /// After a CommandComplete, which is not yet an acknowledgement.
    Complete,
    /// When a COMMIT has come, however it was sent: its outcome is unknown.
    Commit,
}

const MOMENTS: &[(&str, Moment)] = &[
    ("connect", Moment::Connect),
    ("startup", Moment::Startup),
    ("authentication", Moment::Authentication),
    ("ready", Moment::Ready),
    ("query", Moment::Query),
    ("parse", Moment::Parse),
    ("bind", Moment::Bind),
    ("describe", Moment::Describe),
    ("execute", Moment::Execute),
    ("sync", Moment::Sync),
    ("row", Moment::Row),
    ("complete", Moment::Complete),
    ("commit", Moment::Commit),
];

/// What is bad about this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It closes connections at this moment.
    CloseAt(Moment),
    /// Of the first answer after the start it sends half, which ends within a message, and closes.
    HalfMessage,
    /// It sends everything byte by byte, with 2 ms between them.
    SlowLoris,
    /// After the start it answers with bytes that are no messages, and leaves the connection open.
    Garbage,
    /// Each connection falls silent after so many ReadyForQuery (that of the start not counted); it stays open.
    FreezeAfter(u64),
}

/// Bytes that are no messages: an impossible length, a huge one, unknown kinds, text.
pub const GARBAGE: &[u8] =
    b"D\xff\xff\xff\xffT\x7f\xff\xff\xff\0\0\0\0HTTP/1.1 400 Bad Request\r\n\r\n\x01\x02\x03";

impl FromStr for Misbehaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text
            .split_once('=')
            .map_or((text, None), |(k, v)| (k, Some(v)));
        match (kind, value) {
            ("half-message", None) => Ok(Self::HalfMessage),
            ("slow-loris", None) => Ok(Self::SlowLoris),
            ("garbage", None) => Ok(Self::Garbage),
            ("freeze-after", Some(count)) => count
                .parse()
                .map(Self::FreezeAfter)
                .map_err(|_| format!("freeze-after={count}: not a whole number")),
            ("close-at", Some(name)) => MOMENTS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|&(_, moment)| Self::CloseAt(moment))
                .ok_or_else(|| format!("close-at={name}: not one of {}", moment_names())),
            _ => Err(format!(
                "'{text}' is not one of close-at=STATE, half-message, slow-loris, garbage, freeze-after=N"
            )),
        }
    }
}

fn moment_names() -> String {
    MOMENTS
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_written() {
        for (name, moment) in MOMENTS {
            let text = format!("close-at={name}");
            assert_eq!(Ok(Misbehaviour::CloseAt(*moment)), text.parse());
        }
        assert_eq!(Ok(Misbehaviour::FreezeAfter(7)), "freeze-after=7".parse());
        assert_eq!(Ok(Misbehaviour::SlowLoris), "slow-loris".parse());
    }

    #[test]
    fn what_is_wrong_is_told() {
        for text in [
            "",
            "close-at",
            "close-at=lunch",
            "freeze-after=-1",
            "garbage=1",
        ] {
            assert!(text.parse::<Misbehaviour>().is_err(), "{text}");
        }
    }
}
