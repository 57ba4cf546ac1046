//! The live copy of events: one JSON object a line, on a descriptor that is never waited for.
//!
//! A reader that is slow misses lines, whole ones; a reader that is gone ends the copy. Nothing depends on it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use serde::Serialize;

use crate::results::Interval;

/// See the module.
pub struct EventStream {
    pipe: Option<File>,
    /// The end of a line that did not fit into the pipe.
    rest: Vec<u8>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    State { state: &'a str, monotonic_ns: u64 },
    Interval { interval: &'a Interval },
}

impl EventStream {
    /// To a descriptor, or to nobody.
    pub fn new(descriptor: Option<OwnedFd>) -> Self {
        if let Some(descriptor) = &descriptor {
            // SAFETY: no pointers; on failure the descriptor keeps blocking, which only a bad one does.
            unsafe {
                let flags = libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL);
                libc::fcntl(
                    descriptor.as_raw_fd(),
                    libc::F_SETFL,
                    flags | libc::O_NONBLOCK,
                );
            }
        }
        Self {
            pipe: descriptor.map(File::from),
            rest: Vec::new(),
        }
    }

    /// The engine is in this state from now on.
    pub fn state(&mut self, state: &str, monotonic_ns: u64) {
        self.send(&Event::State {
            state,
            monotonic_ns,
        });
    }

    /// An interval ended.
    pub fn interval(&mut self, interval: &Interval) {
        self.send(&Event::Interval { interval });
    }

    fn send(&mut self, event: &Event<'_>) {
        if self.pipe.is_none() {
            return;
        }
        self.push();
        if self.rest.is_empty()
            && let Ok(mut line) = serde_json::to_vec(event)
        {
            line.push(b'\n');
            self.rest = line;
            let whole = self.rest.len();
            self.push();
            if self.rest.len() == whole {
                // Not even its beginning went out: the reader misses this line.
                self.rest.clear();
            }
        }
    }

    /// Write as much of `rest` as goes.
    fn push(&mut self) {
        while !self.rest.is_empty() {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.write(&self.rest) {
                Ok(count) => drop(self.rest.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_slow_reader_misses_whole_lines_only() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut events = EventStream::new(Some(OwnedFd::from(writer)));
        for number in 0..5_000 {
            events.state("measuring", number);
        }
        let mut first = vec![0; 40_000];
        reader.read_exact(&mut first).unwrap();
        events.state("done", 1);
        drop(events);
        let mut text = String::from_utf8(first).unwrap();
        reader.read_to_string(&mut text).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(lines.len() < 5_000 && lines.len() > 100);
        assert_eq!("done", lines.last().unwrap()["state"]);
    }

    #[test]
    fn a_reader_that_is_gone_harms_nothing() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut events = EventStream::new(Some(OwnedFd::from(writer)));
        events.state("connecting", 1);
        events.state("done", 2);
        assert!(events.pipe.is_none());
    }
}
