//! How the rows of a section are cut into ranges: pure.

/// Rows of a range, about: long enough that a commit costs little, short enough that connections
/// end together.
const ROWS_PER_RANGE: u64 = 250_000;
/// Fewer rows than this are not worth a second range.
const ROWS_MIN: u64 = 10_000;

/// Rows `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First row.
    pub low: u64,
    /// Last row; below `low` when there are none.
    pub high: u64,
}

impl Range {
    /// All rows of a section.
    pub fn whole(rows: u64) -> Self {
        Self { low: 1, high: rows }
    }

    /// Number of rows.
    pub fn rows(self) -> u64 {
        (self.high + 1).saturating_sub(self.low)
    }
}

/// Ranges of nearly equal length, a whole number of them for each connection, in order.
pub fn cut(rows: u64, connections: usize) -> Vec<Range> {
    let connections = connections as u64;
    let rounds = rows.div_ceil(ROWS_PER_RANGE * connections).max(1);
    let count = (rounds * connections).min(rows / ROWS_MIN).max(1);
    // In 128 bits: rows times count may not fit 64.
    let bound = |index: u64| (u128::from(rows) * u128::from(index) / u128::from(count)) as u64;
    (0..count)
        .map(|index| Range {
            low: bound(index) + 1,
            high: bound(index + 1),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ROWS_PER_RANGE, Range, cut};

    #[test]
    fn a_few_rows_are_one_range() {
        assert_eq!(cut(50, 4), [Range { low: 1, high: 50 }]);
        assert_eq!(cut(0, 4), [Range { low: 1, high: 0 }]);
    }

    #[test]
    fn every_connection_gets_as_many_ranges() {
        assert_eq!(cut(2_000_000, 3).len(), 9);
        assert_eq!(
            cut(300_000, 2),
            [
                Range {
                    low: 1,
                    high: 150_000
                },
                Range {
                    low: 150_001,
                    high: 300_000
                }
            ]
        );
    }

    proptest! {
        #[test]
        fn ranges_cover_all_rows_once(rows in 0u64..1 << 40, connections in 1usize..64) {
            let ranges = cut(rows.min(1 << 32), connections);
            let mut next = 1;
            for range in &ranges {
                prop_assert_eq!(range.low, next);
                prop_assert!(range.rows() <= ROWS_PER_RANGE + 1);
                next = range.high + 1;
            }
            prop_assert_eq!(next, rows.min(1 << 32) + 1);
        }
    }
}
