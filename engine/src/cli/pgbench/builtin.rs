//! pgbench's own scripts, found by the beginning of their names.

use super::stop::Stop;
use super::voice::Voice;

/// A script that needs no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Name for `-b`.
    pub name: &'static str,
    /// What reports call it.
    pub description: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All of them.
pub const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        text: include_str!("transactions/tpcb_like.sql"),
    },
    BuiltIn {
        name: "simple-update",
        description: "<builtin: simple update>",
        text: include_str!("transactions/simple_update.sql"),
    },
    BuiltIn {
        name: "select-only",
        description: "<builtin: select only>",
        text: include_str!("transactions/select_only.sql"),
    },
];

/// The only script whose name begins so.
///
/// # Errors
/// None or several do; what there is was listed.
pub fn find(prefix: &str, voice: &Voice) -> Result<BuiltIn, Stop> {
    let mut found = BUILT_IN
        .iter()
        .filter(|script| script.name.starts_with(prefix));
    match (found.next(), found.count()) {
        (Some(script), 0) => Ok(*script),
        (None, _) => {
            voice.error(&format!("no builtin script found for name \"{prefix}\""));
            list();
            Err(Stop::Failed)
        }
        (Some(_), others) => {
            voice.error(&format!(
                "ambiguous builtin name: {} builtin scripts found for prefix \"{prefix}\"",
                others + 1
            ));
            list();
            Err(Stop::Failed)
        }
    }
}

/// `-b list`: on the standard error stream, as pgbench does.
pub fn list() {
    eprintln!("Available builtin scripts:");
    for BuiltIn {
        name, description, ..
    } in BUILT_IN
    {
        eprintln!("  {name:>13}: {description}");
    }
    eprintln!();
}

/// `--show-script`.
pub fn show(script: &BuiltIn) {
    let BuiltIn {
        name,
        description,
        text,
    } = script;
    eprintln!("-- {name}: {description}\n{text}");
}
