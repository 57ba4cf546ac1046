//! Which version of pgbench is spoken: where versions contradict each other, `--emulate` or PGDYNO_PGBENCH decides.

/// A major version of pgbench; later ones compare as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Emulation {
    /// 15.
    V15,
    /// 16.
    V16,
    /// 17.
    V17,
    /// 18, with what 19 adds as options of its own.
    V18,
}

impl Emulation {
    /// What is spoken unless something else is asked for.
    pub const DEFAULT: Self = Self::V18;

    /// The version of a word, `15` to `18`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "15" => Some(Self::V15),
            "16" => Some(Self::V16),
            "17" => Some(Self::V17),
            "18" => Some(Self::V18),
            _ => None,
        }
    }

    /// The version number to show and to compare a server's with.
    pub fn number(self) -> u32 {
        match self {
            Self::V15 => 15,
            Self::V16 => 16,
            Self::V17 => 17,
            Self::V18 => 18,
        }
    }

    /// The release it speaks like.
    pub fn version(self) -> &'static str {
        match self {
            Self::V15 => "15.18",
            Self::V16 => "16.14",
            Self::V17 => "17.10",
            Self::V18 => "18.4",
        }
    }
}
