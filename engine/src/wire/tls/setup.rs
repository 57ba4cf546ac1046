//! What all connections to one host share: trust, own certificate, versions. Made once, before the measurement.

use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::files;
use super::verification::{Authorities, Verification};
use crate::wire::conninfo::{ConninfoError, problem, problem_with_hint};
use crate::wire::target::{Address, Host, Roots, SslMode, Target, TlsChoice, TlsVersion};

/// The protocol's name in TLS, as PostgreSQL 17 and later want it.
const PROTOCOL_NAME: &[u8] = b"postgresql";

/// See the module.
#[derive(Clone, Debug)]
pub struct TlsSetup {
    /// For rustls.
    pub config: Arc<ClientConfig>,
    /// The host's name as rustls sends it.
    pub server_name: ServerName<'static>,
}

/// What is read from files, once for all hosts.
struct Material {
    provider: Arc<CryptoProvider>,
    authorities: Option<(
        Arc<WebPkiServerVerifier>,
        Vec<CertificateDer<'static>>,
        bool,
    )>,
    own: Option<Arc<SingleCertAndKey>>,
}

impl TlsSetup {
    /// A setup for each host of a target; None where the connection is never encrypted. The error holds every problem.
    pub fn for_hosts(target: &Target) -> Result<Vec<Option<Self>>, Vec<ConninfoError>> {
        let encrypted = |host: &Host| {
            target.tls.mode != SslMode::Disable && matches!(host.address, Address::Tcp(..))
        };
        if !target.hosts.iter().any(encrypted) {
            return Ok(vec![None; target.hosts.len()]);
        }
        let material = Material::read(&target.tls)?;
        let setups = target.hosts.iter().map(|host| {
            if encrypted(host) {
                material.setup(host, &target.tls).map(Some)
            } else {
                Ok(None)
            }
        });
        setups
            .collect::<Result<_, _>>()
            .map_err(|error| vec![error])
    }
}

impl Material {
    fn read(choice: &TlsChoice) -> Result<Self, Vec<ConninfoError>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut problems = Vec::new();
        let authorities = authorities(choice, &provider).unwrap_or_else(|error| {
            problems.push(error);
            None
        });
        let own = own_certificate(choice, &provider).unwrap_or_else(|error| {
            problems.push(error);
            None
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            provider,
            authorities,
            own,
        })
    }

    fn setup(&self, host: &Host, choice: &TlsChoice) -> Result<TlsSetup, ConninfoError> {
        let verification = Verification {
            algorithms: self.provider.signature_verification_algorithms,
            authorities: self
                .authorities
                .clone()
                .map(|(chains, certificates, revocation)| Authorities {
                    chains,
                    certificates,
                    revocation,
                }),
            host: (choice.mode == SslMode::VerifyFull).then(|| host.name.clone()),
        };
        let builder = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&versions(choice))
            .map_err(|error| problem(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verification));
        let mut config = match &self.own {
            Some(own) => builder.with_client_cert_resolver(own.clone()),
            None => builder.with_no_client_auth(),
        };
        // Each session is opened in full, as libpq's are.
        config.resumption = Resumption::disabled();
        config.enable_sni = choice.server_name_sent;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        Ok(TlsSetup {
            config: Arc::new(config),
            server_name: server_name(&host.name),
        })
    }
}

/// A name that TLS cannot carry is not sent; an address never is.
fn server_name(name: &str) -> ServerName<'static> {
    let unnamed = std::net::IpAddr::from([0; 4]);
    ServerName::try_from(name.to_string()).unwrap_or(ServerName::IpAddress(unnamed.into()))
}

fn versions(choice: &TlsChoice) -> Vec<&'static SupportedProtocolVersion> {
    let known = [
        (TlsVersion::Tls12, &rustls::version::TLS12),
        (TlsVersion::Tls13, &rustls::version::TLS13),
    ];
    let wanted = known
        .iter()
        .filter(|(version, _)| (choice.oldest..=choice.newest).contains(version));
    wanted.map(|(_, version)| *version).collect()
}

type Trusted = (
    Arc<WebPkiServerVerifier>,
    Vec<CertificateDer<'static>>,
    bool,
);

/// Whom to trust. As libpq: a root file that is there is used in every mode, and the verifying modes need one.
fn authorities(
    choice: &TlsChoice,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Trusted>, ConninfoError> {
    let certificates = match &choice.roots {
        Roots::System => Some(rustls_native_certs::load_native_certs().certs),
        Roots::File(file) => files::authorities(file)?,
        Roots::None => None,
    };
    let Some(certificates) = certificates else {
        if choice.mode < SslMode::VerifyCa {
            return Ok(None);
        }
        let usual = match &choice.roots {
            Roots::File(file) => format!("{} is not there", file.path.display()),
            _ => "no home folder is known".to_string(),
        };
        return Err(problem_with_hint(
            format!("the server's certificate cannot be verified: {usual}"),
            "name the authority's certificate with sslrootcert=FILE, or use sslrootcert=system, or sslmode=require",
        ));
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates.iter().cloned());
    if added == 0 {
        return Err(problem("sslrootcert holds no certificate that can be read"));
    }
    let revoked = choice.revoked.as_ref().map_or(Ok(None), files::revoked)?;
    let revocation = revoked.is_some();
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .with_crls(revoked.unwrap_or_default())
        .build()
        .map_err(|error| problem(format!("sslrootcert or sslcrl cannot be used: {error}")))?;
    Ok(Some((chains, certificates, revocation)))
}

/// The certificate shown to servers that ask for one.
fn own_certificate(
    choice: &TlsChoice,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<SingleCertAndKey>>, ConninfoError> {
    let Some(certificate) = &choice.certificate else {
        return Ok(None);
    };
    let Some(chain) = files::certificates(certificate, "sslcert")? else {
        return Ok(None);
    };
    let Some(key) = &choice.key else {
        return Err(problem_with_hint(
            "sslcert is given without its key",
            "name it with sslkey=FILE",
        ));
    };
    let shown = key.path.display();
    let key = provider
        .key_provider
        .load_private_key(files::private_key(key)?)
        .map_err(|error| problem(format!("the private key {shown} cannot be used: {error}")))?;
    let own = CertifiedKey::new(chain, key);
    if let Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) =
        own.keys_match()
    {
        return Err(problem(format!(
            "the private key {shown} is not the certificate's"
        )));
    }
    Ok(Some(Arc::new(SingleCertAndKey::from(own))))
}
