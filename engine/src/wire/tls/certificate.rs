//! What is read in a server's certificate beyond what rustls does: whom it names (as libpq matches names), its key, and
//! the hash that binds SCRAM to it.

use std::net::IpAddr;

use rustls::pki_types::SubjectPublicKeyInfoDer;
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::certificate::{Certificate, Version};
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, Utf8StringRef};
use x509_cert::der::{Decode, Encode, Tagged};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, SubjectAltName};

/// Object identifiers, as text.
const COMMON_NAME: &str = "2.5.4.3";
const SERVER_AUTHENTICATION: &str = "1.3.6.1.5.5.7.3.1";
const RSA_PSS: &str = "1.2.840.113549.1.1.10";
/// What all SHA-2 hashes' identifiers begin with in DER; the next byte says which.
const SHA2_PREFIX: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// A certificate that was read.
pub struct ServerCertificate {
    inner: Certificate,
}

/// Which hash a signature uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl ServerCertificate {
    /// Read DER; None where it is no certificate.
    pub fn read(der: &[u8]) -> Option<Self> {
        let inner = Certificate::from_der(der).ok()?;
        Some(Self { inner })
    }

    /// The public key with its algorithm.
    pub fn key(&self) -> Option<SubjectPublicKeyInfoDer<'static>> {
        let key = self.inner.tbs_certificate().subject_public_key_info();
        Some(SubjectPublicKeyInfoDer::from(key.to_der().ok()?))
    }

    /// The key's algorithm as rustls names algorithms, and the key's bits.
    pub fn key_parts(&self) -> Option<(Vec<u8>, &[u8])> {
        let key = self.inner.tbs_certificate().subject_public_key_info();
        Some((
            contents(key.algorithm.to_der().ok()?),
            key.subject_public_key.as_bytes()?,
        ))
    }

    /// What was signed by its issuer, with which algorithm, and the signature.
    pub fn signed(&self) -> Option<(Vec<u8>, Vec<u8>, &[u8])> {
        Some((
            self.inner.tbs_certificate().to_der().ok()?,
            contents(self.inner.signature_algorithm().to_der().ok()?),
            self.inner.signature().as_bytes()?,
        ))
    }

    /// Whether `issuer` has the name this one says it is issued by.
    pub fn names_as_issuer(&self, issuer: &Self) -> bool {
        self.inner.tbs_certificate().issuer() == issuer.inner.tbs_certificate().subject()
    }

    /// Whether a time (seconds since 1970) lies between its dates.
    pub fn is_valid_at(&self, unix_s: u64) -> bool {
        let validity = self.inner.tbs_certificate().validity();
        let begin_s = validity.not_before.to_unix_duration().as_secs();
        let end_s = validity.not_after.to_unix_duration().as_secs();
        (begin_s..=end_s).contains(&unix_s)
    }

    /// Whether it is of the first version or an authority's own: certificates that servers of PostgreSQL often have, that
    /// libpq takes and rustls does not.
    pub fn is_plain_or_authority(&self) -> bool {
        let body = self.inner.tbs_certificate();
        let constraints = body.get_extension::<BasicConstraints>();
        body.version() == Version::V1
            || matches!(
                constraints,
                Ok(Some((_, BasicConstraints { ca: true, .. })))
            )
    }

    /// Whether it may be a server's: nothing is said of its use, or that.
    pub fn may_serve(&self) -> bool {
        match self
            .inner
            .tbs_certificate()
            .get_extension::<ExtendedKeyUsage>()
        {
            Ok(None) => true,
            Ok(Some((_, uses))) => uses
                .0
                .iter()
                .any(|one| one.to_string() == SERVER_AUTHENTICATION),
            Err(_) => false,
        }
    }

    /// Whether it names this host; else the names it has. As libpq: alternative names of the host's kind decide; without
    /// any, the common name does.
    pub fn check_name(&self, host: &str) -> Result<(), Vec<String>> {
        let ip: Option<IpAddr> = host.parse().ok();
        let (mut names, mut same_kind) = (Vec::new(), false);
        let alternatives = self
            .inner
            .tbs_certificate()
            .get_extension::<SubjectAltName>();
        for name in alternatives
            .ok()
            .flatten()
            .map_or(Vec::new(), |(_, names)| names.0)
        {
            match name {
                GeneralName::DnsName(name) => {
                    same_kind |= ip.is_none();
                    names.push(name.as_str().to_string());
                }
                GeneralName::IpAddress(bytes) => {
                    same_kind |= ip.is_some();
                    names.extend(ip_of(bytes.as_bytes()).map(|ip| ip.to_string()));
                }
                _ => {}
            }
        }
        if !same_kind {
            names.extend(self.common_name());
        }
        let fits = |name: &String| match (ip, name.parse::<IpAddr>()) {
            (Some(ip), Ok(named)) => ip == named,
            _ => name_fits(name, host),
        };
        if names.iter().any(fits) {
            Ok(())
        } else {
            Err(names)
        }
    }

    /// The last common name of its subject.
    fn common_name(&self) -> Option<String> {
        let subject = self.inner.tbs_certificate().subject();
        let names = subject
            .iter()
            .filter(|entry| entry.oid.to_string() == COMMON_NAME);
        let value = &names.last()?.value;
        let text = match value.tag() {
            x509_cert::der::Tag::Utf8String => {
                value.decode_as::<Utf8StringRef<'_>>().ok()?.to_string()
            }
            x509_cert::der::Tag::PrintableString => value
                .decode_as::<PrintableStringRef<'_>>()
                .ok()?
                .to_string(),
            x509_cert::der::Tag::Ia5String => {
                value.decode_as::<Ia5StringRef<'_>>().ok()?.to_string()
            }
            _ => return None,
        };
        // A zero byte in a name is an attack.
        (!text.contains('\0')).then_some(text)
    }

    /// RFC 5929, `tls-server-end-point`: the certificate's hash by its own signature's hash, at least SHA-256. None where
    /// the signature has no hash of its own (Ed25519).
    pub fn end_point(&self, der: &[u8]) -> Option<Vec<u8>> {
        let algorithm = self.inner.signature_algorithm();
        let parameters = algorithm
            .parameters
            .as_ref()
            .map_or(&[][..], |any| any.value());
        Some(match hash_of(&algorithm.oid.to_string(), parameters)? {
            Hash::Sha256 => Sha256::digest(der).to_vec(),
            Hash::Sha384 => Sha384::digest(der).to_vec(),
            Hash::Sha512 => Sha512::digest(der).to_vec(),
        })
    }
}

