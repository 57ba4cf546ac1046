//! The parts of the engine that fuzz targets reach: its own files, because it is a program and not a library.
#![allow(dead_code, reason = "only a part of it is used here")]

#[path = "../../src"]
mod engine {
    pub mod blocks;
    pub mod plan;
    pub mod program;
    pub mod random;
    pub mod script;
    /// As much as scripts need: to write statements and to read the columns of `\gset`.
    pub mod wire {
        pub mod message;
        pub mod outgoing;
    }
}

pub use engine::{blocks, plan, program, random, script, wire};
