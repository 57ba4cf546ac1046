//! Where results go: files written as they happen by a thread of their own, and a lossy copy on a pipe.

mod events;
mod files;
mod hdr_log;
mod intervals;
mod outlet;
mod records;
mod summary;
mod writer;

pub use files::ResultFiles;
pub use hdr_log::HdrLog;
pub use intervals::Whole;
pub use outlet::Outlet;
pub use summary::{Findings, summarize, write_summary};
pub use writer::{Totals, Writer, WriterSetup};
