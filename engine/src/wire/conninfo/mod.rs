//! Where to connect: libpq's conninfo words and URIs, completed as libpq does by a service file, the PG* variables and
//! defaults. What libpq knows and this engine cannot do is an error that says so.
//!
//! ```text
//! text ─words/uri─► words ─service─► words ─variables─► words ─choices, hosts─► Target, or every problem
//! ```

mod choices;
mod hosts;
mod keywords;
#[cfg(test)]
pub mod tests;
mod uri;
pub mod words;

use std::path::{Path, PathBuf};

use super::target::Target;
use super::{passfile, service};
use choices::Choices;
use keywords::{KEYWORDS, SETTING_VARIABLES, Use};
use words::Words;

/// What surrounds the process; a value in tests.
pub struct Surroundings<'a> {
    /// An environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Name of the operating system's user.
    pub os_user: Option<String>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Whether a socket is there.
    pub exists: &'a dyn Fn(&Path) -> bool,
}

/// One thing that is wrong with a conninfo, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConninfoError {
    /// One line.
    pub message: String,
    /// Advice.
    pub hint: Option<String>,
}

/// Something is wrong, and it is plain what to do.
pub fn problem(message: impl Into<String>) -> ConninfoError {
    ConninfoError {
        message: message.into(),
        hint: None,
    }
}

/// Something is wrong.
pub fn problem_with_hint(message: impl Into<String>, hint: impl Into<String>) -> ConninfoError {
    ConninfoError {
        message: message.into(),
        hint: Some(hint.into()),
    }
}

/// Work out the target of a conninfo in this process's surroundings. The error holds every problem.
pub fn resolve(conninfo: &str) -> Result<Target, Vec<ConninfoError>> {
    resolve_words(parse(conninfo).map_err(|error| vec![error])?)
}

/// As `resolve`, of words.
pub fn resolve_words(words: Words) -> Result<Target, Vec<ConninfoError>> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let account = passfile::account();
    let surroundings = Surroundings {
        variable: &variable,
        os_user: account.as_ref().map(|(name, _)| name.clone()),
        home: variable("HOME")
            .map(PathBuf::from)
            .or(account.map(|(_, home)| home)),
        exists: &|path| path.exists(),
    };
    resolve_words_in(words, &surroundings)
}

/// As `resolve`, with the surroundings as values.
#[cfg(test)]
pub fn resolve_in(
    conninfo: &str,
    surroundings: &Surroundings<'_>,
) -> Result<Target, Vec<ConninfoError>> {
    resolve_words_in(parse(conninfo).map_err(|error| vec![error])?, surroundings)
}

fn resolve_words_in(
    mut words: Words,
    surroundings: &Surroundings<'_>,
) -> Result<Target, Vec<ConninfoError>> {
    let mut problems = bad_words(&words);
    let sources = service::Sources::of(&words, surroundings);
    match service::look_up(&sources) {
        Ok(found) => {
            for (name, value) in found {
                words.entry(name).or_insert(value);
            }
        }
        Err(error) => problems.push(error),
    }
    add_variables(&mut words, surroundings);
    problems.extend(refused(&words));
    match target(&words, surroundings, &mut problems) {
        Some(target) if problems.is_empty() => Ok(target),
        _ => Err(problems),
    }
}

/// The words of a conninfo, in either form. A bare word without `=` is a database name.
///
/// # Errors
/// It has neither form.
pub fn parse(conninfo: &str) -> Result<Words, ConninfoError> {
    let mut words = match uri::without_scheme(conninfo) {
        Some(rest) => uri::parse(rest)?,
        None if !conninfo.trim().is_empty() && !conninfo.contains('=') => {
            Words::from([("dbname".into(), conninfo.trim().into())])
        }
        None => words::parse(conninfo)?,
    };
    // libpq's old name.
    if let Some(value) = words.remove("requiressl") {
        let mode = if value.starts_with('1') {
            "require"
        } else {
            "prefer"
        };
        words.insert("sslmode".into(), mode.into());
    }
    Ok(words)
}

/// Words nobody knows.
fn bad_words(words: &Words) -> Vec<ConninfoError> {
    let unknown = words.keys().filter(|name| keywords::use_of(name).is_none());
    unknown.map(|name| unknown_word(name)).collect()
}

/// What to say of a word nobody knows.
pub fn unknown_word(name: &str) -> ConninfoError {
    ConninfoError {
        message: format!("conninfo has an unknown word '{name}'"),
        hint: keywords::nearest(name).map(|near| format!("did you mean '{near}'?")),
    }
}

