//! Proving who one is: what the server may ask for while a session is opened, and the answers. Without I/O.

use std::sync::Arc;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use super::message::take_cstring;
use super::outgoing::{cstring, message};
use super::startup::{StartupError, refuse};
use super::target::{AllowedMethods, AuthenticationMethod, ChannelBindingChoice, Target};
use super::tls::Security;

/// See the module.
pub struct Authentication {
    target: Arc<Target>,
    host: usize,
    security: Option<Security>,
    scram: Option<Box<ScramSha256>>,
    /// SCRAM is bound to the TLS connection, and the server has proved that it knows the password.
    bound: bool,
    verified: bool,
    /// What the server asked for last.
    method: AuthenticationMethod,
}

impl Authentication {
    /// Nothing was asked yet. `host` is the index of the host among the target's.
    pub fn new(target: Arc<Target>, host: usize, security: Option<Security>) -> Self {
        Self {
            target,
            host,
            security,
            scram: None,
            bound: false,
            verified: false,
            method: AuthenticationMethod::None,
        }
    }

    /// Answer one request; what has to be sent is added to `bytes`.
    pub fn answer(
        &mut self,
        code: i32,
        data: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<(), StartupError> {
        match code {
            0 => self.accepted()?,
            3 => {
                self.asked_for(AuthenticationMethod::Password)?;
                let password = self.password()?.to_string();
                message(bytes, b'p', |body| cstring(body, &password));
            }
            5 => {
                self.asked_for(AuthenticationMethod::Md5)?;
                let salt = *data
                    .first_chunk::<4>()
                    .ok_or_else(|| refuse("the server sent no salt for md5"))?;
                let hash = md5_hash(
                    self.target.user.as_bytes(),
                    self.password()?.as_bytes(),
                    salt,
                );
                message(bytes, b'p', |body| cstring(body, &hash));
            }
            10 => {
                self.asked_for(AuthenticationMethod::Scram)?;
                self.begin_scram(data, bytes)?;
            }
            11 => {
                let scram = self.scram("continued")?;
                scram
                    .update(data)
                    .map_err(|error| refuse(format!("SCRAM authentication failed: {error}")))?;
                message(bytes, b'p', |body| body.extend_from_slice(scram.message()));
            }
            12 => {
                self.scram("ended")?.finish(data).map_err(|error| {
                    refuse(format!(
                        "the server does not know the password either: {error}"
                    ))
                })?;
                self.verified = true;
            }
            7 | 9 => {
                return Err(refuse(
                    "the server asks for GSSAPI or SSPI authentication, which is not supported",
                ));
            }
            other => {
                return Err(refuse(format!(
                    "the server asks for unknown authentication method {other}"
                )));
            }
        }
        Ok(())
    }

    /// The server is ready: nothing that must have been proved may be missing.
    pub fn finished(&self) -> Result<(), StartupError> {
        let proved = self.bound && self.verified;
        if self.target.channel_binding == ChannelBindingChoice::Require && !proved {
            return Err(refuse(NOT_BOUND));
        }
        Ok(())
    }

    /// The server lets us in.
    fn accepted(&self) -> Result<(), StartupError> {
        if self.scram.is_some() && !self.verified {
            return Err(refuse(
                "the server ended SCRAM before it proved that it knows the password",
            ));
        }
        if self.method == AuthenticationMethod::None {
            self.allow(AuthenticationMethod::None)?;
        }
        self.finished()
    }

    fn asked_for(&mut self, method: AuthenticationMethod) -> Result<(), StartupError> {
        self.method = method;
        self.allow(method)?;
        let binds = method == AuthenticationMethod::Scram;
        if self.target.channel_binding == ChannelBindingChoice::Require && !binds {
            return Err(refuse(NOT_BOUND));
        }
        Ok(())
    }

    fn allow(&self, method: AuthenticationMethod) -> Result<(), StartupError> {
        if self.target.allowed_methods == AllowedMethods::All
            || self.target.allowed_methods.allows(method)
        {
            return Ok(());
        }
        let asked = match method {
            AuthenticationMethod::Password => "asks for the password in the clear",
            AuthenticationMethod::Md5 => "asks for the password hashed with MD5",
            AuthenticationMethod::Scram => "asks for SCRAM-SHA-256",
            AuthenticationMethod::None => "asks for no proof",
            AuthenticationMethod::Other => "asks for something else",
        };
        Err(refuse(format!(
            "the server {asked}, and require_auth does not allow that"
        )))
    }

    /// Choose from the mechanisms offered: bound to TLS where both sides can.
    fn begin_scram(&mut self, mut offered: &[u8], bytes: &mut Vec<u8>) -> Result<(), StartupError> {
        let (mut plain, mut plus) = (false, false);
        while let Some((mechanism, rest)) = take_cstring(offered) {
            plain |= mechanism == SCRAM_SHA_256.as_bytes();
            plus |= mechanism == SCRAM_SHA_256_PLUS.as_bytes();
            offered = rest;
        }
        let choice = self.target.channel_binding;
        let (mechanism, binding) = match &self.security {
            Some(Security { end_point }) if choice != ChannelBindingChoice::Disable && plus => {
                let Some(end_point) = end_point.clone() else {
                    return Err(refuse(
                        "SCRAM cannot be bound to TLS: the server's certificate is signed without a hash of its own \
                         (channel_binding=disable goes on without)",
                    ));
                };
                self.bound = true;
                (
                    SCRAM_SHA_256_PLUS,
                    ChannelBinding::tls_server_end_point(end_point),
                )
            }
            Some(_) if choice != ChannelBindingChoice::Disable => {
                (SCRAM_SHA_256, ChannelBinding::unrequested())
            }
            _ => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if choice == ChannelBindingChoice::Require && !self.bound {
            return Err(refuse(NOT_BOUND));
        }
        if !plain && !self.bound {
            return Err(refuse(
                "the server offers no authentication mechanism that is supported (SCRAM-SHA-256)",
            ));
        }
        let scram = ScramSha256::new(self.password()?.as_bytes(), binding);
        message(bytes, b'p', |body| {
            cstring(body, mechanism);
            body.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
            body.extend_from_slice(scram.message());
        });
        self.scram = Some(Box::new(scram));
        Ok(())
    }

    fn scram(&mut self, what: &str) -> Result<&mut ScramSha256, StartupError> {
        let scram = self.scram.as_deref_mut();
        scram.ok_or_else(|| refuse(format!("the server {what} SCRAM before it began")))
    }

    fn password(&self) -> Result<&str, StartupError> {
        let host = self.target.hosts.get(self.host);
        host.and_then(|host| host.password.as_deref())
            .ok_or_else(|| {
                let why = self.target.passfile_problem.as_deref();
                let why = why.unwrap_or("set PGPASSWORD or a password file");
                refuse(format!(
                    "the server asks for a password and none is known ({why})"
                ))
            })
    }
}

/// What `channel_binding=require` wants and did not get.
const NOT_BOUND: &str = "channel_binding=require asks for SCRAM-SHA-256-PLUS over TLS, and the server did not authenticate that way";