/// What is inside a DER sequence.
fn contents(der: Vec<u8>) -> Vec<u8> {
    let header = match der.get(1) {
        Some(&length) if length < 0x80 => 2,
        Some(&length) => 2 + usize::from(length & 0x7f),
        None => 0,
    };
    der.get(header..).unwrap_or(&[]).to_vec()
}

fn hash_of(oid: &str, parameters: &[u8]) -> Option<Hash> {
    let digest = match oid {
        // RSA with MD5, SHA-1, SHA-256, SHA-384, SHA-512; ECDSA with SHA-1, SHA-256, SHA-384, SHA-512.
        "1.2.840.113549.1.1.4" | "1.2.840.113549.1.1.5" | "1.2.840.113549.1.1.11" => Hash::Sha256,
        "1.2.840.113549.1.1.12" => Hash::Sha384,
        "1.2.840.113549.1.1.13" => Hash::Sha512,
        "1.2.840.10045.4.1" | "1.2.840.10045.4.3.2" => Hash::Sha256,
        "1.2.840.10045.4.3.3" => Hash::Sha384,
        "1.2.840.10045.4.3.4" => Hash::Sha512,
        RSA_PSS => {
            // The first field, [0], is the hash; without it it is SHA-1.
            let has_hash = parameters.first() == Some(&0xa0);
            let at = parameters
                .windows(SHA2_PREFIX.len())
                .position(|part| part == SHA2_PREFIX);
            match at
                .and_then(|at| parameters.get(at + SHA2_PREFIX.len()))
                .filter(|_| has_hash)
            {
                None | Some(1) => Hash::Sha256,
                Some(2) => Hash::Sha384,
                Some(3) => Hash::Sha512,
                Some(_) => return None,
            }
        }
        _ => return None,
    };
    Some(digest)
}

fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(v4));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// Whether a name of a certificate, perhaps with `*` for the first label, fits a host.
fn name_fits(name: &str, host: &str) -> bool {
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(parent) = name.strip_prefix("*.").filter(|parent| !parent.is_empty()) else {
        return false;
    };
    let rest = host
        .split_once('.')
        .map(|(label, rest)| (!label.is_empty()).then_some(rest));
    rest.flatten()
        .is_some_and(|rest| rest.eq_ignore_ascii_case(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_one_label() {
        for (name, host, fits) in [
            ("db.example", "DB.example", true),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("d*.example.org", "db.example.org", false),
            ("*", "db", false),
        ] {
            assert_eq!(fits, name_fits(name, host), "{name} {host}");
        }
    }

    #[test]
    fn hashes_are_at_least_sha256() {
        assert_eq!(Some(Hash::Sha256), hash_of("1.2.840.113549.1.1.5", &[]));
        assert_eq!(Some(Hash::Sha384), hash_of("1.2.840.10045.4.3.3", &[]));
        let pss = [&[0xa0, 15, 0x30, 13, 6, 9], &SHA2_PREFIX[..], &[3, 5, 0]].concat();
        assert_eq!(Some(Hash::Sha512), hash_of(RSA_PSS, &pss));
        assert_eq!(Some(Hash::Sha256), hash_of(RSA_PSS, &[]));
        assert_eq!(None, hash_of("1.3.101.112", &[]));
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        assert!(ServerCertificate::read(b"0").is_none());
    }
}
