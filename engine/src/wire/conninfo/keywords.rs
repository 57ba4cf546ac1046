//! The words libpq knows, their environment variables, and what becomes of each here.

/// What becomes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is followed.
    Followed,
    /// It changes nothing in how this engine connects; said so in `docs/engine.md`.
    WithoutEffect,
    /// Following it is not possible and passing over it would be wrong: an error with this advice.
    Refused(&'static str),
}

use Use::{Followed, Refused, WithoutEffect};

const NO_GSS: &str = "leave it out; GSSAPI is not built in";
const NO_OAUTH: &str = "leave it out; OAuth is not built in";
const NO_SCRAM_KEYS: &str = "give the password instead";

/// Word, its variable (or none), its use.
pub const KEYWORDS: [(&str, &str, Use); 54] = [
    ("service", "PGSERVICE", Followed),
    ("servicefile", "PGSERVICEFILE", Followed),
    ("host", "PGHOST", Followed),
    ("hostaddr", "PGHOSTADDR", Followed),
    ("port", "PGPORT", Followed),
    ("dbname", "PGDATABASE", Followed),
    ("user", "PGUSER", Followed),
    ("password", "PGPASSWORD", Followed),
    ("passfile", "PGPASSFILE", Followed),
    ("options", "PGOPTIONS", Followed),
    ("application_name", "PGAPPNAME", Followed),
    ("fallback_application_name", "", Followed),
    ("client_encoding", "PGCLIENTENCODING", Followed),
    ("connect_timeout", "PGCONNECT_TIMEOUT", Followed),
    ("keepalives", "", Followed),
    ("keepalives_idle", "", Followed),
    ("keepalives_interval", "", Followed),
    ("keepalives_count", "", Followed),
    ("tcp_user_timeout", "", Followed),
    ("sslmode", "PGSSLMODE", Followed),
    ("sslnegotiation", "PGSSLNEGOTIATION", Followed),
    ("sslcompression", "PGSSLCOMPRESSION", WithoutEffect),
    ("sslcert", "PGSSLCERT", Followed),
    ("sslkey", "PGSSLKEY", Followed),
    ("sslcertmode", "PGSSLCERTMODE", Followed),
    ("sslpassword", "", Followed),
    ("sslrootcert", "PGSSLROOTCERT", Followed),
    ("sslcrl", "PGSSLCRL", Followed),
    (
        "sslcrldir",
        "PGSSLCRLDIR",
        Refused("name one file with sslcrl; a folder is not built in"),
    ),
    ("sslsni", "PGSSLSNI", Followed),
    (
        "sslkeylogfile",
        "",
        Refused("leave it out; keys are never written down"),
    ),
    (
        "ssl_min_protocol_version",
        "PGSSLMINPROTOCOLVERSION",
        Followed,
    ),
    (
        "ssl_max_protocol_version",
        "PGSSLMAXPROTOCOLVERSION",
        Followed,
    ),
    ("min_protocol_version", "PGMINPROTOCOLVERSION", Followed),
    ("max_protocol_version", "PGMAXPROTOCOLVERSION", Followed),
    ("requirepeer", "PGREQUIREPEER", Followed),
    ("require_auth", "PGREQUIREAUTH", Followed),
    ("channel_binding", "PGCHANNELBINDING", Followed),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Followed),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Followed),
    ("gssencmode", "PGGSSENCMODE", Followed),
    ("krbsrvname", "PGKRBSRVNAME", WithoutEffect),
    ("gsslib", "PGGSSLIB", WithoutEffect),
    ("gssdelegation", "PGGSSDELEGATION", Refused(NO_GSS)),
    (
        "replication",
        "",
        Refused("leave it out; a replication connection runs no transactions"),
    ),
    ("scram_client_key", "", Refused(NO_SCRAM_KEYS)),
    ("scram_server_key", "", Refused(NO_SCRAM_KEYS)),
    ("oauth_issuer", "", Refused(NO_OAUTH)),
    ("oauth_client_id", "", Refused(NO_OAUTH)),
    ("oauth_client_secret", "", Refused(NO_OAUTH)),
    ("oauth_scope", "", Refused(NO_OAUTH)),
    ("authtype", "PGAUTHTYPE", WithoutEffect),
    ("tty", "PGTTY", WithoutEffect),
    ("requiressl", "PGREQUIRESSL", Followed),
];

/// Variables that libpq hands to the server as settings.
pub const SETTING_VARIABLES: [(&str, &str); 3] = [
    ("PGDATESTYLE", "datestyle"),
    ("PGTZ", "timezone"),
    ("PGGEQO", "geqo"),
];

/// What becomes of a word; None: it is not known.
pub fn use_of(word: &str) -> Option<Use> {
    let found = KEYWORDS.iter().find(|(name, _, _)| *name == word);
    found.map(|(_, _, use_)| *use_)
}

/// The known word that differs least from one that is not known, if it is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    const NEAR: usize = 2;
    let names = KEYWORDS.iter().map(|(name, _, _)| *name);
    let nearest = names.min_by_key(|name| edits(word, name))?;
    (edits(word, nearest) <= NEAR).then_some(nearest)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one text the other (optimal string
/// alignment).
fn edits(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let swapped =
                    (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                        .then(|| table[i - 2][j - 2] + 1);
                replaced
                    .min(table[i - 1][j] + 1)
                    .min(table[i][j - 1] + 1)
                    .min(swapped.unwrap_or(usize::MAX))
            };
        }
    }
    table[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near() {
        assert_eq!(Some("host"), nearest("hots"));
        assert_eq!(Some("sslmode"), nearest("ssl_mode"));
        assert_eq!(None, nearest("colour_of_the_sky"));
    }
}
