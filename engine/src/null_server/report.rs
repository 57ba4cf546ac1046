//! What the null server tells: where it listens, and what serving has cost so far.

use std::io::{self, Write};

use serde::Serialize;

use super::crew::Crew;
use crate::process::usage;

/// Work done and its cost, since the start of the process.
#[derive(Debug, Serialize)]
pub struct Report {
    event: &'static str,
    connections_accepted: u64,
    connections_open: u64,
    statements: u64,
    ready_for_query: u64,
    received_bytes: u64,
    sent_bytes: u64,
    cpu_user_ns: u64,
    cpu_sys_ns: u64,
    max_rss_bytes: u64,
}

#[derive(Serialize)]
struct Listening<'a> {
    event: &'static str,
    host: &'a str,
    port: Option<u16>,
    conninfo: &'a str,
    pid: u32,
}

impl Report {
    /// What `crew` has done.
    pub fn of(crew: &Crew) -> Self {
        let done = crew.done();
        let used = usage();
        Self {
            event: "report",
            connections_accepted: crew.accepted(),
            connections_open: crew.accepted() - done.connections_closed,
            statements: done.statements,
            ready_for_query: done.ready,
            received_bytes: done.received_bytes,
            sent_bytes: done.sent_bytes,
            cpu_user_ns: used.user_ns,
            cpu_sys_ns: used.sys_ns,
            max_rss_bytes: used.max_rss_bytes,
        }
    }

    /// Print it.
    pub fn tell(&self, json: bool) -> io::Result<()> {
        if json {
            return print_line(&serde_json::to_string(self)?);
        }
        let cpu_ns = self.cpu_user_ns + self.cpu_sys_ns;
        let each_us = cpu_ns as f64 / 1e3 / self.ready_for_query.max(1) as f64;
        print_line(&format!(
            "{} connections accepted, {} open; {} statements, {} times ready; \
             CPU {:.3} s user, {:.3} s sys ({each_us:.2} µs each time ready); {:.1} MB resident at most",
            self.connections_accepted,
            self.connections_open,
            self.statements,
            self.ready_for_query,
            self.cpu_user_ns as f64 / 1e9,
            self.cpu_sys_ns as f64 / 1e9,
            self.max_rss_bytes as f64 / f64::from(1 << 20),
        ))
    }
}

/// Print a line for each address, as a conninfo that clients take.
pub fn tell_listening(addresses: &[(String, Option<u16>)], json: bool) -> io::Result<()> {
    for (host, port) in addresses {
        let conninfo = match port {
            Some(port) => format!("host={} port={port}", quoted(host)),
            None => format!("host={}", quoted(host)),
        };
        if json {
            print_line(&serde_json::to_string(&Listening {
                event: "listening",
                host,
                port: *port,
                conninfo: &conninfo,
                pid: std::process::id(),
            })?)?;
        } else {
            print_line(&format!("listening: {conninfo}"))?;
        }
    }
    Ok(())
}

/// A value as a conninfo wants it.
fn quoted(value: &str) -> String {
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "/._:-".contains(each);
    if !value.is_empty() && value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
    }
}

/// Print at once; a reader that has gone is no reason to stop serving.
fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_needed() {
        assert_eq!("/tmp/a-b.c", quoted("/tmp/a-b.c"));
        assert_eq!("'/tmp/it\\'s here'", quoted("/tmp/it's here"));
    }
}
