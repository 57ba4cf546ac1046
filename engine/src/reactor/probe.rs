//! Which reactor: io_uring where it really works here, else epoll.
//!
//! A kernel may lack io_uring, forbid it (`kernel.io_uring_disabled`, seccomp in containers) or have one too old for
//! what we use, so the probe does what a worker does: it receives one byte through a real ring.

use std::io;
use std::os::unix::net::UnixListener;

use super::{Connecting, Event, Reactor, Setting, SocketAddress, UringReactor, Waker};
use crate::plan::{ReactorChoice, Receive};
use crate::wire::target::Address;

/// Which implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReactorKind {
    /// `UringReactor`.
    IoUring,
    /// `EpollReactor`.
    Epoll,
}

impl ReactorKind {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

/// The kind a plan asks for; an error where it insists on io_uring and that does not work.
pub fn choose(choice: ReactorChoice) -> io::Result<ReactorKind> {
    match choice {
        ReactorChoice::Epoll => Ok(ReactorKind::Epoll),
        ReactorChoice::IoUring => probe().map(|()| ReactorKind::IoUring),
        ReactorChoice::Auto => Ok(probe().map_or(ReactorKind::Epoll, |()| ReactorKind::IoUring)),
    }
}

/// Receive one byte through a ring, set up as a worker would.
fn probe() -> io::Result<()> {
    let name = format!(
        "@pgdyno-probe-{}-{}",
        std::process::id(),
        crate::clock::now_ns()
    );
    let address = SocketAddress::resolve(&Address::Unix(name.clone().into()))?;
    let name =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            &name[1..],
        )?;
    let listener = UnixListener::bind_addr(&name)?;
    let waker = Waker::new()?;
    let mut reactor = UringReactor::new(
        &Setting {
            slots: 1,
            receive: Receive::Multishot,
        },
        &waker,
    )?;
    let Connecting::Begun = reactor.connect(0, &address[0])? else {
        return Err(io::Error::other("the probe could not connect"));
    };
    let (mut other_side, _) = listener.accept()?;
    io::Write::write_all(&mut other_side, b"x")?;
    let mut received = false;
    for _ in 0..10 {
        reactor.wait(Some(10_000_000), &mut |_, event| {
            received |= matches!(event, Event::Received(b"x"))
        })?;
        if received {
            return Ok(());
        }
    }
    Err(io::Error::other("the probe received nothing"))
}
