//! How far each section is: `LoadProgress` lines of `pgdyno/contract.py` on stdout.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;

use crate::clock;

/// Progress of one section; written by all its threads.
#[derive(Debug)]
pub struct SectionProgress {
    name: String,
    rows_total: u64,
    rows_done: AtomicU64,
    ranges_left: AtomicUsize,
    /// Monotonic; 0 before the first range is begun.
    begin_ns: AtomicU64,
    last_told: AtomicBool,
}

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    section: &'a str,
    rows_done: u64,
    rows_total: u64,
    elapsed_ns: u64,
}

impl SectionProgress {
    /// Not begun.
    pub fn new(name: String, rows_total: u64, ranges: usize) -> Self {
        Self {
            name,
            rows_total,
            rows_done: AtomicU64::new(0),
            ranges_left: AtomicUsize::new(ranges),
            begin_ns: AtomicU64::new(0),
            last_told: AtomicBool::new(false),
        }
    }

    /// A range begins.
    pub fn begin_range(&self) {
        let now_ns = clock::now_ns();
        let _ = self
            .begin_ns
            .compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Rows were sent.
    pub fn add_rows(&self, rows: u64) {
        self.rows_done.fetch_add(rows, Ordering::Relaxed);
    }

    /// A range is committed; tells the last line of the section when it was the last one.
    pub fn end_range(&self) {
        if self.ranges_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.last_told.store(true, Ordering::Release);
            self.tell(self.rows_total);
        }
    }

    /// Tell how far it is, if it is under way.
    pub fn tell_if_under_way(&self) {
        let begun = self.begin_ns.load(Ordering::Relaxed) != 0;
        if begun && !self.last_told.load(Ordering::Acquire) {
            // The last line alone says that everything is done.
            let sent = self.rows_done.load(Ordering::Relaxed);
            self.tell(sent.min(self.rows_total.saturating_sub(1)));
        }
    }

    fn tell(&self, rows_done: u64) {
        let elapsed_ns = clock::now_ns().saturating_sub(self.begin_ns.load(Ordering::Relaxed));
        let line = Line {
            section: &self.name,
            rows_done,
            rows_total: self.rows_total,
            elapsed_ns,
        };
        let mut stdout = std::io::stdout().lock();
        // Whoever reads may have gone; the load goes on.
        if let Ok(mut text) = serde_json::to_string(&line) {
            text.push('\n');
            let _ = stdout
                .write_all(text.as_bytes())
                .and_then(|()| stdout.flush());
        }
    }
}