/// Whether libpq has such a word.
pub fn is_known(name: &str) -> bool {
    keywords::use_of(name).is_some()
}

/// Variables fill what is not given.
fn add_variables(words: &mut Words, surroundings: &Surroundings<'_>) {
    for (word, variable, _) in KEYWORDS {
        if variable.is_empty() || words.contains_key(word) {
            continue;
        }
        if let Some(value) = (surroundings.variable)(variable) {
            words.insert(word.into(), value);
        }
    }
    if let Some(value) = words.remove("requiressl") {
        if value.starts_with('1') {
            words.entry("sslmode".into()).or_insert("require".into());
        }
    }
}

/// Words that ask for what is not there.
fn refused(words: &Words) -> Vec<ConninfoError> {
    let asked = KEYWORDS.iter().filter_map(|(word, _, use_)| match use_ {
        Use::Refused(hint) if words.get(*word).is_some_and(|value| !value.is_empty()) => Some(
            problem_with_hint(format!("conninfo word '{word}' cannot be followed"), *hint),
        ),
        _ => None,
    });
    asked.collect()
}

/// Put the target together from complete words; what is wrong is added to `problems`.
fn target(
    words: &Words,
    surroundings: &Surroundings<'_>,
    problems: &mut Vec<ConninfoError>,
) -> Option<Target> {
    let word = |name: &str| words.get(name).filter(|value| !value.is_empty()).cloned();
    let user = word("user").or_else(|| surroundings.os_user.clone());
    if user.is_none() {
        problems.push(problem_with_hint("no user to connect as", "add user=NAME"));
    }
    let user = user.unwrap_or_default();
    let database = word("dbname").unwrap_or_else(|| user.clone());
    let mut choices = Choices::new(words, surroundings.home.as_ref());
    let (passfile, passfile_problem) = password_file(words, surroundings);
    let account = hosts::Account {
        user: &user,
        database: &database,
        password: words
            .get("password")
            .map(String::as_str)
            .filter(|value| !value.is_empty()),
        passfile: passfile.as_deref(),
    };
    let hosts = hosts::hosts(words, &account, surroundings)
        .map_err(|found| problems.extend(found))
        .ok();
    choices.check_the_rest();
    let target = Target {
        hosts: hosts.unwrap_or_default(),
        host_order: choices.host_order(),
        session_kind: choices.session_kind(),
        parameters: parameters(words, &user, &database, surroundings),
        tls: choices.tls(),
        channel_binding: choices.channel_binding(),
        allowed_methods: choices.allowed_methods(),
        socket_options: choices.socket_options(),
        required_peer: word("requirepeer"),
        connect_timeout: choices.connect_timeout(),
        passfile_problem,
        user,
    };
    problems.extend(choices.problems);
    (!target.hosts.is_empty()).then_some(target)
}

/// The password file to look in, and why it may not be used.
fn password_file(
    words: &Words,
    surroundings: &Surroundings<'_>,
) -> (Option<PathBuf>, Option<String>) {
    let usual = || surroundings.home.as_ref().map(|home| home.join(".pgpass"));
    let named = words.get("passfile").filter(|value| !value.is_empty());
    match named.map(PathBuf::from).or_else(usual) {
        None => (None, None),
        Some(path) => match passfile::problem_of(&path) {
            None => (Some(path), None),
            problem => (None, problem),
        },
    }
}

/// Parameters of the start-up message.
fn parameters(
    words: &Words,
    user: &str,
    database: &str,
    surroundings: &Surroundings<'_>,
) -> Vec<(String, String)> {
    let word = |name: &str| words.get(name).filter(|value| !value.is_empty()).cloned();
    let application = word("application_name").or_else(|| word("fallback_application_name"));
    let mut parameters = vec![
        ("user".to_string(), user.to_string()),
        ("database".to_string(), database.to_string()),
        (
            "application_name".to_string(),
            application.unwrap_or_else(|| "pgdyno-engine".into()),
        ),
    ];
    if let Some(options) = word("options") {
        parameters.push(("options".into(), options));
    }
    if let Some(encoding) = word("client_encoding") {
        // `auto` means the encoding of the locale; scripts and results here are UTF-8.
        let encoding = if encoding == "auto" {
            "UTF8".into()
        } else {
            encoding
        };
        parameters.push(("client_encoding".into(), encoding));
    }
    for (variable, setting) in SETTING_VARIABLES {
        if let Some(value) = (surroundings.variable)(variable) {
            parameters.push((setting.into(), value));
        }
    }
    parameters
}
