//! A client's session being opened: encryption, start-up, and in one session of the load the settings it runs under.

use super::{Answer, Client, Context, Next, Opening, Seeking, State, Watch};
use crate::destination::Destination;
use crate::outcome::CommitCount;
use crate::route::{Attempt, AttemptFailure};
use crate::wire::incoming::{Incoming, Message};
use crate::wire::startup::{Learned, Particulars, Progress, Startup, StartupError, TERMINATE};
use crate::wire::tls::{Channel, Encryption, Security, Step, TlsFailure};

/// Room for decrypted bytes that a client keeps between answers.
const KEPT_OPENED_BYTES: usize = 16 << 10;

/// What was learned of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// From the start-up.
    pub learned: Learned,
    /// Settings as the session shows them; only in the session of client 0.
    pub settings: Vec<(String, String)>,
    /// Why it could not be opened.
    pub refused: Option<StartupError>,
    /// Why it could not be secured.
    pub not_secured: Option<TlsFailure>,
    /// Whether it is encrypted.
    pub secured: bool,
    /// Why it ended.
    pub lost: Option<String>,
}

impl Session {
    /// What a failed attempt to open it means, and what was told.
    pub fn why_not_opened(&self) -> (AttemptFailure, String) {
        if let Some(TlsFailure(message)) = &self.not_secured {
            return (AttemptFailure::Tls, message.clone());
        }
        match &self.refused {
            Some(refused) => (
                refused.attempt_failure(self.secured),
                refused.message.clone(),
            ),
            None => (
                AttemptFailure::Unreachable,
                self.lost.clone().unwrap_or_default(),
            ),
        }
    }
}

impl Client {
    /// The connection is there: secure it as the attempt says, and open a session. Whatever an earlier connection left is
    /// forgotten.
    pub fn connected(&mut self, destination: &Destination, attempt: Attempt) -> Next {
        self.forget_connection();
        self.session = Session::default();
        self.particulars = Some(Box::new(Particulars {
            host: destination.places[attempt.place].host,
            wanted: attempt.wanted,
            security: None,
        }));
        self.target = Some(destination.target.clone());
        match destination.setup(attempt.place) {
            Some(setup) if attempt.encryption != Encryption::Plain => {
                match Channel::begin(setup, attempt.encryption) {
                    Ok(channel) => {
                        self.channel = Some(Box::new(channel));
                        self.state = State::Securing;
                        Next::Wait
                    }
                    Err(failure) => self.not_secured(failure),
                }
            }
            _ => self.begin_startup(None),
        }
    }

    /// The connection is gone, or about to be another one: nothing of it may reach the next one.
    pub fn forget_connection(&mut self) {
        self.outgoing.reset();
        self.incoming = Incoming::default();
        self.channel = None;
        self.status = b'I';
        self.commits = CommitCount::default();
        self.answer = Answer::Rows;
        self.watch = Watch::default();
        self.rows = 0;
        (self.last_words, self.told_why) = (None, false);
    }

    fn begin_startup(&mut self, security: Option<Security>) -> Next {
        let (Some(particulars), Some(target)) = (self.particulars.take(), self.target.take())
        else {
            return Next::Wait;
        };
        self.session.secured = security.is_some();
        let particulars = Particulars {
            security,
            ..*particulars
        };
        let startup = Startup::begin(target, particulars, self.outgoing.bytes_mut());
        self.state = State::Opening(Box::new(Opening(startup)));
        Next::Wait
    }

    fn not_secured(&mut self, failure: TlsFailure) -> Next {
        self.session.not_secured = Some(failure);
        self.state = State::Closed;
        Next::Close
    }

    /// Bytes came on a connection that is encrypted or about to be.
    #[cold]
    #[inline(never)]
    fn securing(&mut self, step: Step) -> Next {
        match step {
            Step::Wait | Step::Opened => Next::Wait,
            Step::Plain => {
                self.channel = None;
                self.begin_startup(None)
            }
            Step::Secured(security) => self.begin_startup(Some(security)),
        }
    }

