//! `pgdyno-engine check PLAN.json`: everything that is wrong with a plan and its scripts, without a server.

use std::path::Path;

use crate::destination::Destination;

use super::{DONE, USAGE, complain, prepare};

/// Exit status 0 when nothing is wrong, 2 otherwise.
pub fn check(path: &Path) -> u8 {
    let Some((plan, _)) = prepare(path) else {
        return USAGE;
    };
    match Destination::resolve(&plan.conninfo) {
        Ok(_) => DONE,
        Err(errors) => {
            for error in errors {
                complain(&error.message, error.hint.as_deref());
            }
            USAGE
        }
    }
}
