//! HdrHistogram's interval log, format 1.3: one line a histogram, tagged; values in nanoseconds, times in seconds.
//!
//! Any HdrHistogram log reader can merge and plot it. Time stamps are seconds since the base time in its header.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::clock::NS_PER_S;
use crate::results::ClockAnchor;

/// One log file.
pub struct HdrLog {
    file: File,
    anchor: ClockAnchor,
    serializer: V2DeflateSerializer,
    compressed: Vec<u8>,
    lines: Vec<u8>,
}

impl HdrLog {
    /// Create the file and write its header, with a remark of one line.
    pub fn create(path: &Path, anchor: ClockAnchor, remark: &str) -> io::Result<Self> {
        let mut log = Self {
            file: File::create(path)?,
            anchor,
            serializer: V2DeflateSerializer::new(),
            compressed: Vec::new(),
            lines: Vec::new(),
        };
        let base = seconds(anchor.wall_unix_ns);
        writeln!(log.lines, "#[pgdyno: nanoseconds; {remark}]")?;
        writeln!(log.lines, "#[Histogram log format version 1.3]")?;
        writeln!(log.lines, "#[StartTime: {base:.3} (seconds since epoch)]")?;
        writeln!(log.lines, "#[BaseTime: {base:.3} (seconds since epoch)]")?;
        writeln!(
            log.lines,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        log.flush()?;
        Ok(log)
    }

    /// Add the histogram of an interval, unless it is empty. Nothing is written before `flush`.
    pub fn add(
        &mut self,
        tag: &str,
        span_ns: (u64, u64),
        histogram: &Histogram<u64>,
    ) -> io::Result<()> {
        if histogram.is_empty() {
            return Ok(());
        }
        self.compressed.clear();
        self.serializer
            .serialize(histogram, &mut self.compressed)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let (begin_ns, end_ns) = span_ns;
        let begin = seconds(begin_ns.saturating_sub(self.anchor.monotonic_ns));
        let length = seconds(end_ns - begin_ns);
        let text = STANDARD.encode(&self.compressed);
        writeln!(
            self.lines,
            "Tag={tag},{begin:.3},{length:.3},{:.3},{text}",
            histogram.max() as f64
        )
    }

    /// Write what was added.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn a_reader_gets_back_what_was_added() {
        let path = std::env::temp_dir().join(format!("pgdyno-hdr-{}.hlog", std::process::id()));
        let anchor = ClockAnchor {
            monotonic_ns: 5 * NS_PER_S,
            wall_unix_ns: 1_700_000_000 * NS_PER_S,
        };
        let mut log = HdrLog::create(&path, anchor, "a test").unwrap();
        let mut histogram = Histogram::new_with_bounds(1, 1 << 40, 3).unwrap();
        log.add("empty", (0, 1), &histogram).unwrap();
        histogram.record_n(123_456, 7).unwrap();
        log.add("login.service", (6 * NS_PER_S, 7 * NS_PER_S), &histogram)
            .unwrap();
        log.flush().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let entries: Vec<_> = IntervalLogIterator::new(&bytes)
            .map(Result::unwrap)
            .collect();
        let intervals: Vec<_> = entries
            .iter()
            .filter_map(|e| {
                if let LogEntry::Interval(i) = e {
                    Some(i)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(1, intervals.len());
        assert_eq!(
            (Some("login.service"), 1.0, 1.0),
            (
                intervals[0].tag().map(|tag| tag.as_str()),
                intervals[0].start_timestamp().as_secs_f64(),
                intervals[0].duration().as_secs_f64(),
            )
        );
        let compressed = STANDARD.decode(intervals[0].encoded_histogram()).unwrap();
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut compressed.as_slice())
            .unwrap();
        assert_eq!((7, 7), (read.len(), read.count_at(123_456)));
    }
}
