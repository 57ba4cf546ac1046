//! Where to connect: libpq's conninfo words and URIs, completed by the PG* variables as libpq does.
//!
//! What libpq knows and this engine cannot do yet (several hosts, TLS, service files) is an error that says so:
//! silently connecting somewhere else, or in the clear, would be worse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::passfile;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The path of a socket; one that begins with `@` is in the abstract namespace.
    Unix(PathBuf),
    /// A name or a number, and a port.
    Tcp(String, u16),
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "{}", path.display()),
            Self::Tcp(host, port) => write!(formatter, "{host}, port {port}"),
        }
    }
}

/// Everything needed to open a session.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Where.
    pub address: Address,
    /// As whom.
    pub user: String,
    /// By conninfo, PGPASSWORD or a password file.
    pub password: Option<String>,
    /// Parameters of the start-up message, `user` and `database` among them.
    pub parameters: Vec<(String, String)>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password never reaches a log.
        write!(
            formatter,
            "Target({:?} {:?})",
            self.address, self.parameters
        )
    }
}

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

/// What is wrong with a conninfo, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConninfoError {
    /// One line.
    pub message: String,
    /// Advice.
    pub hint: Option<String>,
}

fn error(message: impl Into<String>) -> ConninfoError {
    ConninfoError {
        message: message.into(),
        hint: None,
    }
}

fn error_with_hint(message: impl Into<String>, hint: &str) -> ConninfoError {
    ConninfoError {
        message: message.into(),
        hint: Some(hint.into()),
    }
}

type Words = BTreeMap<String, String>;

/// Words that reach the server in the start-up message, and the name they have there.
const SERVER_PARAMETERS: [(&str, &str); 2] = [
    ("options", "options"),
    ("client_encoding", "client_encoding"),
];

/// Variables that become words when the conninfo does not have them.
const VARIABLES: [(&str, &str); 12] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGDATABASE", "dbname"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGOPTIONS", "options"),
    ("PGAPPNAME", "application_name"),
    ("PGSSLMODE", "sslmode"),
    ("PGCLIENTENCODING", "client_encoding"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
];

/// Variables that libpq hands to the server as settings.
const SETTING_VARIABLES: [(&str, &str); 3] = [
    ("PGDATESTYLE", "datestyle"),
    ("PGTZ", "timezone"),
    ("PGGEQO", "geqo"),
];

/// Words of libpq that change nothing in how this engine connects.
const WITHOUT_EFFECT: [&str; 33] = [
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "gssencmode",
    "krbsrvname",
    "gsslib",
    "gssdelegation",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslrootcert",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "sslcertmode",
    "sslcompression",
    "sslnegotiation",
    "sslkeylogfile",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "min_protocol_version",
    "max_protocol_version",
    "scram_client_key",
    "scram_server_key",
    "oauth_issuer",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_scope",
    "servicefile",
    "load_balance_hosts",
];

const KNOWN: [&str; 17] = [
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "passfile",
    "options",
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "sslmode",
    "target_session_attrs",
    "channel_binding",
    "require_auth",
    "requirepeer",
    "service",
];

const NEEDS_TLS: &str = "use sslmode=prefer or disable; TLS is not built in yet";

/// Work out the target of a conninfo in this process's surroundings.
pub fn resolve(conninfo: &str) -> Result<Target, ConninfoError> {
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
    resolve_in(conninfo, &surroundings)
}

/// As `resolve`, with the surroundings as values.
pub fn resolve_in(
    conninfo: &str,
    surroundings: &Surroundings<'_>,
) -> Result<Target, ConninfoError> {
    let mut words = parse(conninfo)?;
    for name in words.keys() {
        if !KNOWN.contains(&name.as_str()) && !WITHOUT_EFFECT.contains(&name.as_str()) {
            return Err(error(format!("conninfo has an unknown word '{name}'")));
        }
    }
    words.retain(|_, value| !value.is_empty());
    for (variable, word) in VARIABLES {
        if let Some(value) = (surroundings.variable)(variable) {
            words.entry(word.into()).or_insert(value);
        }
    }
    refuse_what_is_missing(&words)?;
    target(&words, surroundings)
}

