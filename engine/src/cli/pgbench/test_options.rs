//! Options for unit tests of what reads them.

use std::collections::BTreeSet;

use super::emulation::Emulation;
use super::options::{Length, Options, Origin, Script, Switch};
use crate::plan::Protocol;

/// A run of scripts with these descriptions and weights: one client, ten transactions, nothing else asked for.
pub fn options(emulation: Emulation, scripts: &[(&str, u32)], switches: &[Switch]) -> Options {
    let script = |&(description, weight): &(&str, u32)| Script {
        description: description.into(),
        text: String::new(),
        weight,
        origin: Origin::File,
    };
    Options {
        emulation,
        switches: switches.iter().copied().collect::<BTreeSet<_>>(),
        host: None,
        port: None,
        user: None,
        database: None,
        init: None,
        scale: None,
        clients: 1,
        jobs: 1,
        length: Length::Transactions(10),
        protocol: Protocol::Simple,
        scripts: scripts.iter().map(script).collect(),
        variables: Vec::new(),
        rate_per_s: None,
        latency_limit: None,
        max_tries: 1,
        progress_s: None,
        sampling_rate: None,
        aggregate_interval_s: None,
        log_prefix: "pgbench_log".into(),
        seed: 42,
        percentiles: Vec::new(),
        json: None,
        hdr: None,
    }
}
