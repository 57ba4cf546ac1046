//! What one client tries, in which order, until it has a session: hosts, addresses, encryption. Pure.
//!
//! As libpq: addresses are tried in order (or shuffled), each with the encryptions its sslmode allows. A server that
//! cannot be reached, is not ready or is of the wrong kind passes the turn on; one that says no ends the search, except
//! that `prefer` and `allow` try their other encryption first. `prefer-standby` goes round twice.

use crate::wire::target::{SessionKind, SslMode, SslNegotiation, TlsChoice};
use crate::wire::tls::Encryption;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the address.
    pub place: usize,
    /// How it is encrypted.
    pub encryption: Encryption,
    /// What kind of server will do.
    pub wanted: SessionKind,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// No connection, or it was closed before the session was open.
    Unreachable,
    /// TLS could not be had.
    Tls,
    /// The server said no; whether that was over TLS.
    Refused {
        /// It was.
        secured: bool,
    },
    /// The server is not ready yet.
    NotYet,
    /// The server is not of the wanted kind.
    WrongKind,
    /// This side says no.
    Own,
}

/// The possibilities, the same for all clients.
#[derive(Clone, Debug)]
pub struct Possibilities {
    /// For each address: the number of its host, and whether it can be encrypted.
    pub places: Vec<(usize, bool)>,
    /// How.
    pub mode: SslMode,
    /// How TLS begins.
    pub negotiation: SslNegotiation,
    /// What kind of server will do.
    pub session_kind: SessionKind,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Route {
    order: Vec<usize>,
    at: usize,
    second_encryption: bool,
    second_round: bool,
}

impl Possibilities {
    /// Of a target's places.
    pub fn new(places: Vec<(usize, bool)>, tls: &TlsChoice, session_kind: SessionKind) -> Self {
        Self {
            places,
            mode: tls.mode,
            negotiation: tls.negotiation,
            session_kind,
        }
    }

    /// First and second encryption of a place.
    fn encryptions(&self, place: usize) -> (Encryption, Option<Encryption>) {
        let tls = match self.negotiation {
            SslNegotiation::Postgres => Encryption::Required,
            SslNegotiation::Direct => Encryption::Direct,
        };
        match self.mode {
            _ if !self.places[place].1 => (Encryption::Plain, None),
            SslMode::Disable => (Encryption::Plain, None),
            SslMode::Allow => (Encryption::Plain, Some(tls)),
            SslMode::Prefer => (Encryption::Preferred, Some(Encryption::Plain)),
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => (tls, None),
        }
    }
}

impl Route {
    /// From the beginning. `shuffle` gives a number below its argument; None keeps the order.
    pub fn new(
        possibilities: &Possibilities,
        shuffle: Option<&mut dyn FnMut(usize) -> usize>,
    ) -> Self {
        let places = &possibilities.places;
        let mut order: Vec<_> = (0..places.len()).collect();
        if let Some(below) = shuffle {
            // Hosts first, so that one with many addresses is not favoured; then the addresses of each.
            let hosts = places.iter().map(|(host, _)| host + 1).max().unwrap_or(0);
            let mut ranks: Vec<_> = (0..hosts).collect();
            (1..hosts)
                .rev()
                .for_each(|last| ranks.swap(last, below(last + 1)));
            (1..order.len())
                .rev()
                .for_each(|last| order.swap(last, below(last + 1)));
            order.sort_by_key(|&place| ranks[places[place].0]);
        }
        Self {
            order,
            at: 0,
            second_encryption: false,
            second_round: false,
        }
    }

    /// What is tried now.
    pub fn attempt(&self, possibilities: &Possibilities) -> Attempt {
        let place = self.order[self.at];
        let (first, second) = possibilities.encryptions(place);
        let wanted = match possibilities.session_kind {
            SessionKind::PreferStandby if self.second_round => SessionKind::Any,
            SessionKind::PreferStandby => SessionKind::Standby,
            kind => kind,
        };
        Attempt {
            place,
            encryption: second.filter(|_| self.second_encryption).unwrap_or(first),
            wanted,
        }
    }

    /// It failed: whether there is another attempt.
    pub fn advance(&mut self, possibilities: &Possibilities, failure: AttemptFailure) -> bool {
        let (first, second) = possibilities.encryptions(self.order[self.at]);
        let other_helps = match (first, failure) {
            (Encryption::Preferred, AttemptFailure::Refused { secured }) => secured,
            (Encryption::Preferred, AttemptFailure::Tls) => true,
            (Encryption::Plain, AttemptFailure::Refused { .. }) => true,
            _ => false,
        };
        if other_helps && second.is_some() && !self.second_encryption {
            self.second_encryption = true;
            return true;
        }
        match failure {
            AttemptFailure::Unreachable | AttemptFailure::NotYet | AttemptFailure::WrongKind => {
                self.next_place(possibilities)
            }
            AttemptFailure::Tls | AttemptFailure::Refused { .. } | AttemptFailure::Own => false,
        }
    }