/// Errors for what libpq could do and this engine cannot.
fn refuse_what_is_missing(words: &Words) -> Result<(), ConninfoError> {
    let word = |name: &str| words.get(name).map_or("", String::as_str);
    match word("sslmode") {
        "" | "disable" | "allow" | "prefer" => {}
        mode @ ("require" | "verify-ca" | "verify-full") => {
            return Err(error_with_hint(
                format!("sslmode={mode} asks for TLS"),
                NEEDS_TLS,
            ));
        }
        mode => return Err(error(format!("sslmode '{mode}' is not known"))),
    }
    if word("channel_binding") == "require" {
        return Err(error_with_hint(
            "channel_binding=require asks for TLS",
            NEEDS_TLS,
        ));
    }
    if ["host", "hostaddr", "port"]
        .iter()
        .any(|name| word(name).contains(','))
    {
        return Err(error_with_hint(
            "conninfo has several hosts",
            "name one host; lists are not built in yet",
        ));
    }
    if !matches!(word("target_session_attrs"), "" | "any") {
        return Err(error_with_hint(
            format!(
                "target_session_attrs={} is not built in yet",
                word("target_session_attrs")
            ),
            "name the server you mean",
        ));
    }
    for name in ["service", "require_auth", "requirepeer"] {
        if !word(name).is_empty() {
            return Err(error(format!("conninfo word '{name}' is not built in yet")));
        }
    }
    Ok(())
}

/// Put the target together from complete words.
fn target(words: &Words, surroundings: &Surroundings<'_>) -> Result<Target, ConninfoError> {
    let port_text = words.get("port").map_or("5432", String::as_str);
    let port = port_text.parse().ok().filter(|&port: &u16| port > 0);
    let port = port.ok_or_else(|| error(format!("port '{port_text}' is not a port number")))?;
    let address = address(words, port, surroundings);
    let user = words
        .get("user")
        .cloned()
        .or_else(|| surroundings.os_user.clone());
    let user = user.ok_or_else(|| error_with_hint("no user to connect as", "add user=NAME"))?;
    let database = words.get("dbname").cloned().unwrap_or_else(|| user.clone());
    let application = words
        .get("application_name")
        .or(words.get("fallback_application_name"));
    let mut parameters = vec![
        ("user".to_string(), user.clone()),
        ("database".to_string(), database.clone()),
        (
            "application_name".to_string(),
            application
                .cloned()
                .unwrap_or_else(|| "pgdyno-engine".into()),
        ),
    ];
    for (word, parameter) in SERVER_PARAMETERS {
        if let Some(value) = words.get(word) {
            parameters.push((parameter.into(), value.clone()));
        }
    }
    for (variable, setting) in SETTING_VARIABLES {
        if let Some(value) = (surroundings.variable)(variable) {
            parameters.push((setting.into(), value));
        }
    }
    let password = words.get("password").cloned().or_else(|| {
        let home_file = surroundings.home.as_ref().map(|home| home.join(".pgpass"));
        let file = words.get("passfile").map(PathBuf::from).or(home_file)?;
        // As libpq: a socket counts as localhost unless its folder was named.
        let host = match (words.get("host"), &address) {
            (Some(host), _) => host,
            (None, Address::Tcp(host, _)) => host,
            (None, Address::Unix(_)) => "localhost",
        };
        passfile::look_up(&file, [host, port_text, &database, &user])
    });
    Ok(Target {
        address,
        user,
        password,
        parameters,
    })
}

/// A folder means a socket in it; no host at all: the usual socket where there is one, else loopback.
fn address(words: &Words, port: u16, surroundings: &Surroundings<'_>) -> Address {
    let socket = |folder: &str| PathBuf::from(format!("{folder}/.s.PGSQL.{port}"));
    if let Some(number) = words.get("hostaddr") {
        return Address::Tcp(number.clone(), port);
    }
    match words.get("host") {
        Some(host) if host.starts_with(['/', '@']) => Address::Unix(socket(host)),
        Some(host) => Address::Tcp(host.clone(), port),
        None => ["/var/run/postgresql", "/tmp"]
            .map(socket)
            .into_iter()
            .find(|path| (surroundings.exists)(path))
            .map_or_else(|| Address::Tcp("localhost".into(), port), Address::Unix),
    }
}

/// The words of a conninfo, in either form. A bare word without `=` is a database name.
fn parse(conninfo: &str) -> Result<Words, ConninfoError> {
    let rest = conninfo
        .strip_prefix("postgresql://")
        .or_else(|| conninfo.strip_prefix("postgres://"));
    match rest {
        Some(rest) => parse_uri(rest),
        None if !conninfo.trim().is_empty() && !conninfo.contains('=') => {
            Ok(Words::from([("dbname".into(), conninfo.trim().into())]))
        }
        None => parse_words(conninfo),
    }
}

/// `name = value` pairs; values may stand in single quotes; a backslash takes the next character as it is.
fn parse_words(conninfo: &str) -> Result<Words, ConninfoError> {
    let mut words = Words::new();
    let mut rest = conninfo.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once('=')
            .ok_or_else(|| error(format!("conninfo: no '=' after '{}'", rest.trim())))?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(error(format!(
                "conninfo: no '=' after '{}'",
                name.split_whitespace().next().unwrap_or("")
            )));
        }
        let (value, after) = parse_value(after.trim_start()).ok_or_else(|| {
            error(format!(
                "conninfo: the quote after '{name}=' is never closed"
            ))
        })?;
        words.insert(name.into(), value);
        rest = after.trim_start();
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
            blank if !quoted && blank.is_whitespace() => return Some((value, &text[at..])),
            other => value.push(other),
        }
    }
    if quoted { None } else { Some((value, "")) }
}

