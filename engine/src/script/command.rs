//! The commands of a parsed script.

use super::expression::Expression;
use super::template::Template;
use super::variables::Slot;

/// One command, in the order of the script.
#[derive(Clone, Debug)]
pub struct Command {
    /// Byte offset of its first character in the script.
    pub offset: usize,
    /// Its first line, as written.
    pub label: String,
    /// What it does.
    pub action: Action,
}

/// What a command does.
#[derive(Clone, Debug)]
pub enum Action {
    /// SQL for the server.
    Sql(Sql),
    /// Anything that begins with a backslash.
    Meta(Meta),
}

/// SQL, and whether its rows become variables.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The text and its variables.
    pub template: Template,
    /// `\gset` or `\aset` after it.
    pub capture: Option<Capture>,
}

/// `\gset` or `\aset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Which results and rows.
    pub kind: CaptureKind,
    /// Goes before the names of columns.
    pub prefix: String,
}

/// Which results and rows become variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureKind {
    /// `\gset`: the last result, which must be one row.
    Last,
    /// `\aset`: every result, its last row; a result without rows changes nothing.
    All,
}

/// A backslash command, branches resolved to indices of commands.
#[derive(Clone, Debug)]
pub enum Meta {
    /// `\set`, and `\setrandom` as a call of the function.
    Set(Slot, Expression),
    /// `\setshell`: the variable and the words.
    SetShell(Slot, Box<[Word]>),
    /// `\shell`: the words.
    Shell(Box<[Word]>),
    /// `\sleep`.
    Sleep(Amount, Unit),
    /// `\if`: where to go on when false.
    If(Expression, usize),
    /// `\elif`: where to go on when false, and the `\endif` to go to after a branch was taken.
    Elif(Expression, usize, usize),
    /// `\else`: the `\endif` to go to after a branch was taken.
    Else(usize),
    /// `\endif`.
    Endif,
    /// `\startpipeline`.
    StartPipeline,
    /// `\syncpipeline`.
    SyncPipeline,
    /// `\endpipeline`.
    EndPipeline,
    /// A command that cannot be carried out, where that is to be told when a client comes to it.
    Faulty(Box<str>),
}

/// A word of a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// As it is.
    Literal(Box<str>),
    /// The value of a variable.
    Variable(Slot),
}

/// How many units to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Constant(i64),
    /// As many as a variable says.
    Variable(Slot),
}

/// The units of `\sleep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// us
    Microseconds,
    /// ms
    Milliseconds,
    /// s
    Seconds,
}

impl CaptureKind {
    /// The command's name, without its backslash.
    pub fn name(self) -> &'static str {
        match self {
            Self::Last => "gset",
            Self::All => "aset",
        }
    }
}

impl Unit {
    /// The unit of a word, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "us" => Some(Self::Microseconds),
            "ms" => Some(Self::Milliseconds),
            "s" => Some(Self::Seconds),
            _ => None,
        }
    }

    /// So many units in nanoseconds; negative numbers are 0.
    pub fn to_ns(self, amount: i64) -> u64 {
        let unit_ns = match self {
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
        };
        u64::try_from(amount).unwrap_or(0).saturating_mul(unit_ns)
    }
}