    /// Bytes came on a connection with a channel.
    pub(super) fn receive_sealed(&mut self, bytes: &[u8], context: &mut Context) -> Next {
        let Some(channel) = &mut self.channel else {
            return Next::Wait;
        };
        let step = match channel.receive(bytes) {
            Ok(step) => step,
            Err(failure) => {
                let opening = matches!(self.state, State::Securing | State::Opening(_));
                if opening {
                    return self.not_secured(failure);
                }
                let now_ns = context.clock.now_ns();
                return self.lost(&failure.0, context, now_ns);
            }
        };
        if step != Step::Opened {
            return self.securing(step);
        }
        let mut opened = std::mem::take(channel.opened());
        let next = if opened.is_empty() {
            Next::Wait
        } else {
            self.receive_messages(&opened, context)
        };
        opened.clear();
        // A large result must not cost its memory for good: there may be thousands of clients.
        opened.shrink_to(KEPT_OPENED_BYTES);
        if let Some(channel) = &mut self.channel {
            *channel.opened() = opened;
        }
        next
    }

    /// Whether there is something to send.
    #[inline]
    pub fn has_to_send(&mut self) -> bool {
        !self.outgoing.is_empty()
            || self
                .channel
                .as_mut()
                .is_some_and(|channel| !channel.sealed().is_empty())
    }

    /// Bytes for the socket; whoever sends them swaps an empty buffer in.
    #[inline]
    pub fn bytes_to_send(&mut self) -> &mut Vec<u8> {
        let Self {
            channel, outgoing, ..
        } = self;
        match channel {
            None => outgoing.bytes_mut(),
            Some(channel) => {
                if !outgoing.is_empty() {
                    channel.seal(outgoing.bytes_mut());
                    outgoing.bytes_mut().clear();
                }
                channel.sealed()
            }
        }
    }

    /// The last bytes of a connection: the session ends in good order.
    pub fn farewell(&mut self) -> &[u8] {
        match &mut self.channel {
            None if matches!(self.state, State::Securing) => &[],
            None => TERMINATE,
            Some(channel) => channel.farewell(TERMINATE),
        }
    }

    /// A message came while the session is being opened.
    pub(super) fn open(
        &mut self,
        message: &Message<'_>,
        context: &mut Context,
        now_ns: u64,
    ) -> Next {
        match &mut self.state {
            State::Opening(opening) => {
                let Opening(startup) = opening.as_mut();
                match startup.receive(message, self.outgoing.bytes_mut()) {
                    Ok(Progress::Wait) => Next::Wait,
                    Ok(Progress::Ready(learned)) => {
                        self.session.learned = learned;
                        self.ask(0, context)
                    }
                    Err(error) => {
                        self.session.refused = Some(error);
                        self.lost("the session was refused", context, now_ns)
                    }
                }
            }
            State::Asking(index) => {
                let index = *index;
                self.setting_told(index, message, context)
            }
            _ => Next::Wait,
        }
    }

    /// Ask for the setting at `index`; after the last one the client is ready.
    fn ask(&mut self, index: usize, context: &Context) -> Next {
        match context.session_settings.get(index) {
            Some(name) if self.number == 0 && self.seeking == Seeking::No => {
                let quoted = name.replace('\'', "''");
                self.outgoing.own_query(&format!(
                    "SELECT pg_catalog.current_setting('{quoted}', true)"
                ));
                self.state = State::Asking(index);
                Next::Wait
            }
            _ => {
                self.state = State::Idle;
                Next::Ready
            }
        }
    }

    /// A setting the server does not know is left out.
    fn setting_told(&mut self, index: usize, message: &Message<'_>, context: &Context) -> Next {
        match message {
            Message::Row(row) => {
                if let (Some(value), Some(name)) = (row.get(0), context.session_settings.get(index))
                {
                    self.session
                        .settings
                        .push((name.clone(), String::from_utf8_lossy(value).into_owned()));
                }
                Next::Wait
            }
            Message::Ready(_) => {
                self.outgoing.answered();
                self.ask(index + 1, context)
            }
            _ => Next::Wait,
        }
    }
}
