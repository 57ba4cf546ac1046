//! When transactions start: the shapes of load a plan can ask for.
//!
//! ```json
//! {"kind": "closed", "think_time_s": 0.1, "think_time": "exponential"}
//! {"kind": "open", "rate_per_s": 5000, "arrival": "poisson", "backlog_limit_s": 1}
//! {"kind": "open", "stages": [{"duration_s": 10, "rate_per_s": 100, "end_rate_per_s": 900}, {"duration_s": 60, "rate_per_s": 900}]}
//! {"kind": "partly_open", "sessions_per_s": 50, "transactions_per_session": 10, "think_time_s": 0.5}
//! ```

use serde::Deserialize;

/// Most starts a bounded backlog may hold: each takes 8 bytes, and they are there from the start.
const BACKLOG_MOST: u64 = 10_000_000;

/// How starts are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Independent arrivals: exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps; where the rate changes, equal amounts of rate × time.
    Constant,
}

/// How pauses of clients vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkTime {
    /// Always the same.
    #[default]
    Constant,
    /// Exponentially distributed around their mean.
    Exponential,
}

/// Who takes a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Whichever client of a worker is free first.
    #[default]
    Shared,
    /// Every client has a schedule of its own, at its share of the rate.
    PerClient,
}

/// A part of an open load with a rate of its own.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// How long it lasts.
    pub duration_s: f64,
    /// Arrivals per second over all clients, at its begin.
    pub rate_per_s: f64,
    /// At its end, in a straight line from its begin; None: the same all along.
    #[serde(default)]
    pub end_rate_per_s: Option<f64>,
}

impl Stage {
    /// Arrivals per second at its end.
    pub fn end_rate_per_s(&self) -> f64 {
        self.end_rate_per_s.unwrap_or(self.rate_per_s)
    }
}

/// The next one when the last one has finished and the client has thought.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoad {
    /// Mean pause between the end of one and the start of the next.
    #[serde(default)]
    pub think_time_s: f64,
    /// How pauses vary.
    #[serde(default)]
    pub think_time: ThinkTime,
}

/// By a schedule, whether or not earlier ones have finished. Exactly one of `rate_per_s` and `stages` is given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenLoad {
    /// Arrivals per second over all clients.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Rates that change; the first begins with the measurement, the last one's end rate stays.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrival: Arrival,
    /// Who takes them.
    #[serde(default)]
    pub schedule: Sharing,
    /// Starts that may wait for a client; what comes when as many wait is skipped.
    #[serde(default)]
    pub backlog_limit: Option<u64>,
    /// How long a start may wait for a client; what waited longer is skipped.
    #[serde(default)]
    pub backlog_limit_s: Option<f64>,
}

/// Sessions arrive by a schedule; each is a client that does some transactions, thinks between them, and leaves.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartlyOpenLoad {
    /// Arrivals of sessions per second over all clients.
    pub sessions_per_s: f64,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrival: Arrival,
    /// Transactions of one session.
    pub transactions_per_session: u32,
    /// Mean pause within a session.
    #[serde(default)]
    pub think_time_s: f64,
    /// How pauses vary.
    #[serde(default)]
    pub think_time: ThinkTime,
    /// Sessions that may wait for a client.
    #[serde(default)]
    pub backlog_limit: Option<u64>,
    /// How long a session may wait for a client.
    #[serde(default)]
    pub backlog_limit_s: Option<f64>,
}

/// When transactions start.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Load {
    /// Clients wait for their own transactions only.
    Closed(ClosedLoad),
    /// Transactions wait for nobody.
    Open(OpenLoad),
    /// Sessions wait for nobody, the transactions of one wait for each other.
    PartlyOpen(PartlyOpenLoad),
}

impl Default for Load {
    fn default() -> Self {
        Self::Closed(ClosedLoad::default())
    }
}

impl Load {
    /// Whether starts are intended independently of when clients are free: then there is lag.
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed(_))
    }

    /// Whether clients wait for a time to come, not only for the server.
    pub fn has_timers(&self) -> bool {
        match self {
            Self::Closed(closed) => closed.think_time_s > 0.0,
            Self::Open(_) | Self::PartlyOpen(_) => true,
        }
    }

    /// Its times, and whether 0 is allowed.
    pub fn times_s(&self) -> Vec<(&'static str, f64, bool)> {
        match self {
            Self::Closed(closed) => vec![("think_time_s", closed.think_time_s, true)],
            Self::Open(open) => {
                let stages = open.stages.iter();
                let stages = stages.map(|stage| ("duration_s of a stage", stage.duration_s, false));
                stages.chain(backlog_time(open.backlog_limit_s)).collect()
            }
            Self::PartlyOpen(partly) => {
                std::iter::once(("think_time_s", partly.think_time_s, true))
                    .chain(backlog_time(partly.backlog_limit_s))
                    .collect()
            }
        }
    }

    /// What is wrong with it apart from its times, one line each.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Closed(_) => Vec::new(),
            Self::Open(open) => open.problems(),
            Self::PartlyOpen(partly) => partly.problems(),
        }
    }
}

