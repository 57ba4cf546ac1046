//! Opening a session: start-up message, authentication, until the server is ready and known to be of the wanted kind.
//! Without I/O.
//!
//! ```text
//! begin → (AuthenticationCleartextPassword | MD5Password | SASL …)* → AuthenticationOk → parameters → ReadyForQuery
//!       → (a question, where the parameters do not say what kind of server it is → ReadyForQuery)
//! ```

use std::sync::Arc;

use super::authentication::Authentication;
use super::incoming::Message;
use super::outgoing::{cstring, message};
use super::target::{SessionKind, Target};
use super::tls::Security;
use crate::route::AttemptFailure;

/// Version 3.0.
const PROTOCOL_VERSION: i32 = 3 << 16;

/// A session being opened.
pub struct Startup {
    authentication: Authentication,
    learned: Learned,
    wanted: SessionKind,
    /// From 14 on the server tells by itself; before, it must be asked.
    told: Told,
    /// The question was sent.
    asking: bool,
}

/// What the server told of its kind.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    in_recovery: Option<bool>,
    read_only: Option<bool>,
    /// The answer to the question.
    asked: Option<bool>,
}

/// What the start-up is about, beside the target.
#[derive(Clone, Debug)]
pub struct Particulars {
    /// Index of the host among the target's.
    pub host: usize,
    /// What kind of server will do at this attempt.
    pub wanted: SessionKind,
    /// The encryption under it.
    pub security: Option<Security>,
}

/// What the server told while the session was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// `server_version`.
    pub server_version: Option<String>,
    /// Process id and secret key, for cancel requests.
    pub cancel_key: Option<(i32, Vec<u8>)>,
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// More must come.
    Wait,
    /// The session is open.
    Ready(Learned),
}

/// What kind of failure it is: it decides whether another attempt can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server said no.
    Server,
    /// It is starting up, shutting down or recovering (SQLSTATE 57P03).
    NotYet,
    /// It is open, and not of the wanted kind.
    WrongKind,
    /// This side says no: what the server asks for cannot be given, or it broke the protocol.
    Own,
}

/// Why a session could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupError {
    /// What kind of failure.
    pub refusal: Refusal,
    /// The server's, where it gave one.
    pub sqlstate: Option<String>,
    /// One line.
    pub message: String,
}

impl StartupError {
    /// What it means for further attempts.
    pub fn attempt_failure(&self, secured: bool) -> AttemptFailure {
        match self.refusal {
            Refusal::Server => AttemptFailure::Refused { secured },
            Refusal::NotYet => AttemptFailure::NotYet,
            Refusal::WrongKind => AttemptFailure::WrongKind,
            Refusal::Own => AttemptFailure::Own,
        }
    }
}

/// This side says no.
pub fn refuse(message: impl Into<String>) -> StartupError {
    StartupError {
        refusal: Refusal::Own,
        sqlstate: None,
        message: message.into(),
    }
}

