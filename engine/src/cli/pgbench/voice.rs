//! How pgbench says things: on the standard error stream, each line after its name and a level.

/// Speaks in the name the program was called by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voice {
    program: String,
}

impl Voice {
    /// In the name of this program: the last part of the path it was called by.
    pub fn new(program: &str) -> Self {
        Self {
            program: program.rsplit('/').next().unwrap_or(program).to_owned(),
        }
    }

    /// The name it was called by.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// `pgbench: error: …`
    pub fn error(&self, message: &str) {
        self.say("error: ", message);
    }

    /// `pgbench: warning: …`
    pub fn warning(&self, message: &str) {
        self.say("warning: ", message);
    }

    /// `pgbench: detail: …`
    pub fn detail(&self, message: &str) {
        self.say("detail: ", message);
    }

    /// `pgbench: hint: …`
    pub fn hint(&self, message: &str) {
        self.say("hint: ", message);
    }

    /// `pgbench: …`
    pub fn info(&self, message: &str) {
        self.say("", message);
    }

    /// `pgbench: …`, for `--debug`
    pub fn debug(&self, message: &str) {
        self.say("", message);
    }

    fn say(&self, level: &str, message: &str) {
        eprintln!(
            "{}: {level}{}",
            self.program,
            message.trim_end_matches('\n')
        );
    }
}
