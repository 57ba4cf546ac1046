//! What lies between a socket and the messages of an encrypted connection. Without I/O: bytes of the socket go in with
//! `receive`, and come out opened; what is to be sent is sealed.
//!
//! ```text
//! Asked ─S→ Shaking ─done→ Open        (SSLRequest: the server answers one byte)
//!   └──N→ plain, where that will do
//! Shaking → Open                       (sslnegotiation=direct)
//! ```
//!
//! A plain connection has no channel at all, so that it pays nothing for this.

use std::io::{BufRead, Write};

use rustls::ClientConnection;

use super::certificate::ServerCertificate;
use super::{TlsFailure, TlsSetup};

/// The request that begins TLS: its length, and the number that stands for a protocol version.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// How an attempt to connect is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    Plain,
    /// By request; plain where the server says no.
    Preferred,
    /// By request.
    Required,
    /// From the first byte.
    Direct,
}

/// What a session knows of the encryption under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// What SCRAM is bound to (`tls-server-end-point`); None where the certificate has no such hash.
    pub end_point: Option<Vec<u8>>,
}

/// What came of received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// More must come.
    Wait,
    /// The server does not encrypt: go on in the clear, without a channel.
    Plain,
    /// The session can be opened.
    Secured(Security),
    /// What was opened is in `opened`.
    Opened,
}

/// See the module.
pub struct Channel {
    stage: Stage,
    setup: TlsSetup,
    encryption: Encryption,
    sealed: Vec<u8>,
    opened: Vec<u8>,
}

enum Stage {
    Asked,
    Shaking(Box<ClientConnection>),
    Open(Box<ClientConnection>),
    Broken,
}

impl Channel {
    /// The socket is connected: what must be sent first is in `sealed`.
    pub fn begin(setup: &TlsSetup, encryption: Encryption) -> Result<Self, TlsFailure> {
        let mut channel = Self {
            stage: Stage::Asked,
            setup: setup.clone(),
            encryption,
            sealed: Vec::with_capacity(1024),
            opened: Vec::new(),
        };
        if encryption == Encryption::Direct {
            channel.shake_hands()?;
        } else {
            channel.sealed.extend_from_slice(&SSL_REQUEST);
        }
        Ok(channel)
    }

    fn shake_hands(&mut self) -> Result<(), TlsFailure> {
        let (config, name) = (self.setup.config.clone(), self.setup.server_name.clone());
        let mut connection =
            ClientConnection::new(config, name).map_err(|error| TlsFailure::of(&error))?;
        // What is written is moved on at once, so nothing can pile up.
        connection.set_buffer_limit(None);
        send(&mut connection, &mut self.sealed);
        self.stage = Stage::Shaking(Box::new(connection));
        Ok(())
    }

    /// Bytes of the socket.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Step, TlsFailure> {
        match std::mem::replace(&mut self.stage, Stage::Broken) {
            Stage::Asked => self.answered(bytes),
            Stage::Shaking(mut connection) => {
                self.open(&mut connection, bytes)?;
                if connection.is_handshaking() {
                    self.stage = Stage::Shaking(connection);
                    return Ok(Step::Wait);
                }
                let spoken = connection.alpn_protocol().is_some();
                if self.encryption == Encryption::Direct && !spoken {
                    return Err(TlsFailure(
                        "the server does not take TLS from the first byte".into(),
                    ));
                }
                let security = security(&connection);
                self.stage = Stage::Open(connection);
                Ok(Step::Secured(security))
            }
            Stage::Open(mut connection) => {
                self.open(&mut connection, bytes)?;
                self.stage = Stage::Open(connection);
                Ok(Step::Opened)
            }
            Stage::Broken => Ok(Step::Wait),
        }
    }

    /// The server's answer to the request: one byte, and nothing may follow it in the clear.
    fn answered(&mut self, bytes: &[u8]) -> Result<Step, TlsFailure> {
        let failure = match bytes {
            [] => {
                self.stage = Stage::Asked;
                return Ok(Step::Wait);
            }
            [b'S'] => return self.shake_hands().map(|()| Step::Wait),
            [b'N'] if self.encryption == Encryption::Preferred => return Ok(Step::Plain),
            [b'N', ..] => "the server does not use TLS",
            [b'S', ..] => "the server sent bytes in the clear after it agreed to TLS",
            [b'E', ..] => "the server answered the request for TLS with an error",
            _ => "the server's answer to the request for TLS is not PostgreSQL's",
        };
        Err(TlsFailure(failure.into()))
    }

    /// Decrypt; what rustls wants to send goes to `sealed`, also an alert before an error.
    fn open(
        &mut self,
        connection: &mut ClientConnection,
        mut bytes: &[u8],
    ) -> Result<(), TlsFailure> {
        while !bytes.is_empty() {
            let taken = connection.read_tls(&mut bytes);
            let processed = connection.process_new_packets();
            send(connection, &mut self.sealed);
            let state = processed.map_err(|error| TlsFailure::of(&error))?;
            taken.map_err(|error| TlsFailure(format!("TLS failed: {error}")))?;
            if state.plaintext_bytes_to_read() > 0 {
                self.take_opened(connection)?;
            }
            if state.peer_has_closed() {
                break;
            }
        }
        Ok(())
    }

    fn take_opened(&mut self, connection: &mut ClientConnection) -> Result<(), TlsFailure> {
        let mut reader = connection.reader();
        loop {
            let count = match reader.fill_buf() {
                Ok(chunk) => {
                    self.opened.extend_from_slice(chunk);
                    chunk.len()
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(TlsFailure(format!("TLS failed: {error}"))),
            };
            if count == 0 {
                return Ok(());
            }
            reader.consume(count);
        }
    }

    /// What was received, opened; whoever reads it clears it.
    pub fn opened(&mut self) -> &mut Vec<u8> {
        &mut self.opened
    }

    /// Encrypt bytes to send.
    pub fn seal(&mut self, plain: &[u8]) {
        if let Stage::Open(connection) = &mut self.stage {
            // Writing to memory cannot fail, and a connection that ended takes nothing more.
            let _ = connection.writer().write_all(plain);
            send(connection, &mut self.sealed);
        }
    }

    /// Bytes for the socket; whoever sends them swaps an empty buffer in.
    pub fn sealed(&mut self) -> &mut Vec<u8> {
        &mut self.sealed
    }

    /// Encrypt a last message, and say that nothing follows.
    pub fn farewell(&mut self, last: &[u8]) -> &[u8] {
        if let Stage::Open(connection) = &mut self.stage {
            let _ = connection.writer().write_all(last);
            connection.send_close_notify();
            send(connection, &mut self.sealed);
        }
        &self.sealed
    }
}

