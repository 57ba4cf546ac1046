//! A conninfo as `name = value` pairs.

use std::collections::BTreeMap;

use super::{ConninfoError, problem};

/// Values by name. A name that comes twice has its last value, as in libpq.
pub type Words = BTreeMap<String, String>;

/// What libpq takes for a blank.
fn blank(character: char) -> bool {
    character.is_ascii_whitespace() || character == '\x0b'
}

/// `name = value` pairs; values may stand in single quotes; a backslash takes the next character as it is.
pub fn parse(conninfo: &str) -> Result<Words, ConninfoError> {
    let mut words = Words::new();
    let mut rest = conninfo.trim_start_matches(blank);
    while !rest.is_empty() {
        let end = rest
            .find(|character| character == '=' || blank(character))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_start_matches(blank).strip_prefix('=');
        let Some(after) = after.filter(|_| !name.is_empty()) else {
            return Err(problem(format!("conninfo: no '=' after '{name}'")));
        };
        let (value, after) = parse_value(after.trim_start_matches(blank)).ok_or_else(|| {
            problem(format!(
                "conninfo: the quote after '{name}=' is never closed"
            ))
        })?;
        words.insert(name.into(), value);
        rest = after.trim_start_matches(blank);
    }
    Ok(words)
}

/// One value and what follows; None where a quote is not closed.
fn parse_value(text: &str) -> Option<(String, &str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, next)| next)),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            other if !quoted && blank(other) => return Some((value, &text[at..])),
            other => value.push(other),
        }
    }
    if quoted { None } else { Some((value, "")) }
}
