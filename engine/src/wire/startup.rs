//! Opening a session: start-up message, authentication, until the server is ready. Without I/O.
//!
//! ```text
//! begin → (AuthenticationCleartextPassword | MD5Password | SASL …)* → AuthenticationOk → parameters → ReadyForQuery
//! ```

use std::sync::Arc;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::conninfo::Target;
use super::incoming::Message;
use super::message::take_cstring;
use super::outgoing::{cstring, message};

/// Version 3.0.
const PROTOCOL_VERSION: i32 = 3 << 16;

/// A session being opened.
pub struct Startup {
    target: Arc<Target>,
    scram: Option<Box<ScramSha256>>,
    learned: Learned,
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

/// Why a session could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupError {
    /// The server's, where it gave one.
    pub sqlstate: Option<String>,
    /// One line.
    pub message: String,
}

fn refuse(message: impl Into<String>) -> StartupError {
    StartupError {
        sqlstate: None,
        message: message.into(),
    }
}

impl Startup {
    /// Write the start-up message.
    pub fn begin(target: Arc<Target>, bytes: &mut Vec<u8>) -> Self {
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
            target,
            scram: None,
            learned: Learned::default(),
        }
    }

    /// Take the next message of the server; what it must be answered is appended to `bytes`.
    pub fn receive(
        &mut self,
        received: &Message<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Progress, StartupError> {
        match received {
            Message::Authentication(code, data) => self.authenticate(*code, data, bytes)?,
            Message::Parameter(b"server_version", value) => {
                self.learned.server_version = Some(String::from_utf8_lossy(value).into_owned());
            }
            Message::BackendKey { process_id, secret } => {
                self.learned.cancel_key = Some((*process_id, secret.to_vec()));
            }
            Message::Ready(_) => return Ok(Progress::Ready(std::mem::take(&mut self.learned))),
            Message::Error(error) => {
                return Err(StartupError {
                    sqlstate: Some(error.state()),
                    message: error.text(),
                });
            }
            Message::Parameter(..) | Message::Notice(_) => {}
            Message::Other(b'v') => {}
            other => {
                return Err(refuse(format!(
                    "the server broke the protocol while a session was opened: {other:?}"
                )));
            }
        }
        Ok(Progress::Wait)
    }

    /// Answer one authentication request.
    fn authenticate(
        &mut self,
        code: i32,
        data: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<(), StartupError> {
        match code {
            0 => {}
            3 => {
                let password = self.password()?.to_string();
                message(bytes, b'p', |body| cstring(body, &password));
            }
            5 => {
                let salt = *data
                    .first_chunk::<4>()
                    .ok_or_else(|| refuse("the server sent no salt for md5"))?;
                let hash = md5_hash(
                    self.target.user.as_bytes(),
                    self.password()?.as_bytes(),
                    salt,
                );
                message(bytes, b'p', |body| cstring(body, &hash));
            }
            10 => self.begin_scram(data, bytes)?,
            11 => {
                let scram = self
                    .scram
                    .as_mut()
                    .ok_or_else(|| refuse("the server continued SCRAM before it began"))?;
                scram
                    .update(data)
                    .map_err(|error| refuse(format!("SCRAM authentication failed: {error}")))?;
                message(bytes, b'p', |body| body.extend_from_slice(scram.message()));
            }
            12 => {
                let scram = self
                    .scram
                    .as_mut()
                    .ok_or_else(|| refuse("the server ended SCRAM before it began"))?;
                scram.finish(data).map_err(|error| {
                    refuse(format!(
                        "the server does not know the password either: {error}"
                    ))
                })?;
            }
            7 | 9 => {
                return Err(refuse(
                    "the server asks for GSSAPI or SSPI authentication, which is not supported",
                ));
            }
            other => {
                return Err(refuse(format!(
                    "the server asks for unknown authentication method {other}"
                )));
            }
        }
        Ok(())
    }

    /// Choose SCRAM-SHA-256 from the mechanisms offered.
    fn begin_scram(&mut self, mut offered: &[u8], bytes: &mut Vec<u8>) -> Result<(), StartupError> {
        let mut known = false;
        while let Some((mechanism, rest)) = take_cstring(offered) {
            known |= mechanism == SCRAM_SHA_256.as_bytes();
            offered = rest;
        }
        if !known {
            return Err(refuse(
                "the server offers no authentication mechanism that is supported (SCRAM-SHA-256)",
            ));
        }
        let scram = ScramSha256::new(self.password()?.as_bytes(), ChannelBinding::unsupported());
        message(bytes, b'p', |body| {
            cstring(body, SCRAM_SHA_256);
            body.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
            body.extend_from_slice(scram.message());
        });
        self.scram = Some(Box::new(scram));
        Ok(())
    }

    fn password(&self) -> Result<&str, StartupError> {
        let asked =
            "the server asks for a password and none is known (set PGPASSWORD or a password file)";
        self.target.password.as_deref().ok_or_else(|| refuse(asked))
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
    use crate::wire::conninfo::Address;

    fn startup(password: Option<&str>) -> (Startup, Vec<u8>) {
        let target = Target {
            address: Address::Tcp("h".into(), 1),
            user: "u".into(),
            password: password.map(Into::into),
            parameters: vec![("user".into(), "u".into())],
        };
        let mut bytes = Vec::new();
        let startup = Startup::begin(Arc::new(target), &mut bytes);
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

    #[test]
    fn a_cancel_request_has_its_key() {
        assert_eq!(
            b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd".to_vec(),
            cancel_request(7, b"abcd")
        );
    }
}
