//! Everything needed to open a session, as plain values: where, as whom, how secured, what kind of server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a server listens.
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

/// One of the servers that may be the right one.
#[derive(Clone, PartialEq, Eq)]
pub struct Host {
    /// Where it listens.
    pub address: Address,
    /// The name its certificate must have: what stood in `host`, else in `hostaddr`.
    pub name: String,
    /// By conninfo, PGPASSWORD or a password file.
    pub password: Option<String>,
}

/// Which servers will do (`target_session_attrs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionKind {
    /// All.
    #[default]
    Any,
    /// Sessions that may write.
    ReadWrite,
    /// Sessions that may not.
    ReadOnly,
    /// Servers that are not in recovery.
    Primary,
    /// Servers that are.
    Standby,
    /// A standby; where there is none, any.
    PreferStandby,
}

/// Order in which hosts are tried (`load_balance_hosts`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOrder {
    /// As they stand.
    #[default]
    AsGiven,
    /// Shuffled for each client.
    Random,
}

/// When to use TLS (`sslmode`); the order is that of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only where the server refuses without.
    Allow,
    /// Where the server can.
    #[default]
    Prefer,
    /// Always; the certificate is looked at only where root certificates are at hand.
    Require,
    /// Always, with a certificate from a trusted authority.
    VerifyCa,
    /// As `VerifyCa`, and the certificate names the host.
    VerifyFull,
}

/// How TLS begins (`sslnegotiation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslNegotiation {
    /// By a request of PostgreSQL's protocol.
    #[default]
    Postgres,
    /// With the first byte (servers from 17).
    Direct,
}

/// A file of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFile {
    /// Where.
    pub path: PathBuf,
    /// Somebody named it: it must be there.
    pub named: bool,
}

/// Whom to trust (`sslrootcert`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// No file is known: home is not.
    None,
    /// Certificates in a file.
    File(TlsFile),
    /// What the operating system trusts.
    System,
}

/// Version of TLS, as far as they can be spoken here; older ones are never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2.
    Tls12,
    /// 1.3.
    Tls13,
}

/// How TLS is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsChoice {
    /// When.
    pub mode: SslMode,
    /// How it begins.
    pub negotiation: SslNegotiation,
    /// Whom to trust.
    pub roots: Roots,
    /// Own certificate.
    pub certificate: Option<TlsFile>,
    /// Its key.
    pub key: Option<TlsFile>,
    /// Certificates that were revoked.
    pub revoked: Option<TlsFile>,
    /// Whether the server is told the name it is known by.
    pub server_name_sent: bool,
    /// Oldest version.
    pub oldest: TlsVersion,
    /// Newest version.
    pub newest: TlsVersion,
}

/// Whether SCRAM is bound to the TLS connection (`channel_binding`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBindingChoice {
    /// Never.
    Disable,
    /// Where the server can.
    #[default]
    Prefer,
    /// Always; every other authentication is refused.
    Require,
}

/// Ways of proving who one is (`require_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationMethod {
    /// Password in clear.
    Password,
    /// Hashed with MD5.
    Md5,
    /// SCRAM-SHA-256, bound to TLS or not.
    Scram,
    /// Nothing was asked.
    None,
    /// GSSAPI, SSPI, OAuth: known by name, not spoken.
    Other,
}

/// Which of them will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedMethods {
    /// Whatever the server asks.
    All,
    /// Only these.
    Only(Vec<AuthenticationMethod>),
    /// All but these.
    Except(Vec<AuthenticationMethod>),
}

impl AllowedMethods {
    /// Whether the server may ask for this.
    pub fn allows(&self, method: AuthenticationMethod) -> bool {
        match self {
            Self::All => true,
            Self::Only(methods) => methods.contains(&method),
            Self::Except(methods) => !methods.contains(&method),
        }
    }
}

/// What the kernel does for TCP connections; None leaves its own values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Whether an idle connection is probed.
    pub keepalives: bool,
    /// Idle seconds before the first probe.
    pub keepalives_idle_s: Option<u32>,
    /// Seconds between probes.
    pub keepalives_interval_s: Option<u32>,
    /// Probes lost before the connection is.
    pub keepalives_count: Option<u32>,
    /// Milliseconds that data may stay unacknowledged.
    pub user_timeout_ms: Option<u32>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            keepalives: true,
            keepalives_idle_s: None,
            keepalives_interval_s: None,
            keepalives_count: None,
            user_timeout_ms: None,
        }
    }
}

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// The servers, in the order of the conninfo; never empty.
    pub hosts: Vec<Host>,
    /// How their order is used.
    pub host_order: HostOrder,
    /// Which of them will do.
    pub session_kind: SessionKind,
    /// As whom.
    pub user: String,
    /// Parameters of the start-up message, `user` and `database` among them.
    pub parameters: Vec<(String, String)>,
    /// How the connection is secured.
    pub tls: TlsChoice,
    /// Whether SCRAM is bound to TLS.
    pub channel_binding: ChannelBindingChoice,
    /// What the server may ask for.
    pub allowed_methods: AllowedMethods,
    /// For TCP.
    pub socket_options: SocketOptions,
    /// The operating system's user who must own a Unix socket's server (`requirepeer`).
    pub required_peer: Option<String>,
    /// How long one address may take.
    pub connect_timeout: Option<Duration>,
    /// A password file that may not be used, and why.
    pub passfile_problem: Option<String>,
}

impl Target {
    /// A target with nothing special about it.
    #[cfg(test)]
    pub fn plain(address: Address, password: Option<&str>) -> Self {
        let mut target = super::conninfo::tests::resolved("host=h user=u sslmode=disable", &[])
            .expect("a valid conninfo");
        target.parameters = vec![("user".into(), "u".into())];
        target.hosts[0].address = address;
        target.hosts[0].password = password.map(Into::into);
        target
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Passwords never reach a log.
        write!(formatter, "Target({self} {:?})", self.parameters)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, host) in self.hosts.iter().enumerate() {
            let separator = if index > 0 { " or " } else { "" };
            write!(formatter, "{separator}{}", host.address)?;
        }
        Ok(())
    }
}

/// Whether a text is the number of an address, of either family.
pub fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}