impl Startup {
    /// Write the start-up message.
    pub fn begin(target: Arc<Target>, particulars: Particulars, bytes: &mut Vec<u8>) -> Self {
        let begin = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
        for (name, value) in &target.parameters {
            cstring(bytes, name);
            cstring(bytes, value);
        }
        bytes.push(0);
        let length = (bytes.len() - begin) as u32;
        bytes[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        Self {
            authentication: Authentication::new(target, particulars.host, particulars.security),
            learned: Learned::default(),
            wanted: particulars.wanted,
            told: Told::default(),
            asking: false,
        }
    }

    /// Take one message; what has to be sent is added to `bytes`. Rows must not be passed over.
    pub fn receive(
        &mut self,
        received: &Message<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Progress, StartupError> {
        match received {
            Message::Authentication(code, data) => {
                self.authentication.answer(*code, data, bytes)?
            }
            Message::Parameter(name, value) => self.parameter(name, value),
            Message::BackendKey { process_id, secret } => {
                self.learned.cancel_key = Some((*process_id, secret.to_vec()));
            }
            Message::Row(row) if self.asking => {
                self.told.asked = Some(matches!(row.get(0), Some(b"on" | b"t")));
            }
            Message::Ready(_) => return self.ready(bytes),
            Message::Error(error) => {
                let state = error.state();
                return Err(StartupError {
                    refusal: if state == "57P03" {
                        Refusal::NotYet
                    } else {
                        Refusal::Server
                    },
                    sqlstate: Some(state),
                    message: error.text(),
                });
            }
            Message::Notice(_) => {}
            Message::Other(b'v') => {}
            Message::Columns(_) | Message::Complete(_) if self.asking => {}
            other => {
                return Err(refuse(format!(
                    "the server broke the protocol while a session was opened: {other:?}"
                )));
            }
        }
        Ok(Progress::Wait)
    }

    fn parameter(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"server_version" => {
                self.learned.server_version = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"in_hot_standby" => self.told.in_recovery = Some(value == b"on"),
            b"default_transaction_read_only" => self.told.read_only = Some(value == b"on"),
            _ => {}
        }
    }

    /// The server waits for us: is it of the wanted kind?
    fn ready(&mut self, bytes: &mut Vec<u8>) -> Result<Progress, StartupError> {
        self.authentication.finished()?;
        let both = self.told.in_recovery.zip(self.told.read_only);
        let (known, question) = match self.wanted {
            SessionKind::Any | SessionKind::PreferStandby => {
                return Ok(Progress::Ready(std::mem::take(&mut self.learned)));
            }
            SessionKind::ReadWrite | SessionKind::ReadOnly => (
                both.map(|(in_recovery, read_only)| in_recovery || read_only),
                "SHOW transaction_read_only",
            ),
            SessionKind::Primary | SessionKind::Standby => (
                self.told.in_recovery,
                "SELECT pg_catalog.pg_is_in_recovery()",
            ),
        };
        let known = known.or(self.told.asked);
        let Some(known) = known else {
            if self.asking {
                return Err(refuse("the server did not say whether it is a standby"));
            }
            self.asking = true;
            message(bytes, b'Q', |body| cstring(body, question));
            return Ok(Progress::Wait);
        };
        let wrong = match (self.wanted, known) {
            (SessionKind::ReadWrite, true) => "the session is read-only",
            (SessionKind::ReadOnly, false) => "the session is not read-only",
            (SessionKind::Primary, true) => "the server is a standby",
            (SessionKind::Standby, false) => "the server is not a standby",
            _ => return Ok(Progress::Ready(std::mem::take(&mut self.learned))),
        };
        Err(StartupError {
            refusal: Refusal::WrongKind,
            ..refuse(wrong)
        })
    }
}

/// The request that cancels what the backend with this key is doing; sent on a connection of its own.
pub fn cancel_request(process_id: i32, secret: &[u8]) -> Vec<u8> {
    const CANCEL_CODE: i32 = (1234 << 16) | 5678;
    let mut bytes = Vec::with_capacity(12 + secret.len());
    bytes.extend_from_slice(&(12 + secret.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&CANCEL_CODE.to_be_bytes());
    bytes.extend_from_slice(&process_id.to_be_bytes());
    bytes.extend_from_slice(secret);
    bytes
}

/// Terminate: the session ends in good order.
pub const TERMINATE: &[u8] = b"X\0\0\0\x04";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::target::Address;

    fn begin(target: Target, wanted: SessionKind, bytes: &mut Vec<u8>) -> Startup {
        let particulars = Particulars {
            host: 0,
            wanted,
            security: None,
        };
        Startup::begin(Arc::new(target), particulars, bytes)
    }

    fn startup(password: Option<&str>) -> (Startup, Vec<u8>) {
        let target = Target::plain(Address::Tcp("h".into(), 1), password);
        let mut bytes = Vec::new();
        let startup = begin(target, SessionKind::Any, &mut bytes);
        (startup, bytes)
    }

    #[test]
    fn the_start_up_message_names_the_user() {
        assert_eq!(b"\0\0\0\x10\0\x03\0\0user\0u\0\0".to_vec(), startup(None).1);
    }

    #[test]
    fn md5_and_clear_text_are_answered() {
        let (mut session, _) = startup(Some("p"));
        let mut bytes = Vec::new();
        session
            .receive(&Message::Authentication(3, &[]), &mut bytes)
            .unwrap();
        assert_eq!(b"p\0\0\0\x06p\0".to_vec(), std::mem::take(&mut bytes));
        session
            .receive(&Message::Authentication(5, &[1, 2, 3, 4]), &mut bytes)
            .unwrap();
        assert_eq!(
            (b'p', 40, b"md5"),
            (bytes[0], bytes[4], bytes[5..].first_chunk::<3>().unwrap())
        );
    }

    #[test]
    fn a_session_becomes_ready() {
        let (mut session, _) = startup(None);
        let mut bytes = Vec::new();
        for message in [
            Message::Authentication(0, &[]),
            Message::Parameter(b"server_version", b"15.18"),
            Message::BackendKey {
                process_id: 7,
                secret: &[1, 2, 3, 4],
            },
        ] {
            assert_eq!(Ok(Progress::Wait), session.receive(&message, &mut bytes));
        }
        let learned = Learned {
            server_version: Some("15.18".into()),
            cancel_key: Some((7, vec![1, 2, 3, 4])),
        };
        assert_eq!(
            Ok(Progress::Ready(learned)),
            session.receive(&Message::Ready(b'I'), &mut bytes)
        );
        assert!(bytes.is_empty());
    }

    #[test]
    fn what_the_server_cannot_ask_is_an_error() {
        let (mut session, _) = startup(None);
        let mut bytes = Vec::new();
        for (code, part) in [
            (3, "PGPASSWORD"),
            (7, "GSSAPI"),
            (99, "method 99"),
            (11, "before it began"),
            (10, "SCRAM"),
        ] {
            let error = session
                .receive(&Message::Authentication(code, &[]), &mut bytes)
                .unwrap_err();
            assert!(error.message.contains(part), "{error:?}");
        }
    }

    /// What comes of parameters and, if a question is asked, of this answer.
    fn kind(
        wanted: SessionKind,
        parameters: &[(&str, &str)],
        answer: &str,
    ) -> Result<&'static str, String> {
        let target = Target::plain(Address::Tcp("h".into(), 1), None);
        let mut bytes = Vec::new();
        let mut session = begin(target, wanted, &mut bytes);
        bytes.clear();
        session
            .receive(&Message::Authentication(0, &[]), &mut bytes)
            .unwrap();
        for (name, value) in parameters {
            let told = Message::Parameter(name.as_bytes(), value.as_bytes());
            session.receive(&told, &mut bytes).unwrap();
        }
        let mut how = "told";
        let mut progress = session.receive(&Message::Ready(b'I'), &mut bytes);
        if progress == Ok(Progress::Wait) {
            assert_eq!(b'Q', bytes[0]);
            how = "asked";
            let body = [&[0, 1, 0, 0, 0, answer.len() as u8], answer.as_bytes()].concat();
            let row = Message::Row(crate::wire::message::Row::new(&body).unwrap());
            session.receive(&row, &mut bytes).unwrap();
            session
                .receive(&Message::Complete(b"SHOW"), &mut bytes)
                .unwrap();
            progress = session.receive(&Message::Ready(b'I'), &mut bytes);
        }
        progress.map(|_| how).map_err(|error| {
            assert_eq!(Refusal::WrongKind, error.refusal);
            error.message
        })
    }

    #[test]
    fn the_kind_of_server_is_told_or_asked() {
        use SessionKind::{Any, Primary, ReadOnly, ReadWrite, Standby};
        let standby = [
            ("in_hot_standby", "on"),
            ("default_transaction_read_only", "off"),
        ];
        let primary = [
            ("in_hot_standby", "off"),
            ("default_transaction_read_only", "off"),
        ];
        let reading = [
            ("in_hot_standby", "off"),
            ("default_transaction_read_only", "on"),
        ];
        for (wanted, fits, does_not) in [
            (ReadWrite, &primary, &standby),
            (ReadWrite, &primary, &reading),
            (ReadOnly, &reading, &primary),
            (Primary, &reading, &standby),
            (Standby, &standby, &primary),
        ] {
            assert_eq!(Ok("told"), kind(wanted, fits, ""), "{wanted:?}");
            assert!(kind(wanted, does_not, "").is_err(), "{wanted:?}");
        }
        assert_eq!(Ok("told"), kind(Any, &[], ""));
        assert_eq!(Ok("asked"), kind(ReadWrite, &[], "off"));
        assert_eq!(
            Err("the session is read-only".into()),
            kind(ReadWrite, &[], "on")
        );
        assert_eq!(Ok("asked"), kind(Standby, &[], "t"));
        assert_eq!(
            Err("the server is a standby".into()),
            kind(Primary, &[], "t")
        );
    }

    #[test]
    fn a_cancel_request_has_its_key() {
        assert_eq!(
            b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd".to_vec(),
            cancel_request(7, b"abcd")
        );
    }
}
