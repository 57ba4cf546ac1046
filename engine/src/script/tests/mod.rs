//! Tests of the language: against what stock pgbench printed, and through the trait the client
//! uses.

mod allocations;
mod expressions;
mod parsing;
mod running;
