//! libpq's service files: named groups of conninfo words.
//!
//! A service is looked for in the user's file (PGSERVICEFILE, else `~/.pg_service.conf`), then in `pg_service.conf` of
//! the system's folder (PGSYSCONFDIR, else Debian's). A file that was named must be there.

use std::path::{Path, PathBuf};

use super::conninfo::words::Words;
use super::conninfo::{
    ConninfoError, Surroundings, is_known, problem, problem_with_hint, unknown_word,
};

/// Where Debian's libpq looks when PGSYSCONFDIR does not say.
const SYSTEM_FOLDER: &str = "/etc/postgresql-common";

/// Which service, and where to look for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sources {
    service: Option<String>,
    named: Option<PathBuf>,
    usual: Vec<PathBuf>,
}

impl Sources {
    /// By conninfo, else by the environment.
    pub fn of(words: &Words, surroundings: &Surroundings<'_>) -> Self {
        let either = |word: &str, variable: &str| {
            let given = words.get(word).cloned();
            let value = given.or_else(|| (surroundings.variable)(variable));
            value.filter(|value| !value.is_empty())
        };
        let system = (surroundings.variable)("PGSYSCONFDIR").unwrap_or(SYSTEM_FOLDER.into());
        let home = surroundings.home.as_ref();
        let usual = home.map(|home| home.join(".pg_service.conf"));
        let named: Option<PathBuf> = either("servicefile", "PGSERVICEFILE").map(Into::into);
        Self {
            service: either("service", "PGSERVICE"),
            usual: usual
                .filter(|_| named.is_none())
                .into_iter()
                .chain([Path::new(&system).join("pg_service.conf")])
                .collect(),
            named,
        }
    }
}

/// The words of the service; none where no service is asked for.
pub fn look_up(sources: &Sources) -> Result<Words, ConninfoError> {
    let Some(service) = &sources.service else {
        return Ok(Words::new());
    };
    let mut looked_in = Vec::new();
    if let Some(path) = &sources.named {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let reason = crate::reactor::reason(&error);
            problem(format!(
                "cannot read the service file {}: {reason}",
                path.display()
            ))
        })?;
        if let Some(words) = find(&text, service, &path.display().to_string())? {
            return Ok(words);
        }
        looked_in.push(path.display().to_string());
    }
    for path in &sources.usual {
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        if let Some(words) = find(&text, service, &path.display().to_string())? {
            return Ok(words);
        }
        looked_in.push(path.display().to_string());
    }
    let hint = if looked_in.is_empty() {
        "there is no service file; PGSERVICEFILE names one".to_string()
    } else {
        format!("looked in {}", looked_in.join(", "))
    };
    Err(problem_with_hint(
        format!("no service is named '{service}'"),
        hint,
    ))
}

/// The words of a service in a file's text.
fn find(text: &str, service: &str, file: &str) -> Result<Option<Words>, ConninfoError> {
    let mut found: Option<Words> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |what: &str| problem(format!("{file}, line {}: {what}", number + 1));
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if name.strip_suffix(']') == Some(service) {
                found = Some(Words::new());
            }
            continue;
        }
        let Some(words) = &mut found else {
            continue;
        };
        if line.starts_with("ldap") && !line.contains('=') || line.starts_with("ldap://") {
            return Err(wrong("LDAP look-up is not built in"));
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| wrong("no '=' in a line of a service"))?;
        if matches!(name, "service" | "servicefile") {
            return Err(wrong(&format!("a service cannot have the word '{name}'")));
        }
        if !is_known(name) {
            return Err(ConninfoError {
                message: format!("{file}, line {}: unknown word '{name}'", number + 1),
                ..unknown_word(name)
            });
        }
        // The first one counts, as in libpq.
        words.entry(name.into()).or_insert(value.into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# services\n[a]\nhost=one\nport=1\nhost=two\n\n[b]\nhots=x\n[c]\nhost\n";

    #[test]
    fn a_service_has_its_own_words_only() {
        let words = find(TEXT, "a", "f").unwrap().unwrap();
        let expected =
            [("host", "one"), ("port", "1")].map(|(n, v)| (n.to_string(), v.to_string()));
        assert_eq!(Words::from(expected), words);
        assert_eq!(None, find(TEXT, "z", "f").unwrap());
    }

    #[test]
    fn mistakes_have_their_line() {
        let error = find(TEXT, "b", "f").unwrap_err();
        assert_eq!(
            (
                "f, line 8: unknown word 'hots'",
                Some("did you mean 'host'?")
            ),
            (error.message.as_str(), error.hint.as_deref())
        );
        assert_eq!(
            "f, line 10: no '=' in a line of a service",
            find(TEXT, "c", "f").unwrap_err().message
        );
    }

    #[test]
    fn a_service_that_is_nowhere_says_where_it_was_looked_for() {
        let sources = Sources {
            service: Some("x".into()),
            named: None,
            usual: vec!["/nowhere".into()],
        };
        assert_eq!(
            "no service is named 'x'",
            look_up(&sources).unwrap_err().message
        );
        assert_eq!(Ok(Words::new()), look_up(&Sources::default()));
    }
}
