//! Why the program ends before its work is done; everything that is to be said was said.

use crate::cli::{COULD_NOT, DONE};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What was asked for needed no more (`-b list`).
    Done,
    /// Exit status 1.
    Failed,
}

impl Stop {
    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Self::Done => DONE,
            Self::Failed => COULD_NOT,
        }
    }
}
