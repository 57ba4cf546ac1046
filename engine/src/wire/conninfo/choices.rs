//! Words that choose from a few values, numbers and switches; every bad value is noted, none hides another.

use std::path::PathBuf;
use std::time::Duration;

use super::words::Words;
use super::{ConninfoError, problem, problem_with_hint};
use crate::wire::target::{
    AllowedMethods, AuthenticationMethod, ChannelBindingChoice, HostOrder, Roots, SessionKind,
    SocketOptions, SslMode, SslNegotiation, TlsChoice, TlsFile, TlsVersion,
};

/// Reads choices and keeps what is wrong with them.
pub struct Choices<'a> {
    words: &'a Words,
    /// Folder of the user's TLS files.
    folder: Option<PathBuf>,
    /// What is wrong so far.
    pub problems: Vec<ConninfoError>,
}

const SSL_MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];
const NEGOTIATIONS: [(&str, SslNegotiation); 2] = [
    ("postgres", SslNegotiation::Postgres),
    ("direct", SslNegotiation::Direct),
];
const SESSION_KINDS: [(&str, SessionKind); 6] = [
    ("any", SessionKind::Any),
    ("read-write", SessionKind::ReadWrite),
    ("read-only", SessionKind::ReadOnly),
    ("primary", SessionKind::Primary),
    ("standby", SessionKind::Standby),
    ("prefer-standby", SessionKind::PreferStandby),
];
const HOST_ORDERS: [(&str, HostOrder); 2] = [
    ("disable", HostOrder::AsGiven),
    ("random", HostOrder::Random),
];
const CHANNEL_BINDINGS: [(&str, ChannelBindingChoice); 3] = [
    ("disable", ChannelBindingChoice::Disable),
    ("prefer", ChannelBindingChoice::Prefer),
    ("require", ChannelBindingChoice::Require),
];
/// TLS 1.0 and 1.1 can be named and are never spoken.
const TLS_VERSIONS: [(&str, Option<TlsVersion>); 4] = [
    ("TLSv1", None),
    ("TLSv1.1", None),
    ("TLSv1.2", Some(TlsVersion::Tls12)),
    ("TLSv1.3", Some(TlsVersion::Tls13)),
];
const METHODS: [(&str, AuthenticationMethod); 7] = [
    ("password", AuthenticationMethod::Password),
    ("md5", AuthenticationMethod::Md5),
    ("scram-sha-256", AuthenticationMethod::Scram),
    ("none", AuthenticationMethod::None),
    ("gss", AuthenticationMethod::Other),
    ("sspi", AuthenticationMethod::Other),
    ("oauth", AuthenticationMethod::Other),
];

impl<'a> Choices<'a> {
    /// Nothing read yet. `home` is the user's.
    pub fn new(words: &'a Words, home: Option<&PathBuf>) -> Self {
        Self {
            words,
            folder: home.map(|home| home.join(".postgresql")),
            problems: Vec::new(),
        }
    }

