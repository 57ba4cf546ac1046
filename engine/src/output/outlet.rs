//! Where results go as they come, when not into the files of a plan's folder. Called on the writer's thread, never on
//! a worker's.

use std::io;

use super::intervals::Whole;
use crate::history::Record;
use crate::results::ClockAnchor;
use crate::schedule::Timetable;

/// Takes what the writer gets. Nothing here may take long: a writer that lags makes workers allocate.
pub trait Outlet: Send {
    /// The engine is in this state from now on.
    fn state(&mut self, _state: &str) {}

    /// The start was given to all workers. `anchor` ties the monotonic clock of all times to the time of day.
    fn started(&mut self, timetable: Timetable, anchor: ClockAnchor) -> io::Result<()>;

    /// An interval is complete: what ended in it, of all workers together. The last one may be shorter than the plan's
    /// `interval_s`.
    fn interval(&mut self, whole: &Whole) -> io::Result<()>;

    /// Records of one worker (from 0): those of one client in the order of their ends.
    fn records(&mut self, worker: usize, records: &[Record]) -> io::Result<()>;

    /// Nothing more comes; everything ended by `end_ns`.
    fn finish(&mut self, end_ns: u64) -> io::Result<()>;
}
