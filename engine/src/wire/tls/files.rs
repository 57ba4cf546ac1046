//! Reads the files that `ssl…` words name, and says what is wrong with them.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use crate::wire::conninfo::{ConninfoError, problem, problem_with_hint};
use crate::wire::target::TlsFile;

/// A file that is there and readable, or that need not be there; None: it is not.
fn read(file: &TlsFile, word: &str) -> Result<Option<Vec<u8>>, ConninfoError> {
    match std::fs::read(&file.path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !file.named => Ok(None),
        Err(error) => Err(problem(format!(
            "{word}: cannot read {}: {}",
            file.path.display(),
            crate::reactor::reason(&error)
        ))),
    }
}

/// Every section of a kind in a PEM file, at least one.
fn sections<T: PemObject>(bytes: &[u8], file: &Path, what: &str) -> Result<Vec<T>, ConninfoError> {
    let shown = file.display();
    let found: Result<Vec<T>, _> = T::pem_slice_iter(bytes).collect();
    let found = found.map_err(|error| problem(format!("{shown}: bad PEM: {error}")))?;
    if found.is_empty() {
        return Err(problem_with_hint(
            format!("{shown} holds no {what}"),
            "a PEM file is wanted",
        ));
    }
    Ok(found)
}

/// Certificates of the trusted; None where the file is not there, named or not: whether one is needed depends on the
/// sslmode.
pub fn authorities(file: &TlsFile) -> Result<Option<Vec<CertificateDer<'static>>>, ConninfoError> {
    let unnamed = TlsFile {
        named: false,
        ..file.clone()
    };
    certificates(&unnamed, "sslrootcert")
}

/// Certificates of a file; None where it is not there and need not be.
pub fn certificates(
    file: &TlsFile,
    word: &str,
) -> Result<Option<Vec<CertificateDer<'static>>>, ConninfoError> {
    let bytes = read(file, word)?;
    bytes
        .map(|bytes| sections(&bytes, &file.path, "certificate"))
        .transpose()
}

/// Revocation lists of a file.
pub fn revoked(
    file: &TlsFile,
) -> Result<Option<Vec<CertificateRevocationListDer<'static>>>, ConninfoError> {
    let bytes = read(file, "sslcrl")?;
    bytes
        .map(|bytes| sections(&bytes, &file.path, "revocation list"))
        .transpose()
}

/// The private key of a file that must be there. As libpq: nobody else may read it.
pub fn private_key(file: &TlsFile) -> Result<PrivateKeyDer<'static>, ConninfoError> {
    let shown = file.path.display();
    let named = TlsFile {
        named: true,
        ..file.clone()
    };
    let bytes = read(&named, "sslkey")?.unwrap_or_default();
    let facts = std::fs::metadata(&file.path).map_err(|error| {
        problem(format!(
            "sslkey: cannot read {shown}: {}",
            crate::reactor::reason(&error)
        ))
    })?;
    // A file of root's may be readable for a group.
    let forbidden = if facts.uid() == 0 { 0o037 } else { 0o077 };
    if facts.permissions().mode() & forbidden != 0 {
        return Err(problem_with_hint(
            format!("the private key {shown} can be read by others"),
            "protect it: chmod 600",
        ));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let encrypted = bytes.windows(9).any(|part| part == b"ENCRYPTED");
        let hint = if encrypted {
            "it is encrypted; decrypt it: openssl pkey -in KEY -out KEY.plain, and protect the file"
        } else {
            "a PEM file is wanted"
        };
        problem_with_hint(
            format!("{shown} holds no private key that can be read"),
            hint,
        )
    })
}
