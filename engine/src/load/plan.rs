//! What `pgdyno-engine load` is told: `LoadPlan` of `pgdyno/contract.py`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::plan::CONTRACT_VERSION;

/// One part of a workload's data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSection {
    /// Its name in progress lines and messages.
    pub name: String,
    /// Rows: `:row` goes from 1 to this.
    pub rows: u64,
    /// File name for messages.
    pub source: String,
    /// SQL with `:lo` and `:hi`, or COPY and the template of a row.
    pub script: String,
}

/// All sections, in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// Version of the shape.
    #[serde(default = "contract_version")]
    pub version: u32,
    /// libpq conninfo or URI, without a password.
    pub conninfo: String,
    /// Parallel connections.
    pub connections: usize,
    /// Variables of all sections.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// The sections.
    pub sections: Vec<LoadSection>,
}

fn contract_version() -> u32 {
    CONTRACT_VERSION
}

impl LoadPlan {
    /// Read a plan.
    ///
    /// # Errors
    /// A file that cannot be read or has another shape.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the plan {}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Every problem of what the plan says; the sections' scripts are checked where they are
    /// compiled.
    pub fn validate(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.version != CONTRACT_VERSION {
            let found = self.version;
            problems.push(format!(
                "version is {found}, this engine reads {CONTRACT_VERSION}"
            ));
        }
        if self.connections == 0 {
            problems.push("connections must be at least 1".to_owned());
        }
        for section in &self.sections {
            if i64::try_from(section.rows).is_err() {
                problems.push(format!("section {}: rows do not fit 64 bits", section.name));
            }
        }
        problems
    }
}
