//! pgbench's script language: parsed once, then run by one [`program::ScriptProgram`] for each
//! client.
//!
//! ```text
//! text ── sql_text ──► SQL commands ── template ──► literals and variables ─┐
//!     └── meta ──────► backslash commands ── expression_parser ──► trees ───┴─► command ──► program
//! ```
//!
//! The language is pgbench 15's, with `\syncpipeline` of 17 and `\setrandom` of 9.5 and earlier.

mod arithmetic;
mod branches;
mod capture;
pub mod command;
pub mod evaluation;
pub mod expression;
pub mod expression_parser;
pub mod functions;
pub mod language;
pub mod meta;
pub mod parser;
pub mod problem;
pub mod program;
mod shell;
pub mod sql_text;
pub mod template;
mod tokens;
pub mod values;
pub mod variables;

#[cfg(test)]
mod tests;
