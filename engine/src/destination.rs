//! A target that can be connected to: its TLS files read, its names looked up, both before anything is measured.

use std::sync::Arc;

use crate::reactor::{SocketAddress, reason};
use crate::route::{Possibilities, Route};
use crate::wire::conninfo::{ConninfoError, resolve};
use crate::wire::target::{Address, Host, HostOrder, Target};
use crate::wire::tls::TlsSetup;

/// One address of one host.
#[derive(Clone)]
pub struct Place {
    /// Index of the host.
    pub host: usize,
    /// For the kernel.
    pub address: SocketAddress,
}

/// See the module.
#[derive(Clone)]
pub struct Destination {
    /// What the conninfo says.
    pub target: Arc<Target>,
    /// Every address, host by host; empty before `look_up`.
    pub places: Vec<Place>,
    /// In which order and how they may be tried.
    pub possibilities: Possibilities,
    setups: Vec<Option<TlsSetup>>,
}

impl Destination {
    /// Resolve a conninfo and read the files of TLS. The error holds every problem; nothing is connected or looked up.
    pub fn resolve(conninfo: &str) -> Result<Self, Vec<ConninfoError>> {
        Self::new(resolve(conninfo)?)
    }

    /// Read the files of TLS.
    pub fn new(target: Target) -> Result<Self, Vec<ConninfoError>> {
        let setups = TlsSetup::for_hosts(&target)?;
        let possibilities = Possibilities::new(Vec::new(), &target.tls, target.session_kind);
        Ok(Self {
            target: Arc::new(target),
            places: Vec::new(),
            possibilities,
            setups,
        })
    }

    /// Look names up. A host without an address is passed over while another one has one.
    pub fn look_up(mut self) -> Result<Self, String> {
        let target = self.target.clone();
        let required_peer = match &target.required_peer {
            None => None,
            Some(name) => Some(
                crate::wire::passfile::user_id(name)
                    .ok_or_else(|| format!("requirepeer: no user is named '{name}'"))?,
            ),
        };
        let mut problems = Vec::new();
        for (host, Host { address, .. }) in target.hosts.iter().enumerate() {
            match SocketAddress::resolve(address) {
                Ok(found) => {
                    let encrypted = matches!(address, Address::Tcp(..));
                    for address in found {
                        let address = address.with(target.socket_options, required_peer);
                        self.places.push(Place { host, address });
                        self.possibilities.places.push((host, encrypted));
                    }
                }
                Err(error) => {
                    problems.push(format!(
                        "cannot find the server at {address}: {}",
                        reason(&error)
                    ));
                }
            }
        }
        if self.places.is_empty() {
            Err(problems.join("; "))
        } else {
            Ok(self)
        }
    }

    /// The host of a place.
    pub fn host(&self, place: usize) -> &Host {
        &self.target.hosts[self.places[place].host]
    }

    /// How a place is encrypted, where it can be.
    pub fn setup(&self, place: usize) -> Option<&TlsSetup> {
        self.setups[self.places[place].host].as_ref()
    }

    /// The way of one client, shuffled by its seed where the conninfo wants it.
    pub fn route(&self, seed: u64) -> Route {
        let mut state = seed;
        let mut below = |limit: usize| (split_mix(&mut state) % limit as u64) as usize;
        let shuffle: Option<&mut dyn FnMut(usize) -> usize> = match self.target.host_order {
            HostOrder::AsGiven => None,
            HostOrder::Random => Some(&mut below),
        };
        Route::new(&self.possibilities, shuffle)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): good enough to shuffle hosts.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
