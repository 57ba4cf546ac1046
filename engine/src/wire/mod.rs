//! PostgreSQL's protocol (version 3.0) without I/O: bytes in, bytes out. Nothing here owns a socket.

pub mod authentication;
pub mod conninfo;
pub mod incoming;
pub mod message;
pub mod outgoing;
pub mod passfile;
pub mod service;
pub mod startup;
pub mod target;
pub mod tls;
pub mod wording;
