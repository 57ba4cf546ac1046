//! The lists `host`, `hostaddr` and `port`, put together host by host.

use std::path::{Path, PathBuf};

use super::words::Words;
use super::{ConninfoError, Surroundings, problem};
use crate::wire::passfile;
use crate::wire::target::{Address, Host, is_ip};

/// PostgreSQL's usual port.
const DEFAULT_PORT: &str = "5432";
/// Where sockets usually are: Debian's place, PostgreSQL's own.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// What all hosts share when passwords are looked up.
pub struct Account<'a> {
    /// The user.
    pub user: &'a str,
    /// The database.
    pub database: &'a str,
    /// The password of the conninfo, for all hosts.
    pub password: Option<&'a str>,
    /// The password file, if it can be used.
    pub passfile: Option<&'a Path>,
}

/// Every host in order, or what is wrong with the lists.
pub fn hosts(
    words: &Words,
    account: &Account<'_>,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<Host>, Vec<ConninfoError>> {
    let list = |name: &str| -> Vec<&str> {
        let value = words.get(name).map_or("", String::as_str);
        if value.is_empty() {
            Vec::new()
        } else {
            value.split(',').map(str::trim).collect()
        }
    };
    let (names, numbers, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = numbers.len().max(names.len()).max(1);
    let mut problems = Vec::new();
    if !names.is_empty() && !numbers.is_empty() && names.len() != numbers.len() {
        problems.push(problem(format!(
            "conninfo has {} hosts and {} addresses (hostaddr)",
            names.len(),
            numbers.len()
        )));
    }
    if ports.len() > 1 && ports.len() != count {
        problems.push(problem(format!(
            "conninfo has {count} {} and {} ports",
            if count == 1 { "host" } else { "hosts" },
            ports.len()
        )));
    }
    for number in numbers
        .iter()
        .filter(|number| !number.is_empty() && !is_ip(number))
    {
        problems.push(problem(format!(
            "hostaddr '{number}' is not the number of an address"
        )));
    }
    let mut found = Vec::new();
    for index in 0..count {
        let given = if ports.len() == 1 {
            ports.first()
        } else {
            ports.get(index)
        };
        let text = given
            .copied()
            .filter(|text| !text.is_empty())
            .unwrap_or(DEFAULT_PORT);
        let Some(port) = text.parse().ok().filter(|&port: &u16| port > 0) else {
            let what = problem(format!("port '{text}' is not a port number"));
            if !problems.contains(&what) {
                problems.push(what);
            }
            continue;
        };
        let filled = |list: &[&'_ str]| {
            list.get(index)
                .copied()
                .filter(|text| !text.is_empty())
                .map(String::from)
        };
        let (name, number) = (filled(&names), filled(&numbers));
        found.push(host(name, number, port, account, surroundings));
    }
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(problems)
    }
}

/// A folder means a socket in it; no host at all: the usual socket where there is one, else loopback.
fn host(
    name: Option<String>,
    number: Option<String>,
    port: u16,
    account: &Account<'_>,
    surroundings: &Surroundings<'_>,
) -> Host {
    let socket = |folder: &str| PathBuf::from(format!("{folder}/.s.PGSQL.{port}"));
    let address = match (&number, &name) {
        (Some(number), _) => Address::Tcp(number.clone(), port),
        (None, Some(name)) if name.starts_with(['/', '@']) => Address::Unix(socket(name)),
        (None, Some(name)) => Address::Tcp(name.clone(), port),
        (None, None) => SOCKET_FOLDERS
            .map(socket)
            .into_iter()
            .find(|path| (surroundings.exists)(path))
            .map_or_else(|| Address::Tcp("localhost".into(), port), Address::Unix),
    };
    // As libpq: in a password file the usual socket counts as localhost.
    let name = name.or(number).unwrap_or_else(|| "localhost".into());
    let usual_socket = SOCKET_FOLDERS.contains(&name.as_str());
    let known_as = if usual_socket { "localhost" } else { &name };
    let password = account.password.map(String::from).or_else(|| {
        let wanted = [known_as, &port.to_string(), account.database, account.user];
        passfile::look_up(account.passfile?, wanted)
    });
    Host {
        address,
        name,
        password,
    }
}
