//! TLS without I/O: what libpq's `ssl…` words mean, carried out by rustls.
//!
//! ```text
//! TlsChoice ─setup─► TlsSetup (one for each host, shared by its clients) ─► Channel (one for each connection)
//! ```

mod certificate;
mod channel;
mod files;
mod setup;
mod verification;

pub use channel::{Channel, Encryption, Security, Step};
pub use setup::TlsSetup;

/// Why a connection could not be secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFailure(pub String);

impl TlsFailure {
    /// In words. What rustls calls by a name of its own is explained.
    fn of(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Bad;
        use rustls::Error::{AlertReceived, General, InvalidCertificate};
        Self(match error {
            General(message) => message.clone(),
            InvalidCertificate(Bad::UnknownIssuer) => {
                "the server's certificate is not from an authority in sslrootcert".into()
            }
            InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
                "the server's certificate has expired".into()
            }
            InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
                "the server's certificate is not valid yet".into()
            }
            InvalidCertificate(Bad::Revoked) => "the server's certificate is revoked".into(),
            InvalidCertificate(Bad::UnknownRevocationStatus) => {
                "sslcrl does not say whether the server's certificate is revoked".into()
            }
            InvalidCertificate(reason) => format!("the server's certificate is bad: {reason}"),
            AlertReceived(alert) => format!(
                "the server broke TLS off: {}",
                spaced(&format!("{alert:?}"))
            ),
            other => format!("TLS failed: {other}"),
        })
    }
}

/// `UnknownCA` → `unknown ca`.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    let mut previous_upper = true;
    for character in name.chars() {
        if character.is_uppercase() && !previous_upper {
            words.push(' ');
        }
        previous_upper = character.is_uppercase();
        words.extend(character.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_words() {
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA);
        assert_eq!(
            "the server broke TLS off: unknown ca",
            TlsFailure::of(&alert).0
        );
    }
}