/// `[user[:password]@][host][:port][/dbname][?name=value[&…]]`.
fn parse_uri(rest: &str) -> Result<Words, ConninfoError> {
    let mut words = Words::new();
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = front.split_once('/').unwrap_or((front, ""));
    let (account, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, port) = split_port(host)?;
    for (name, value) in [
        ("user", user),
        ("password", password),
        ("host", host),
        ("port", port),
        ("dbname", database),
    ] {
        if !value.is_empty() {
            words.insert(name.into(), percent_decode(value)?);
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| error(format!("conninfo URI: no '=' after '{pair}'")))?;
        let (name, value) = (percent_decode(name)?, percent_decode(value)?);
        match (name.as_str(), value.as_str()) {
            ("ssl", "true") => words.insert("sslmode".into(), "require".into()),
            _ => words.insert(name, value),
        };
    }
    Ok(words)
}

/// Host and port of a URI; an IPv6 address stands in brackets.
fn split_port(host: &str) -> Result<(&str, &str), ConninfoError> {
    if let Some(inside) = host.strip_prefix('[') {
        let (address, after) = inside
            .split_once(']')
            .ok_or_else(|| error("conninfo URI: '[' is never closed"))?;
        return Ok((address, after.strip_prefix(':').unwrap_or("")));
    }
    Ok(host.rsplit_once(':').unwrap_or((host, "")))
}

/// `%41` → `A`.
fn percent_decode(text: &str) -> Result<String, ConninfoError> {
    let bad = || error(format!("conninfo URI: '{text}' has a bad % sequence"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(conninfo: &str, variables: &[(&str, &str)]) -> Result<Target, ConninfoError> {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.to_string())
        };
        let surroundings = Surroundings {
            variable: &variable,
            os_user: Some("me".into()),
            home: None,
            exists: &|path| path.starts_with("/tmp"),
        };
        resolve_in(conninfo, &surroundings)
    }

    #[test]
    fn words_and_uris_mean_the_same() {
        let words = resolved(
            r"host=db.example port=5433 dbname='a b\'c' user=jo password=s\ t",
            &[],
        )
        .unwrap();
        let uri = resolved("postgresql://jo:s%20t@db.example:5433/a%20b'c", &[]).unwrap();
        assert_eq!(words, uri);
        assert_eq!(Address::Tcp("db.example".into(), 5433), words.address);
        assert_eq!(
            ("database".to_string(), "a b'c".to_string()),
            words.parameters[1]
        );
    }

    #[test]
    fn what_is_missing_comes_from_the_surroundings() {
        let target = resolved("", &[("PGPASSWORD", "x"), ("PGOPTIONS", "-c a=b")]).unwrap();
        assert_eq!(Address::Unix("/tmp/.s.PGSQL.5432".into()), target.address);
        assert_eq!(
            ("me", Some("x")),
            (target.user.as_str(), target.password.as_deref())
        );
        assert!(
            target
                .parameters
                .contains(&("options".into(), "-c a=b".into()))
        );
        assert_eq!("work", resolved("work", &[]).unwrap().parameters[1].1);
        assert_eq!(
            "conninfo",
            resolved("user=conninfo", &[("PGUSER", "env")])
                .unwrap()
                .user
        );
    }

    #[test]
    fn sockets_and_addresses() {
        assert_eq!(
            Address::Unix("/run/x/.s.PGSQL.7".into()),
            resolved("host=/run/x port=7", &[]).unwrap().address
        );
        assert_eq!(
            Address::Tcp("::1".into(), 7),
            resolved("postgres://[::1]:7/", &[]).unwrap().address
        );
        assert_eq!(
            Address::Unix("/run/x/.s.PGSQL.5432".into()),
            resolved("postgresql:///d?host=/run/x", &[])
                .unwrap()
                .address
        );
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for (conninfo, message) in [
            ("sslmode=require", "sslmode=require asks for TLS"),
            ("host=a,b", "conninfo has several hosts"),
            ("hots=a", "conninfo has an unknown word 'hots'"),
            ("port=0", "port '0' is not a port number"),
            (
                "user='x",
                "conninfo: the quote after 'user=' is never closed",
            ),
            ("a b=c", "conninfo: no '=' after 'a'"),
            (
                "postgresql://h/d%zz",
                "conninfo URI: 'd%zz' has a bad % sequence",
            ),
        ] {
            assert_eq!(message, resolved(conninfo, &[]).unwrap_err().message);
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        assert!(!format!("{:?}", resolved("password=geheim", &[]).unwrap()).contains("geheim"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}|postgresql://.{0,80}") {
            let _ = resolved(&text, &[]);
        }
    }
}
