//! A worker with its reactor against a server on the other side of real sockets.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::allocations::on_this_thread;
use crate::books::ToWriter;
use crate::history::Wanted;
use crate::reactor::{EpollReactor, ReactorKind, UringReactor, choose};
use crate::script::language::ScriptLanguage;

const CLIENTS: usize = 4;

/// Lets everybody in and acknowledges every query; its socket is gone with the test.
struct Server {
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pgdyno-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
        std::thread::spawn(move || {
            for socket in listener.incoming().take(CLIENTS) {
                let socket = socket.unwrap();
                std::thread::spawn(move || serve(socket));
            }
        });
        Self { folder }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A client of the simple protocol never has more than one message under way.
fn serve(mut socket: UnixStream) {
    const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    const DONE: &[u8] = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
    let mut buffer = [0; 4096];
    let mut answer = WELCOME;
    while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
        if socket.write_all(answer).is_err() {
            return;
        }
        answer = DONE;
    }
}

/// A worker that has connected and whose measurement has begun.
struct Stage<R> {
    worker: Worker<R>,
    _parts: Receiver<ToWriter>,
    _server: Server,
}

impl<R: Reactor> Stage<R> {
    fn new(name: &str, load: &str) -> Self {
        let server = Server::start(name);
        let plan: Plan = serde_json::from_str(&format!(
            r#"{{"name": "x", "conninfo": "host={} user=u dbname=d", "clients": {CLIENTS}, "seed": 1, "output_dir": "/o",
                "duration_s": 60, "interval_s": 60, "protocol": "simple", "session_settings": [], "load": {load},
                "transaction_types": [{{"name": "t", "weight": 1, "source": "t.sql",
                                        "script": "\\set k random(1, 9)\nSELECT :k;"}}]}}"#,
            server.folder.display()
        ))
        .unwrap();
        let destination = Destination::resolve(&plan.conninfo).ok().unwrap();
        let destination = Arc::new(destination.look_up().unwrap());
        let language: Arc<dyn Language> = Arc::new(ScriptLanguage::new(&plan).unwrap());
        let statements = Arc::new(Statements::new(&plan, language.statements()));
        let orders = Arc::new(Orders::new(1).unwrap());
        let (parts, received) = channel();
        let (_, cleared) = channel();
        let exchange = Exchange {
            worker: 0,
            first_client: 0,
            wanted: Wanted::by(&plan),
            parts,
            cleared,
            cleared_records: channel().1,
        };
        let assignment = Arc::new(Assignment {
            plan,
            language,
            statements,
            destination,
            rules: None,
        });
        let part = Part {
            worker: 0,
            first_client: 0,
            clients: CLIENTS,
            cpu: None,
        };
        let waker = orders.waker(0).clone();
        let mut worker =
            Worker::<R>::new(assignment, part, &waker, orders, exchange, channel().0).unwrap();
        worker.connect().unwrap();
        assert_eq!(CLIENTS, worker.crew.connecting().connected);
        let timetable = Timetable::new(&worker.assignment.plan, worker.now_ns());
        worker.begin(&timetable.into());
        Self {
            worker,
            _parts: received,
            _server: server,
        }
    }

    /// Turn as `Worker::run` does, for this long.
    fn turn_for(&mut self, duration_ns: u64) {
        let end_ns = self.worker.now_ns() + duration_ns;
        while self.worker.now_ns() < end_ns {
            self.worker.turn(Some(end_ns)).unwrap();
            self.worker.take_orders();
            self.worker.note_cost();
        }
    }
}

fn the_loop_allocates_nothing<R: Reactor>(name: &str, load: &str) {
    let mut stage = Stage::<R>::new(name, load);
    stage.turn_for(100_000_000);
    let (events, allocations) = (stage.worker.reactor.activity().events, on_this_thread());
    stage.turn_for(300_000_000);
    let events = stage.worker.reactor.activity().events - events;
    assert_eq!(0, on_this_thread() - allocations, "in {events} events");
    assert!(events > 100, "{events}");
    let committed = stage.worker.end().total.tallies[1].committed;
    assert!(committed > 100, "{committed}");
}

#[test]
fn a_closed_loop_allocates_nothing() {
    let load = r#"{"kind": "closed"}"#;
    the_loop_allocates_nothing::<EpollReactor>("closed-e", load);
    if choose(crate::plan::ReactorChoice::IoUring).ok() == Some(ReactorKind::IoUring) {
        the_loop_allocates_nothing::<UringReactor>("closed-u", load);
    }
}

#[test]
fn an_open_loop_allocates_nothing() {
    let load = r#"{"kind": "open", "rate_per_s": 2000, "backlog_limit": 100}"#;
    the_loop_allocates_nothing::<EpollReactor>("open-e", load);
    if choose(crate::plan::ReactorChoice::IoUring).ok() == Some(ReactorKind::IoUring) {
        the_loop_allocates_nothing::<UringReactor>("open-u", load);
    }
}

/// Every timer of the measurement has its error, and the lag of a client that waited is no other.
#[test]
fn timers_that_go_off_late_are_told() {
    let load = r#"{"kind": "open", "rate_per_s": 500, "arrival": "constant"}"#;
    let mut stage = Stage::<EpollReactor>::new("late", load);
    stage.turn_for(100_000_000);
    // The worker is kept from its work for 30 ms.
    std::thread::sleep(std::time::Duration::from_millis(30));
    stage.turn_for(100_000_000);
    let report = stage.worker.end();
    let error = report.schedule_error.summarize();
    assert!(error.max_ns > 20_000_000, "{error:?}");
    assert!(error.count > 50 && error.min_ns < 20_000_000, "{error:?}");
}
