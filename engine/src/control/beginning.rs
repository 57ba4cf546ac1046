//! Whether a measurement may begin with the clients that have a session, and what to say where it may not.

use crate::plan::Plan;
use crate::worker::Assignment;

/// Whether a measurement may begin with so many clients, of which `late` ones had no answer by the deadline. A pooler
/// whose queue is full lets clients wait: that is no reason to measure nothing. A server that refuses some is, unless
/// the plan says how many are enough.
pub fn may_start(plan: &Plan, connected: usize, late: usize) -> bool {
    match plan.min_clients {
        Some(least) => connected >= least,
        None => connected > 0 && connected + late == plan.clients,
    }
}

/// Say how many clients could not connect, and what they were told.
pub fn connect_problem(
    clients: usize,
    failures: &[(String, usize)],
    assignment: &Assignment,
) -> String {
    if let (true, Some((message, _))) = (assignment.rules.is_some(), failures.first()) {
        // Who runs by pgbench's rules says it in pgbench's words.
        return message.clone();
    }
    let missing: usize = failures.iter().map(|(_, count)| count).sum();
    let told: Vec<_> = failures
        .iter()
        .map(|(message, count)| format!("{message} ({count} times)"))
        .collect();
    let reason = match failures {
        [(message, _)] => message.clone(),
        _ => told.join("; "),
    };
    let who = if missing == clients {
        "no client".into()
    } else {
        format!("{missing} of {clients} clients")
    };
    let could = if missing == clients {
        "could connect"
    } else {
        "could not connect"
    };
    format!(
        "{who} {could} to {}: {reason}",
        assignment.destination.target
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_begins_with_fewer_clients_only_where_none_is_refused() {
        let plan = |least: &str| -> Plan {
            serde_json::from_str(&format!(
                r#"{{"name": "x", "conninfo": "", "clients": 10, "seed": 1, "output_dir": "/o", "min_clients": {least},
                    "transaction_types": []}}"#
            ))
            .unwrap()
        };
        for (least, connected, late, expected) in [
            ("null", 10, 0, true),
            ("null", 1, 9, true),
            ("null", 0, 10, false),
            ("null", 8, 1, false),
            ("8", 8, 0, true),
            ("8", 7, 3, false),
        ] {
            assert_eq!(
                expected,
                may_start(&plan(least), connected, late),
                "{least} {connected}"
            );
        }
    }
}