fn backlog_time(limit_s: Option<f64>) -> impl Iterator<Item = (&'static str, f64, bool)> {
    limit_s
        .into_iter()
        .map(|limit_s| ("backlog_limit_s", limit_s, false))
}

fn backlog_problem(limit: Option<u64>) -> Option<String> {
    let wrong = limit.is_some_and(|limit| !(1..=BACKLOG_MOST).contains(&limit));
    wrong.then(|| format!("backlog_limit must be from 1 to {BACKLOG_MOST}"))
}

impl OpenLoad {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = backlog_problem(self.backlog_limit).into_iter().collect();
        if self.rate_per_s.is_some() != self.stages.is_empty() {
            problems.push("exactly one of rate_per_s and stages must be given".into());
        }
        if let Some(rate_per_s) = self.rate_per_s
            && !(rate_per_s.is_finite() && rate_per_s > 0.0)
        {
            problems.push(format!("rate_per_s must be above 0, not {rate_per_s}"));
        }
        let rates = self
            .stages
            .iter()
            .flat_map(|s| [s.rate_per_s, s.end_rate_per_s()]);
        if rates.clone().any(|rate| !(rate.is_finite() && rate >= 0.0)) {
            problems.push("rates of a stage must be 0 or more".into());
        } else if !self.stages.is_empty() && rates.clone().all(|rate| rate == 0.0) {
            problems.push("the rates of all stages are 0".into());
        }
        problems
    }
}

impl PartlyOpenLoad {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = backlog_problem(self.backlog_limit).into_iter().collect();
        if !(self.sessions_per_s.is_finite() && self.sessions_per_s > 0.0) {
            let sessions_per_s = self.sessions_per_s;
            problems.push(format!(
                "sessions_per_s must be above 0, not {sessions_per_s}"
            ));
        }
        if self.transactions_per_session == 0 {
            problems.push("transactions_per_session must be at least 1".into());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Load {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_shape_has_its_defaults() {
        assert_eq!(Load::default(), load(r#"{"kind": "closed"}"#));
        let open = load(r#"{"kind": "open", "rate_per_s": 5}"#);
        let expected = OpenLoad {
            rate_per_s: Some(5.0),
            arrival: Arrival::Poisson,
            schedule: Sharing::Shared,
            ..OpenLoad::default()
        };
        assert_eq!(Load::Open(expected), open);
        assert!(open.is_open() && open.problems().is_empty());
        let partly =
            load(r#"{"kind": "partly_open", "sessions_per_s": 5, "transactions_per_session": 3}"#);
        assert!(partly.is_open() && partly.problems().is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (text, part) in [
            (
                r#"{"kind": "open"}"#,
                "exactly one of rate_per_s and stages",
            ),
            (
                r#"{"kind": "open", "rate_per_s": 1, "stages": [{"duration_s": 1, "rate_per_s": 1}]}"#,
                "exactly one of rate_per_s and stages",
            ),
            (r#"{"kind": "open", "rate_per_s": -1}"#, "above 0"),
            (
                r#"{"kind": "open", "rate_per_s": 1, "backlog_limit": 0}"#,
                "backlog_limit",
            ),
            (
                r#"{"kind": "open", "stages": [{"duration_s": 1, "rate_per_s": 0}]}"#,
                "all stages are 0",
            ),
            (
                r#"{"kind": "open", "stages": [{"duration_s": 1, "rate_per_s": 5, "end_rate_per_s": -1}]}"#,
                "0 or more",
            ),
            (
                r#"{"kind": "partly_open", "sessions_per_s": 0, "transactions_per_session": 1}"#,
                "sessions_per_s",
            ),
            (
                r#"{"kind": "partly_open", "sessions_per_s": 1, "transactions_per_session": 0}"#,
                "at least 1",
            ),
        ] {
            let problems = load(text).problems();
            assert!(
                problems.len() == 1 && problems[0].contains(part),
                "{text}: {problems:?}"
            );
        }
        assert!(
            serde_json::from_str::<Load>(r#"{"kind": "open", "rate_per_s": 1, "burst": 1}"#)
                .is_err()
        );
    }
}
