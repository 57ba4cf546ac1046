//! What is left to do: ranges of sections, in order, and which of them may run side by side. Pure.

use std::collections::VecDeque;

use super::ranges::{Range, cut};
use super::section::{Streams, Work};

/// One range of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of the section.
    pub section: usize,
    /// Its rows.
    pub range: Range,
}

/// The ranges of a section.
pub fn ranges(work: &Work, rows: u64, connections: usize) -> Vec<Range> {
    match work {
        Work::Copy(_) if rows == 0 => Vec::new(),
        Work::Copy(copy) if copy.streams == Streams::OneFrozen => vec![Range::whole(rows)],
        Work::Copy(_) | Work::Sql(_) => cut(rows, connections),
    }
}

/// Batches of sections: all of a batch may run at once, batches follow each other.
///
/// SQL may need what came before it, so it is a batch of its own. COPYs next to each other need
/// nothing of each other; ranges are taken in turn, frozen ones first: they are the longest and
/// cannot be shared out.
pub fn batches(works: &[(Work, u64)], connections: usize) -> VecDeque<Vec<Job>> {
    let mut batches = VecDeque::new();
    let mut copies: Vec<Job> = Vec::new();
    let frozen = |job: &Job| match &works[job.section].0 {
        Work::Copy(copy) => copy.streams == Streams::OneFrozen,
        Work::Sql(_) => false,
    };
    let close = |copies: &mut Vec<Job>, batches: &mut VecDeque<Vec<Job>>| {
        // Longest frozen first; the sort is stable, so that others keep the order of the file.
        copies.sort_by_key(|job| {
            if frozen(job) {
                u64::MAX - job.range.rows()
            } else {
                u64::MAX
            }
        });
        if !copies.is_empty() {
            batches.push_back(std::mem::take(copies));
        }
    };
    for (section, (work, rows)) in works.iter().enumerate() {
        let jobs = ranges(work, *rows, connections)
            .into_iter()
            .map(|range| Job { section, range });
        match work {
            Work::Copy(_) => copies.extend(jobs),
            Work::Sql(_) => {
                close(&mut copies, &mut batches);
                batches.push_back(jobs.collect());
            }
        }
    }
    close(&mut copies, &mut batches);
    batches
}