/// Move what rustls wants to send.
fn send(connection: &mut ClientConnection, sealed: &mut Vec<u8>) {
    while connection.wants_write() {
        // Writing to memory cannot fail.
        if connection.write_tls(sealed).is_err() {
            return;
        }
    }
}

fn security(connection: &ClientConnection) -> Security {
    let first = connection.peer_certificates().and_then(<[_]>::first);
    let end_point = first.and_then(|der| ServerCertificate::read(der)?.end_point(der));
    Security { end_point }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::conninfo::tests::resolved;

    fn setup() -> TlsSetup {
        let target = resolved("host=db.test sslmode=require", &[]).unwrap();
        TlsSetup::for_hosts(&target).unwrap().remove(0).unwrap()
    }

    fn asked(encryption: Encryption) -> Channel {
        let mut channel = Channel::begin(&setup(), encryption).unwrap();
        assert_eq!(SSL_REQUEST.to_vec(), std::mem::take(channel.sealed()));
        channel
    }

    #[test]
    fn the_servers_answer_decides() {
        use Encryption::{Preferred, Required};
        let refusal = |text: &str| Err(TlsFailure(text.into()));
        let early = "the server sent bytes in the clear after it agreed to TLS";
        let strange = "the server's answer to the request for TLS is not PostgreSQL's";
        for (encryption, answer, expected) in [
            (Preferred, &b""[..], Ok(Step::Wait)),
            (Preferred, b"N", Ok(Step::Plain)),
            (Required, b"N", refusal("the server does not use TLS")),
            (Required, b"S", Ok(Step::Wait)),
            (Required, b"SR", refusal(early)),
            (Required, b"H", refusal(strange)),
        ] {
            assert_eq!(expected, asked(encryption).receive(answer), "{answer:?}");
        }
    }

    #[test]
    fn a_hello_names_the_host_and_the_protocol() {
        let mut channel = asked(Encryption::Required);
        channel.receive(b"S").unwrap();
        let direct = Channel::begin(&setup(), Encryption::Direct).unwrap();
        for hello in [&channel.sealed, &direct.sealed] {
            assert_eq!(0x16, hello[0], "a handshake record");
            let has = |part: &[u8]| hello.windows(part.len()).any(|window| window == part);
            assert!(has(b"db.test") && has(b"\x0apostgresql"));
        }
    }

    #[test]
    fn nothing_is_sealed_before_the_hands_are_shaken() {
        let mut channel = asked(Encryption::Required);
        channel.seal(b"secret");
        assert!(channel.sealed().is_empty());
        assert!(channel.farewell(b"X").is_empty());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0_usize..300) {
            let mut channel = asked(Encryption::Required);
            channel.receive(b"S").unwrap();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let secured = [first, second].map(|part| matches!(channel.receive(part), Ok(Step::Secured(_) | Step::Opened)));
            prop_assert_eq!([false, false], secured);
            prop_assert!(channel.opened().is_empty());
        }
    }
}
