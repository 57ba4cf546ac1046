//! `pgdyno-engine load`: rows in parallel ranges.