    fn next_place(&mut self, possibilities: &Possibilities) -> bool {
        self.second_encryption = false;
        if self.at + 1 < self.order.len() {
            self.at += 1;
            return true;
        }
        if possibilities.session_kind == SessionKind::PreferStandby && !self.second_round {
            (self.at, self.second_round) = (0, true);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AttemptFailure::{NotYet, Own, Refused, Tls, Unreachable, WrongKind};
    use Encryption::{Plain, Preferred, Required};

    fn possibilities(
        places: &[(usize, bool)],
        mode: SslMode,
        session_kind: SessionKind,
    ) -> Possibilities {
        Possibilities {
            places: places.to_vec(),
            mode,
            negotiation: SslNegotiation::Postgres,
            session_kind,
        }
    }

    /// Places and encryptions tried while attempts fail in these ways, and whether another one follows.
    fn tried(
        possibilities: &Possibilities,
        failures: &[AttemptFailure],
    ) -> (Vec<(usize, Encryption)>, bool) {
        let mut route = Route::new(possibilities, None);
        let mut seen = Vec::new();
        for failure in failures {
            let Attempt {
                place, encryption, ..
            } = route.attempt(possibilities);
            seen.push((place, encryption));
            if !route.advance(possibilities, *failure) {
                return (seen, false);
            }
        }
        (seen, true)
    }

    #[test]
    fn prefer_and_allow_have_a_second_way() {
        let one = |mode| possibilities(&[(0, true)], mode, SessionKind::Any);
        let refused = Refused { secured: true };
        assert_eq!(
            (vec![(0, Preferred), (0, Plain)], false),
            tried(&one(SslMode::Prefer), &[Tls, refused])
        );
        assert_eq!(
            (vec![(0, Preferred)], false),
            tried(&one(SslMode::Prefer), &[Refused { secured: false }])
        );
        assert_eq!(
            (vec![(0, Preferred)], false),
            tried(&one(SslMode::Prefer), &[Own])
        );
        let plain = Refused { secured: false };
        assert_eq!(
            (vec![(0, Plain), (0, Required)], false),
            tried(&one(SslMode::Allow), &[plain, Tls])
        );
        assert_eq!(
            (vec![(0, Required)], false),
            tried(&one(SslMode::VerifyFull), &[Tls])
        );
    }

    #[test]
    fn a_socket_is_never_encrypted() {
        let unix = possibilities(&[(0, false)], SslMode::VerifyFull, SessionKind::Any);
        assert_eq!(
            (vec![(0, Plain)], false),
            tried(&unix, &[Refused { secured: false }])
        );
    }

    #[test]
    fn who_is_away_passes_the_turn_and_who_says_no_does_not() {
        let two = possibilities(
            &[(0, true), (1, true)],
            SslMode::Require,
            SessionKind::Primary,
        );
        let both = vec![(0, Required), (1, Required)];
        for first in [Unreachable, NotYet, WrongKind] {
            assert_eq!((both.clone(), false), tried(&two, &[first, Unreachable]));
        }
        assert_eq!(
            (vec![(0, Required)], false),
            tried(&two, &[Refused { secured: true }, Unreachable])
        );
    }

    #[test]
    fn prefer_standby_goes_round_twice() {
        let two = possibilities(
            &[(0, false), (1, false)],
            SslMode::Disable,
            SessionKind::PreferStandby,
        );
        let mut route = Route::new(&two, None);
        let mut wanted = Vec::new();
        loop {
            let attempt = route.attempt(&two);
            wanted.push((attempt.place, attempt.wanted));
            if !route.advance(&two, WrongKind) {
                break;
            }
        }
        let (standby, any) = (SessionKind::Standby, SessionKind::Any);
        assert_eq!(vec![(0, standby), (1, standby), (0, any), (1, any)], wanted);
    }

    #[test]
    fn a_shuffle_keeps_a_hosts_addresses_together() {
        let places = [(0, true), (0, true), (1, true), (2, true)];
        let many = possibilities(&places, SslMode::Disable, SessionKind::Any);
        for seed in 0..20_usize {
            let mut state = seed;
            let mut below = |limit: usize| {
                state = state.wrapping_mul(25_214_903_917).wrapping_add(11);
                (state >> 16) % limit
            };
            let route = Route::new(&many, Some(&mut below));
            let mut sorted = route.order.clone();
            sorted.sort_unstable();
            assert_eq!(vec![0, 1, 2, 3], sorted);
            let at = |place| {
                route
                    .order
                    .iter()
                    .position(|&other| other == place)
                    .unwrap()
            };
            assert_eq!(1, at(0_usize).abs_diff(at(1)));
        }
    }
}
