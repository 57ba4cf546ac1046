//! The load generator of pgdyno; this file only dispatches.

fn main() {}
