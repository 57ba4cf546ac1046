//! A client's session being opened: start-up, and in one session of the load the settings it runs under.

use super::{Client, Context, Next, Opening, State};
use crate::wire::incoming::Message;
use crate::wire::startup::{Learned, Progress, StartupError};

/// What was learned of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// From the start-up.
    pub learned: Learned,
    /// Settings as the session shows them; only in the session of client 0.
    pub settings: Vec<(String, String)>,
    /// Why it could not be opened.
    pub refused: Option<StartupError>,
    /// Why it ended.
    pub lost: Option<String>,
}

impl Client {
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
            Some(name) if self.number == 0 => {
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