    /// The value of a word; an empty one is none.
    fn word(&self, name: &str) -> Option<&'a str> {
        self.words
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The value of a word, one of a few.
    fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)], default: T) -> T {
        let Some(value) = self.word(name) else {
            return default;
        };
        if let Some((_, chosen)) = choices.iter().find(|(known, _)| *known == value) {
            return *chosen;
        }
        let names: Vec<_> = choices.iter().map(|(known, _)| *known).collect();
        self.problems.push(problem_with_hint(
            format!("{name} '{value}' is not known"),
            format!("one of {}", names.join(", ")),
        ));
        default
    }

    /// A whole number.
    fn number(&mut self, name: &str) -> Option<i32> {
        let value = self.word(name)?;
        let number = value.trim().parse().ok();
        if number.is_none() {
            self.problems
                .push(problem(format!("{name} '{value}' is not a whole number")));
        }
        number
    }

    /// A number of a socket option; 0 and below mean the system's own.
    fn socket_number(&mut self, name: &str) -> Option<u32> {
        let number = self.number(name)?;
        u32::try_from(number).ok().filter(|&number| number > 0)
    }

    /// `target_session_attrs`.
    pub fn session_kind(&mut self) -> SessionKind {
        self.choice("target_session_attrs", &SESSION_KINDS, SessionKind::Any)
    }

    /// `load_balance_hosts`.
    pub fn host_order(&mut self) -> HostOrder {
        self.choice("load_balance_hosts", &HOST_ORDERS, HostOrder::AsGiven)
    }

    /// `channel_binding`.
    pub fn channel_binding(&mut self) -> ChannelBindingChoice {
        self.choice(
            "channel_binding",
            &CHANNEL_BINDINGS,
            ChannelBindingChoice::Prefer,
        )
    }

    /// `connect_timeout`: 0 and below mean none; libpq never waits less than two seconds.
    pub fn connect_timeout(&mut self) -> Option<Duration> {
        const LEAST_S: u64 = 2;
        let seconds = self.socket_number("connect_timeout")?;
        Some(Duration::from_secs(u64::from(seconds).max(LEAST_S)))
    }

    /// Everything about TCP.
    pub fn socket_options(&mut self) -> SocketOptions {
        SocketOptions {
            keepalives: self.number("keepalives").is_none_or(|number| number != 0),
            keepalives_idle_s: self.socket_number("keepalives_idle"),
            keepalives_interval_s: self.socket_number("keepalives_interval"),
            keepalives_count: self.socket_number("keepalives_count"),
            user_timeout_ms: self.socket_number("tcp_user_timeout"),
        }
    }

    /// `require_auth`: methods that will do, or with `!` those that will not.
    pub fn allowed_methods(&mut self) -> AllowedMethods {
        let Some(value) = self.word("require_auth") else {
            return AllowedMethods::All;
        };
        let entries: Vec<_> = value.split(',').map(str::trim).collect();
        let negated = entries
            .iter()
            .filter(|entry| entry.starts_with('!'))
            .count();
        if negated != 0 && negated != entries.len() {
            self.problems.push(problem_with_hint(
                format!("require_auth '{value}' mixes methods with and without '!'"),
                "name either the methods that will do, or those that will not",
            ));
        }
        let mut methods = Vec::new();
        for entry in entries {
            let name = entry.trim_start_matches('!');
            match METHODS.iter().find(|(known, _)| *known == name) {
                Some((_, method)) => methods.push(*method),
                None => self.problems.push(problem_with_hint(
                    format!("require_auth method '{name}' is not known"),
                    "one of password, md5, scram-sha-256, none, gss, sspi, oauth",
                )),
            }
        }
        if negated > 0 {
            AllowedMethods::Except(methods)
        } else {
            AllowedMethods::Only(methods)
        }
    }

    /// Everything about TLS.
    pub fn tls(&mut self) -> TlsChoice {
        let system = self.word("sslrootcert") == Some("system");
        let default_mode = if system {
            SslMode::VerifyFull
        } else {
            SslMode::default()
        };
        let mode = self.choice("sslmode", &SSL_MODES, default_mode);
        let negotiation = self.choice("sslnegotiation", &NEGOTIATIONS, SslNegotiation::Postgres);
        if system && mode < SslMode::VerifyFull {
            self.problems.push(problem_with_hint(
                format!(
                    "sslrootcert=system is too weak with sslmode={}",
                    name_of(mode)
                ),
                "use sslmode=verify-full: anybody can have a certificate that the system trusts",
            ));
        }
        if negotiation == SslNegotiation::Direct && mode < SslMode::Require {
            self.problems.push(problem_with_hint(
                format!(
                    "sslnegotiation=direct is too weak with sslmode={}",
                    name_of(mode)
                ),
                "use sslmode=require or stricter",
            ));
        }
        let (oldest, newest) = self.tls_versions();
        let certificate_used = self.client_certificate_used();
        TlsChoice {
            mode,
            negotiation,
            roots: if system {
                Roots::System
            } else {
                self.file("sslrootcert", "root.crt")
                    .map_or(Roots::None, Roots::File)
            },
            certificate: self
                .file("sslcert", "postgresql.crt")
                .filter(|_| certificate_used),
            key: self
                .file("sslkey", "postgresql.key")
                .filter(|_| certificate_used),
            revoked: self.file("sslcrl", "root.crl"),
            server_name_sent: self.number("sslsni").is_none_or(|number| number != 0),
            oldest,
            newest,
        }
    }

    /// A file that was named, or the one at its usual place.
    fn file(&self, word: &str, usual: &str) -> Option<TlsFile> {
        match self.word(word) {
            Some(path) => Some(TlsFile {
                path: path.into(),
                named: true,
            }),
            None => self.folder.as_ref().map(|folder| TlsFile {
                path: folder.join(usual),
                named: false,
            }),
        }
    }

    /// `sslcertmode`, and what cannot be done with an own certificate.
    fn client_certificate_used(&mut self) -> bool {
        if self.word("sslpassword").is_some() {
            self.problems.push(problem_with_hint(
                "sslpassword is given, and encrypted keys cannot be read",
                "decrypt the key: openssl pkey -in KEY -out KEY.plain, and protect the file",
            ));
        }
        if self.word("sslcertmode") == Some("require") {
            self.problems.push(problem_with_hint(
                "sslcertmode=require cannot be held here",
                "leave it to the server: clientcert=verify-ca in its pg_hba.conf",
            ));
            return true;
        }
        self.choice("sslcertmode", &[("disable", false), ("allow", true)], true)
    }

    fn tls_versions(&mut self) -> (TlsVersion, TlsVersion) {
        let default = Some(TlsVersion::Tls12);
        let oldest = self.choice("ssl_min_protocol_version", &TLS_VERSIONS, default);
        let newest = self.choice(
            "ssl_max_protocol_version",
            &TLS_VERSIONS,
            Some(TlsVersion::Tls13),
        );
        let oldest = oldest.unwrap_or(TlsVersion::Tls12);
        match newest {
            None => self.problems.push(problem_with_hint(
                "ssl_max_protocol_version is older than TLSv1.2",
                "TLSv1.2 and TLSv1.3 are spoken",
            )),
            Some(newest) if newest < oldest => self.problems.push(problem(
                "ssl_min_protocol_version is newer than ssl_max_protocol_version",
            )),
            Some(_) => {}
        }
        (oldest, newest.unwrap_or(TlsVersion::Tls13))
    }

    /// Words whose only wrong values are those that ask for what is not there.
    pub fn check_the_rest(&mut self) {
        if self.choice(
            "gssencmode",
            &[("disable", false), ("prefer", false), ("require", true)],
            false,
        ) {
            self.problems.push(problem_with_hint(
                "gssencmode=require asks for GSSAPI encryption, which is not built in",
                "use sslmode=require",
            ));
        }
        let versions = [("3.0", true), ("3.2", false), ("latest", false)];
        if !self.choice("min_protocol_version", &versions, true) {
            self.problems.push(problem_with_hint(
                "min_protocol_version asks for more than 3.0",
                "protocol 3.0 is spoken, which every server understands",
            ));
        }
        self.choice("max_protocol_version", &versions, true);
    }
}

fn name_of(mode: SslMode) -> &'static str {
    let found = SSL_MODES.iter().find(|(_, known)| *known == mode);
    found.map_or("", |(name, _)| name)
}
