//! Both reactors against real sockets: the same tests for each.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use super::*;
use crate::wire::target::Address;

/// For this many connections.
fn setting(slots: usize) -> Setting {
    Setting {
        slots,
        receive: Receive::Multishot,
    }
}

/// A listener that is gone with the test, and its address.
struct Listening {
    listener: UnixListener,
    path: PathBuf,
    address: SocketAddress,
}

impl Listening {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("pgdyno-reactor-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let address = SocketAddress::resolve(&Address::Unix(path.clone()))
            .unwrap()
            .remove(0);
        Self {
            listener,
            path,
            address,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Wait until `done` holds, collecting what is received and whether the connection was closed.
#[derive(Default)]
struct Seen {
    received: Vec<u8>,
    connected: bool,
    sent: bool,
    closed: bool,
}

fn wait_until<R: Reactor>(reactor: &mut R, seen: &mut Seen, done: impl Fn(&Seen) -> bool) {
    for _ in 0..2000 {
        if done(seen) {
            return;
        }
        reactor
            .wait(Some(5_000_000), &mut |slot, event| {
                assert_eq!(1, slot);
                match event {
                    Event::Connected => seen.connected = true,
                    Event::Received(bytes) => seen.received.extend_from_slice(bytes),
                    Event::Sent => seen.sent = true,
                    Event::Closed(_) => seen.closed = true,
                    Event::ConnectFailed(error) => panic!("{error}"),
                }
            })
            .unwrap();
    }
    panic!("nothing came within 10 s");
}

fn connected<R: Reactor>(name: &str) -> (R, Seen, UnixStream, Waker) {
    let listening = Listening::new(name);
    let waker = Waker::new().unwrap();
    let mut reactor = R::new(&setting(3), &waker).unwrap();
    assert!(matches!(
        reactor.connect(1, &listening.address).unwrap(),
        Connecting::Begun
    ));
    let mut seen = Seen::default();
    wait_until(&mut reactor, &mut seen, |seen| seen.connected);
    let (server, _) = listening.listener.accept().unwrap();
    (reactor, seen, server, waker)
}

fn bytes_go_both_ways<R: Reactor>(name: &str) {
    let (mut reactor, mut seen, mut server, _waker) = connected::<R>(name);
    for _ in 0..300 {
        let mut question = b"question".to_vec();
        assert_eq!(Sending::Taken, reactor.send(1, &mut question));
        assert!(question.is_empty());
        reactor
            .wait(Some(0), &mut |_, event| {
                assert!(matches!(event, Event::Sent))
            })
            .unwrap();
        let mut asked = [0; 8];
        server.read_exact(&mut asked).unwrap();
        assert_eq!(b"question", &asked);
        server.write_all(b"answer").unwrap();
        seen.received.clear();
        wait_until(&mut reactor, &mut seen, |seen| seen.received == b"answer");
    }
    assert!(reactor.activity().loops >= 300);
}

fn large_amounts_go_both_ways<R: Reactor>(name: &str) {
    let (mut reactor, mut seen, mut server, _waker) = connected::<R>(name);
    let sent: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let expected = sent.clone();
    let echo = std::thread::spawn(move || {
        let mut all = vec![0; 3_000_000];
        server.read_exact(&mut all).unwrap();
        server.write_all(&all).unwrap();
        server
    });
    assert_eq!(Sending::Taken, reactor.send(1, &mut sent.clone()));
    assert_eq!(Sending::Busy, reactor.send(1, &mut b"more".to_vec()));
    wait_until(&mut reactor, &mut seen, |seen| {
        seen.received.len() == expected.len()
    });
    assert!(seen.sent && seen.received == expected);
    drop(echo.join().unwrap());
    wait_until(&mut reactor, &mut seen, |seen| seen.closed);
}

fn a_closed_slot_is_used_again<R: Reactor>(name: &str) {
    let (mut reactor, _, mut server, _waker) = connected::<R>(name);
    server.write_all(b"late").unwrap();
    reactor.close(1, b"bye");
    let mut rest = Vec::new();
    // What was never read resets a Unix connection, after its last bytes.
    let _ = server.read_to_end(&mut rest);
    assert_eq!(b"bye".to_vec(), rest);
    let listening = Listening::new(&format!("{name}-again"));
    reactor.connect(1, &listening.address).unwrap();
    let mut seen = Seen::default();
    wait_until(&mut reactor, &mut seen, |seen| seen.connected);
    let (mut server, _) = listening.listener.accept().unwrap();
    server.write_all(b"new").unwrap();
    wait_until(&mut reactor, &mut seen, |seen| !seen.received.is_empty());
    assert_eq!(b"new".to_vec(), seen.received);
}

fn the_waker_and_the_timeout_end_a_wait<R: Reactor>(name: &str) {
    let (mut reactor, _, _server, waker) = connected::<R>(name);
    let before_ns = crate::clock::now_ns();
    for _ in 0..3 {
        waker.wake();
        // The first wait may only see that nothing else is there.
        reactor.wait(Some(20_000_000_000), &mut |_, _| {}).unwrap();
    }
    assert!(crate::clock::now_ns() - before_ns < 10_000_000_000);
    reactor.wait(Some(0), &mut |_, _| {}).unwrap();
    let before_ns = crate::clock::now_ns();
    reactor.wait(Some(3_000_000), &mut |_, _| {}).unwrap();
    assert!(crate::clock::now_ns() - before_ns >= 3_000_000);
}

fn a_refused_connection_is_an_error<R: Reactor>() {
    let waker = Waker::new().unwrap();
    let mut reactor = R::new(&setting(1), &waker).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = SocketAddress::resolve(&Address::Tcp("127.0.0.1".into(), port))
        .unwrap()
        .remove(0);
    if let Ok(Connecting::Begun) = reactor.connect(0, &address) {
        let mut failed = false;
        for _ in 0..100 {
            reactor
                .wait(Some(10_000_000), &mut |_, event| {
                    failed |= matches!(event, Event::ConnectFailed(_))
                })
                .unwrap();
            if failed {
                return;
            }
        }
        panic!("the refusal was never told");
    }
}

/// Many connections are answered at once, and the kernel has two buffers to receive into.
fn few_buffers_are_enough(receive: Receive) {
    const CONNECTIONS: usize = 16;
    const BYTES: usize = 20_000;
    if choose(crate::plan::ReactorChoice::IoUring).is_err() {
        return;
    }
    let listening = Listening::new(&format!("few-{receive:?}"));
    let waker = Waker::new().unwrap();
    let setting = Setting {
        slots: CONNECTIONS,
        receive,
    };
    let mut reactor = UringReactor::with_buffers(&setting, &waker, 2).unwrap();
    let mut servers = Vec::new();
    for slot in 0..CONNECTIONS {
        reactor.connect(slot, &listening.address).unwrap();
        servers.push(listening.listener.accept().unwrap().0);
    }
    let mut connected = 0;
    while connected < CONNECTIONS {
        let seen = &mut |_, event: Event<'_>| {
            connected += usize::from(matches!(event, Event::Connected));
        };
        reactor.wait(Some(1_000_000_000), seen).unwrap();
    }
    // Twice, so that a receive is armed again after it found no buffer.
    for round in 1..=2 {
        for (slot, server) in servers.iter_mut().enumerate() {
            server.write_all(&vec![slot as u8 + round; BYTES]).unwrap();
        }
        let mut received = vec![0; CONNECTIONS];
        for _ in 0..10_000 {
            let take = &mut |slot: usize, event: Event<'_>| match event {
                Event::Received(bytes) => {
                    assert!(bytes.iter().all(|&byte| byte == slot as u8 + round));
                    received[slot] += bytes.len();
                }
                other => panic!("{other:?}"),
            };
            reactor.wait(Some(5_000_000), take).unwrap();
            if received.iter().all(|&count| count == BYTES) {
                break;
            }
        }
        assert_eq!(vec![BYTES; CONNECTIONS], received);
    }
    let activity = reactor.activity();
    assert_eq!(activity.loops, activity.batch_sizes.iter().sum::<u64>());
}

#[test]
fn few_buffers_are_enough_for_multishot_receives() {
    few_buffers_are_enough(Receive::Multishot);
}

#[test]
fn few_buffers_are_enough_for_oneshot_receives() {
    few_buffers_are_enough(Receive::Oneshot);
}

#[test]
fn batches_are_counted_in_powers_of_two() {
    let mut activity = Activity::default();
    for events in [0, 1, 2, 3, 4, 7, 8, 1 << 40] {
        activity.turned(events);
    }
    assert_eq!([1, 1, 2, 2, 1], activity.batch_sizes[..5]);
    assert_eq!((8, Some(&1)), (activity.loops, activity.batch_sizes.last()));
}

macro_rules! for_both_reactors {
    ($($test:ident),*) => {
        mod epoll_reactor {
            $(#[test] fn $test() { super::$test::<super::EpollReactor>(concat!("e-", stringify!($test))); })*
            #[test] fn a_refused_connection_is_an_error() { super::a_refused_connection_is_an_error::<super::EpollReactor>(); }
        }
        mod uring_reactor {
            $(#[test] fn $test() {
                // Where io_uring is forbidden the engine uses epoll, and there is nothing to test.
                if super::choose(crate::plan::ReactorChoice::IoUring).is_ok() {
                    super::$test::<super::UringReactor>(concat!("u-", stringify!($test)));
                }
            })*
            #[test] fn a_refused_connection_is_an_error() {
                if super::choose(crate::plan::ReactorChoice::IoUring).is_ok() {
                    super::a_refused_connection_is_an_error::<super::UringReactor>();
                }
            }
        }
    };
}

for_both_reactors!(
    bytes_go_both_ways,
    large_amounts_go_both_ways,
    a_closed_slot_is_used_again,
    the_waker_and_the_timeout_end_a_wait
);
