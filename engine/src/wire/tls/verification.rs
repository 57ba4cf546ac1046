//! Judges the server's certificate as libpq does for its sslmode.
//!
//! rustls verifies chains; what differs is here. libpq also takes certificates of X.509's first version (what `openssl
//! x509 -req` makes) and an authority's own certificate when the authority itself is trusted (the usual self-signed
//! one), and it knows a host by the common name where there are no alternative names.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::certificate::ServerCertificate;

/// How one host's certificate is judged.
#[derive(Debug)]
pub struct Verification {
    /// Algorithms that signatures may have.
    pub algorithms: WebPkiSupportedAlgorithms,
    /// Whom to trust; None: anybody.
    pub authorities: Option<Authorities>,
    /// The name the certificate must have; None: any.
    pub host: Option<String>,
}

/// Trusted authorities.
#[derive(Debug)]
pub struct Authorities {
    /// Verifies chains and revocation.
    pub chains: Arc<WebPkiServerVerifier>,
    /// The certificates themselves.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Whether revoked certificates are known.
    pub revocation: bool,
}

fn unreadable() -> Error {
    Error::InvalidCertificate(CertificateError::BadEncoding)
}

impl Authorities {
    /// Take what libpq takes and rustls does not; otherwise the error stands.
    fn accept_directly(
        &self,
        der: &CertificateDer<'_>,
        algorithms: &WebPkiSupportedAlgorithms,
        now: UnixTime,
        error: Error,
    ) -> Result<(), Error> {
        let certificate = ServerCertificate::read(der).ok_or_else(unreadable)?;
        if self.revocation || !certificate.is_plain_or_authority() || !certificate.may_serve() {
            return Err(error);
        }
        if !certificate.is_valid_at(now.as_secs()) {
            return Err(Error::InvalidCertificate(CertificateError::Expired));
        }
        let issued_by = |issuer: &CertificateDer<'_>| {
            ServerCertificate::read(issuer).is_some_and(|issuer| {
                certificate.names_as_issuer(&issuer)
                    && is_signed_by(&certificate, &issuer, algorithms)
            })
        };
        let found = self.certificates.iter().any(issued_by);
        found.then_some(()).ok_or(match error {
            Error::InvalidCertificate(_) => {
                Error::InvalidCertificate(CertificateError::UnknownIssuer)
            }
            other => other,
        })
    }
}

/// Whether the issuer's key made the certificate's signature.
fn is_signed_by(
    certificate: &ServerCertificate,
    issuer: &ServerCertificate,
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let (Some((key_algorithm, key)), Some((body, algorithm, signature))) =
        (issuer.key_parts(), certificate.signed())
    else {
        return false;
    };
    algorithms.all.iter().any(|known| {
        known.signature_alg_id().as_ref() == algorithm
            && known.public_key_alg_id().as_ref() == key_algorithm
            && known.verify_signature(key, &body, signature).is_ok()
    })
}

impl ServerCertVerifier for Verification {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(authorities) = &self.authorities {
            let chains = &authorities.chains;
            match chains.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ) {
                // rustls looks at the name after everything else; libpq's own rules for it follow.
                Ok(_)
                | Err(Error::InvalidCertificate(
                    CertificateError::NotValidForName
                    | CertificateError::NotValidForNameContext { .. },
                )) => {}
                Err(error) => {
                    authorities.accept_directly(end_entity, &self.algorithms, now, error)?;
                }
            }
        }
        if let Some(host) = &self.host {
            let certificate = ServerCertificate::read(end_entity).ok_or_else(unreadable)?;
            certificate.check_name(host).map_err(|names| {
                let names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
                let whose = if names.is_empty() {
                    "nobody".into()
                } else {
                    names.join(", ")
                };
                Error::General(format!(
                    "the server's certificate is for {whose}, not for host '{host}'"
                ))
            })?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        der: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = ServerCertificate::read(der).ok_or_else(unreadable)?;
        let (key_algorithm, key) = certificate.key_parts().ok_or_else(unreadable)?;
        let known = self
            .algorithms
            .mapping
            .iter()
            .find(|(scheme, _)| *scheme == signed.scheme);
        let valid = known.is_some_and(|(_, candidates)| {
            candidates.iter().any(|candidate| {
                candidate.public_key_alg_id().as_ref() == key_algorithm
                    && candidate
                        .verify_signature(key, message, signed.signature())
                        .is_ok()
            })
        });
        if valid {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::BadSignature))
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        der: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = ServerCertificate::read(der).ok_or_else(unreadable)?;
        let key = certificate.key().ok_or_else(unreadable)?;
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
