//! A conninfo as URI: `postgresql://[user[:password]@][host[:port][,…]][/dbname][?name=value[&…]]`.

use super::words::Words;
use super::{ConninfoError, problem};

/// What follows the scheme, if a conninfo is a URI.
pub fn without_scheme(conninfo: &str) -> Option<&str> {
    let prefixes = ["postgresql://", "postgres://"];
    prefixes
        .iter()
        .find_map(|prefix| conninfo.strip_prefix(prefix))
}

/// Read a URI without its scheme.
pub fn parse(text: &str) -> Result<Words, ConninfoError> {
    let mut words = Words::new();
    // As libpq: the first '@' before the first '/' ends the account.
    let account_end = text
        .find(['@', '/'])
        .filter(|&at| text[at..].starts_with('@'));
    let (account, rest) = match account_end {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => ("", text),
    };
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let hosts_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (hosts, rest) = rest.split_at(hosts_end);
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    let database = front.strip_prefix('/').unwrap_or(front);
    let (hosts, ports) = split_hosts(hosts)?;
    for (name, value) in [
        ("user", user),
        ("password", password),
        ("host", &hosts),
        ("port", &ports),
        ("dbname", database),
    ] {
        if !value.is_empty() {
            words.insert(name.into(), percent_decode(value)?);
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| problem(format!("conninfo URI: no '=' after '{pair}'")))?;
        if value.contains('=') {
            return Err(problem(format!(
                "conninfo URI: a second '=' after '{name}' (write it as %3D)"
            )));
        }
        let (name, value) = (percent_decode(name)?, percent_decode(value)?);
        match (name.as_str(), value.as_str()) {
            ("ssl", "true") => words.insert("sslmode".into(), "require".into()),
            _ => words.insert(name, value),
        };
    }
    Ok(words)
}

/// Hosts and ports as two lists; empty where there is neither name nor comma.
fn split_hosts(text: &str) -> Result<(String, String), ConninfoError> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for entry in text.split(',') {
        let (host, port) = split_port(entry)?;
        hosts.push(host);
        ports.push(port);
    }
    Ok((hosts.join(","), ports.join(",")))
}

/// Host and port of one entry; an IPv6 address stands in brackets.
fn split_port(entry: &str) -> Result<(&str, &str), ConninfoError> {
    let Some(inside) = entry.strip_prefix('[') else {
        return Ok(entry.split_once(':').unwrap_or((entry, "")));
    };
    let (address, after) = inside
        .split_once(']')
        .ok_or_else(|| problem("conninfo URI: '[' is never closed"))?;
    if address.is_empty() {
        return Err(problem("conninfo URI: '[]' holds no address"));
    }
    match after.strip_prefix(':') {
        Some(port) => Ok((address, port)),
        None if after.is_empty() => Ok((address, "")),
        None => Err(problem(format!(
            "conninfo URI: '{after}' after ']' where a port or the end should be"
        ))),
    }
}

/// `%41` → `A`.
fn percent_decode(text: &str) -> Result<String, ConninfoError> {
    let bad = || problem(format!("conninfo URI: '{text}' has a bad % sequence"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            rest.next()
                .and_then(|b| (b as char).to_digit(16))
                .ok_or_else(bad)
        };
        let value = digit()? * 16 + digit()?;
        bytes.push(
            u8::try_from(value)
                .ok()
                .filter(|&b| b != 0)
                .ok_or_else(bad)?,
        );
    }
    String::from_utf8(bytes).map_err(|_| bad())
}
