//! `pgdyno-engine run PLAN.json [--events FD]`: a measurement.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::{COULD_NOT, DONE, INTERRUPTED, USAGE, complain, path, prepare, usage};
use crate::control::{Begin, Measured, Measurement, ResultsGo, measure};
use crate::destination::Destination;
use crate::results::Outcome;
use crate::signals;

/// Exit status: 0 completed, 1 could not or aborted, 2 invalid, 130 interrupted.
pub fn run(words: &[&str]) -> u8 {
    let (plan, events) = match words {
        [plan] => (plan, None),
        [plan, "--events", descriptor] | ["--events", descriptor, plan] => (plan, Some(descriptor)),
        _ => return usage("'run' takes one plan and at most --events FD"),
    };
    let events = match events.map(|descriptor| inherited(descriptor)) {
        None => None,
        Some(Some(descriptor)) => Some(descriptor),
        Some(None) => return usage("--events takes the number of an open descriptor"),
    };
    // One that comes before the measurement has begun changes nothing, and must not end us.
    if let Err(error) = signals::block(&[signals::END_WARMUP]) {
        complain(&format!("cannot block signals: {error}"), None);
        return COULD_NOT;
    }
    let Some((plan, language)) = prepare(&path(plan)) else {
        return USAGE;
    };
    let destination = match Destination::resolve(&plan.conninfo) {
        Ok(destination) => destination,
        Err(errors) => {
            for error in errors {
                complain(&error.message, error.hint.as_deref());
            }
            return USAGE;
        }
    };
    match measure(Measurement {
        plan,
        language,
        destination,
        results: ResultsGo::ToFiles(events),
        rules: None,
        begin: Begin::AllConnected,
    }) {
        Err(error) => {
            complain(&error.message, error.hint.as_deref());
            COULD_NOT
        }
        Ok(Measured { summary, .. }) => match summary.outcome {
            Outcome::Completed => DONE,
            Outcome::Interrupted => INTERRUPTED,
            Outcome::Aborted => {
                let message = summary.message.as_deref().unwrap_or("aborted");
                complain(message, hint_for(message));
                COULD_NOT
            }
        },
    }
}

/// A descriptor that whoever started us left open for us.
fn inherited(word: &str) -> Option<OwnedFd> {
    let raw: RawFd = word.parse().ok().filter(|&raw| raw > 0)?;
    // SAFETY: no pointers; only asks whether the descriptor is open.
    if unsafe { libc::fcntl(raw, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, and the plan's owner gave it to us to own.
    Some(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Advice for messages of the server that people meet often.
fn hint_for(message: &str) -> Option<&'static str> {
    let has = |part: &str| message.contains(part);
    if has("too many clients") || has("remaining connection slots") {
        Some("use fewer clients, or raise the server's max_connections")
    } else if has("No such file or directory") || has("Connection refused") {
        Some("is the server running, and does it listen there?")
    } else if has("sslrootcert") || has("the server's certificate is for") {
        Some(
            "sslrootcert must name the authority, and host the name in the certificate; sslmode=require checks neither",
        )
    } else if has("certificate required") || has("valid client certificate") {
        Some("name your certificate and key with sslcert=FILE sslkey=FILE")
    } else if has("the server does not use TLS") {
        Some("set ssl = on in the server, or use sslmode=prefer")
    } else if has("pg_hba.conf") && has("no encryption") {
        Some("the server may want TLS: use sslmode=require or stricter")
    } else if has("channel_binding=require") {
        Some("the server needs TLS and a SCRAM password; channel_binding=prefer goes without")
    } else if has("require_auth") {
        Some("allow the method in require_auth, or change the server's pg_hba.conf")
    } else if has("password") {
        Some("set PGPASSWORD, or write a password file (~/.pgpass)")
    } else {
        None
    }
}
