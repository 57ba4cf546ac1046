//! The clients of one worker and what surrounds them: events reach them here, and what they want is collected.

use super::Sessions;
use super::dialing::{Dialing, Link};
use super::punctuality::Punctuality;
use super::revival::{Backoff, Revival};
use crate::client::{Client, Context, Next};
use crate::error_log::Place;
use crate::plan::Reconnect;
use crate::reactor::{CancelKey, Connecting as Begun, Event, Reactor, Sending, reason};
use crate::route::AttemptFailure;
use crate::series::SeriesRecorder;
use crate::timers::Timers;

/// How long to wait when the server's queue of connections is full.
const TRY_AGAIN_NS: u64 = 2_000_000;

/// How connecting went for the clients of one worker.
#[derive(Debug)]
pub struct Connecting {
    /// Clients with an open session.
    pub connected: usize,
    /// What the others were told, and how many were told that.
    pub failures: Vec<(String, usize)>,
    /// How many of them had no answer by the deadline.
    pub late: usize,
    /// Facts of the sessions.
    pub sessions: Sessions,
}

/// See the module.
pub struct Crew {
    /// What the clients share.
    pub context: Context,
    clients: Vec<Client>,
    /// Number of the first of them over all workers.
    first_client: usize,
    dialing: Dialing,
    timers: Timers,
    /// Clients that wrote something.
    outbox: Vec<usize>,
    /// Clients whose connection must be closed.
    closing: Vec<usize>,
    /// Clients that must be connected (again).
    connects: Vec<usize>,
    /// Clients that lost a session and want one again.
    revivals: Vec<Option<Revival>>,
    /// Clients that ended a session to have another, and when.
    renewals: Vec<Option<u64>>,
    backoff: Backoff,
    /// Sessions whose request is to be cancelled.
    cancels: Vec<CancelKey>,
    done: Vec<bool>,
    done_count: usize,
    opening_count: usize,
    connect_begin_ns: u64,
    connect_times: SeriesRecorder,
    failures: Vec<(String, usize)>,
    late: usize,
    lost: Option<String>,
    lost_count: usize,
    running: bool,
    punctuality: Punctuality,
}

impl Crew {
    /// All clients without a connection.
    pub fn new(
        clients: Vec<Client>,
        context: Context,
        dialing: Dialing,
        reconnect: &Reconnect,
    ) -> Self {
        let count = clients.len();
        Self {
            connect_begin_ns: context.clock.now_ns(),
            context,
            first_client: clients.first().map_or(0, Client::number),
            clients,
            dialing,
            timers: Timers::new(count),
            outbox: Vec::with_capacity(4 * count),
            closing: Vec::with_capacity(count),
            connects: Vec::with_capacity(count),
            revivals: vec![None; count],
            renewals: vec![None; count],
            backoff: Backoff::new(reconnect),
            cancels: Vec::new(),
            done: vec![false; count],
            done_count: 0,
            opening_count: count,
            connect_times: SeriesRecorder::default(),
            failures: Vec::new(),
            late: 0,
            lost: None,
            lost_count: 0,
            running: false,
            punctuality: Punctuality::new(count),
        }
    }

    /// Begin what a client has to try next.
    pub fn connect(&mut self, slot: usize, reactor: &mut impl Reactor) {
        while matches!(self.dialing.links[slot], Link::Due | Link::Queued) {
            let attempt = self.dialing.attempt(slot);
            let now_ns = self.context.clock.now_ns();
            if self.revivals[slot].is_some() && self.dialing.links[slot] == Link::Due {
                self.context.books.attempt();
            }
            let place = &self.dialing.destination.places[attempt.place];
            match reactor.connect(slot, &place.address) {
                Ok(Begun::Begun) => {
                    self.dialing.links[slot] = Link::Opening;
                    if let Some(limit_ns) = self.attempt_limit_ns(slot) {
                        self.timers.set(slot, now_ns + limit_ns);
                    }
                }
                Ok(Begun::TryLater) => {
                    self.dialing.links[slot] = Link::Queued;
                    return self.timers.set(slot, now_ns + TRY_AGAIN_NS);
                }
                Err(error) => {
                    self.attempt_failed(slot, AttemptFailure::Unreachable, &reason(&error))
                }
            }
        }
    }

    /// How long an attempt of this client may take.
    fn attempt_limit_ns(&self, slot: usize) -> Option<u64> {
        let again_ns = self.revivals[slot].map(|_| self.backoff.attempt_ns);
        let asked_ns = self.dialing.timeout().map(|t| t.as_nanos() as u64);
        again_ns.into_iter().chain(asked_ns).min()
    }

    /// Clients that must be connected again.
    pub fn take_connects(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.connects)
    }

    /// Whether every client is ready or has failed.
    pub fn all_connected(&self) -> bool {
        self.opening_count == 0
    }

    /// The deadline has come for those that are not ready.
    pub fn give_up_connecting(&mut self) {
        for slot in 0..self.clients.len() {
            if self.dialing.links[slot].is_opening() {
                self.timers.unset(slot);
                self.closing.push(slot);
                self.dialing.links[slot] = Link::Failed;
                self.late += 1;
                self.revivals[slot] = None;
                self.clients[slot].give_up();
                self.connect_failed(slot, "no session within the connect deadline");
            }
        }
    }

    /// How it went.
    pub fn connecting(&self) -> Connecting {
        let first = self
            .clients
            .iter()
            .zip(&self.dialing.links)
            .find(|(_, link)| **link == Link::Up);
        Connecting {
            connected: self
                .dialing
                .links
                .iter()
                .filter(|link| **link == Link::Up)
                .count(),
            failures: self.failures.clone(),
            late: self.late,
            sessions: Sessions {
                first: first.map(|(client, _)| client.session().clone()),
                connect_times: self.connect_times.clone(),
            },
        }
    }

    /// An attempt failed: begin the next one, if there is one, when its connection is closed.
    fn attempt_failed(&mut self, slot: usize, failure: AttemptFailure, message: &str) {
        self.timers.unset(slot);
        match self.dialing.failed(slot, failure, message) {
            None => self.connects.push(slot),
            Some(told) => self.connect_failed(slot, &told),
        }
    }

    /// No attempt is left.
    fn connect_failed(&mut self, slot: usize, message: &str) {
        let now_ns = self.context.clock.now_ns();
        let place = Place::default();
        self.context.books.own_error(message, place, now_ns);
        if self.revivals[slot].is_some() {
            return self.revival_failed(slot, message, now_ns);
        }
        if self.renewals[slot].take().is_some() {
            self.clients[slot].not_renewed(message, &self.context);
            self.lost_count += 1;
            self.lost = Some(message.to_owned());
        }
        self.opening_count -= 1;
        self.note_done(slot);
        self.note_failure(message);
    }

    fn note_failure(&mut self, message: &str) {
        match self.failures.iter_mut().find(|(known, _)| known == message) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((message.to_string(), 1)),
        }
    }

    /// A client that lost its session could get no other: when is the next attempt, if there is one?
    fn revival_failed(&mut self, slot: usize, message: &str, now_ns: u64) {
        let going_on = self.context.schedule.as_ref().is_none_or(|schedule| {
            !schedule.is_stopped() && schedule.timetable().phase_at(now_ns).is_some()
        });
        let again = self.revivals[slot]
            .as_mut()
            .and_then(|revival| revival.failed(&self.backoff, now_ns, slot));
        if let (Some(again_ns), true) = (again, going_on) {
            self.dialing.restart(slot, Link::Pausing);
            return self.timers.set(slot, again_ns);
        }
        self.revivals[slot] = None;
        self.clients[slot].give_up();
        self.opening_count -= 1;
        self.timers.unset(slot);
        self.dialing.links[slot] = Link::Lost;
        self.lost_count += 1;
        self.lost = Some(message.to_string());
        self.note_done(slot);
    }

    /// Let every client start.
    pub fn start(&mut self) {
        self.running = true;
        for slot in 0..self.clients.len() {
            let now_ns = self.context.clock.now_ns();
            let next = self.clients[slot].start(&mut self.context, now_ns);
            self.after(slot, next);
        }
    }

    /// Nothing starts any more; those that wait for a start need not.
    pub fn stop(&mut self, now_ns: u64) {
        if let Some(schedule) = &mut self.context.schedule {
            schedule.stop();
        }
        for slot in 0..self.clients.len() {
            if self.clients[slot].stop() {
                self.timers.unset(slot);
                self.note_done(slot);
            }
        }
        self.context.books.turn_to(now_ns);
    }

    /// Starts that clients wait for and that lie beyond the end, which was moved, never happen.
    pub fn forget_starts_from(&mut self, end_ns: u64) {
        for slot in 0..self.clients.len() {
            if self.clients[slot].forget_start_from(end_ns) {
                self.timers.unset(slot);
                self.note_done(slot);
            }
        }
    }

    /// Something happened to a connection.
    pub fn happened(&mut self, slot: usize, event: Event<'_>) {
        let link = self.dialing.links[slot];
        if !matches!(link, Link::Opening | Link::Up) {
            return;
        }
        let client = &mut self.clients[slot];
        let next = match event {
            Event::Received(bytes) => client.receive(bytes, &mut self.context),
            Event::Sent => Next::Wait,
            Event::Connected => {
                client.connected(&self.dialing.destination, self.dialing.attempt(slot))
            }
            Event::Closed(error) => client.connection_closed(error.as_ref(), &mut self.context),
            Event::ConnectFailed(error) => {
                return self.attempt_failed(slot, AttemptFailure::Unreachable, &reason(&error));
            }
        };
        self.after(slot, next);
    }

    /// Every timer that has gone off; whether there was one.
    pub fn timers_due(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        // Timers set meanwhile wait for the next turn, so that scripts that never wait cannot keep this loop.
        for _ in 0..self.clients.len() {
            let Some((slot, due_ns)) = self.timers.take_due(now_ns) else {
                break;
            };
            any = true;
            match self.dialing.links[slot] {
                Link::Queued => {
                    self.connects.push(slot);
                    continue;
                }
                Link::Pausing => {
                    self.dialing.links[slot] = Link::Due;
                    self.connects.push(slot);
                    continue;
                }
                Link::Opening => {
                    self.closing.push(slot);
                    self.attempt_failed(
                        slot,
                        AttemptFailure::Unreachable,
                        "no session within the time an attempt may take",
                    );
                    continue;
                }
                _ => {}
            }
            self.punctuality.went_off(slot, due_ns);
            let next = self.clients[slot].wake(&mut self.context);
            self.after(slot, next);
        }
        self.punctuality.acted(&self.context);
        any
    }

    /// How late timers of the measurement were acted upon.
    pub fn schedule_error(&self) -> &SeriesRecorder {
        &self.punctuality.error
    }

    /// Let the schedule turn away what finds its backlog full, and write down what it has skipped.
    pub fn settle_schedule(&mut self, now_ns: u64) {
        let Some(schedule) = &mut self.context.schedule else {
            return;
        };
        schedule.admit(now_ns);
        while let Some(phase) = schedule.take_skipped() {
            let transaction_type = self.context.mix.choose(self.first_client);
            self.context.books.skipped(transaction_type, phase, now_ns);
        }
    }

    /// When something must be done, if the server does nothing.
    pub fn next_wake_ns(&mut self) -> u64 {
        if !self.connects.is_empty() {
            return 0;
        }
        self.timers
            .next_ns()
            .unwrap_or(u64::MAX)
            .min(self.context.books.boundary_ns())
    }

    /// Do what a client wants after it was told something.
    #[inline]
    fn after(&mut self, slot: usize, next: Next) {
        match next {
            Next::Wait => {}
            Next::WakeAt(due_ns) => {
                self.punctuality.set(slot, due_ns, &self.context);
                self.timers.set(slot, due_ns);
            }
            Next::Watch(due_ns) => self.timers.set(slot, due_ns),
            Next::Cancel(due_ns) => {
                self.timers.set(slot, due_ns);
                self.cancels.extend(self.cancel_key(slot));
            }
            Next::Ready => self.ready(slot),
            Next::Reconnect => self.revive(slot),
            Next::Renew => self.renew(slot),
            Next::Close => self.ended(slot),
        }
        if self.clients[slot].has_to_send() {
            self.outbox.push(slot);
        }
        if self.running && self.clients[slot].is_done() {
            self.note_done(slot);
        }
    }

    fn ready(&mut self, slot: usize) {
        self.dialing.links[slot] = Link::Up;
        if self.attempt_limit_ns(slot).is_some() {
            self.timers.unset(slot);
        }
        self.opening_count -= 1;
        let now_ns = self.context.clock.now_ns();
        if let Some(begin_ns) = self.renewals[slot].take() {
            self.connect_times.record(now_ns - begin_ns);
        } else if self.revivals[slot].take().is_none() {
            return self.connect_times.record(now_ns - self.connect_begin_ns);
        }
        if self.running {
            let next = self.clients[slot].start(&mut self.context, now_ns);
            self.after(slot, next);
        }
    }

    /// A client lost its session and wants another.
    fn revive(&mut self, slot: usize) {
        self.timers.unset(slot);
        self.closing.push(slot);
        self.revivals[slot] = Some(Revival::new(self.context.clock.now_ns()));
        self.dialing.restart(slot, Link::Due);
        self.opening_count += 1;
        self.connects.push(slot);
    }

    /// A client has ended its session and wants another.
    fn renew(&mut self, slot: usize) {
        self.timers.unset(slot);
        self.closing.push(slot);
        self.renewals[slot] = Some(self.context.clock.now_ns());
        self.dialing.restart(slot, Link::Due);
        self.opening_count += 1;
        self.connects.push(slot);
    }

    /// How long connecting took, one value a session that was wanted anew or at first.
    pub fn connect_times(&self) -> &SeriesRecorder {
        &self.connect_times
    }

    /// A client's connection is of no use any more.
    fn ended(&mut self, slot: usize) {
        self.timers.unset(slot);
        self.closing.push(slot);
        let session = self.clients[slot].session();
        match self.dialing.links[slot] {
            Link::Opening => {
                let (failure, message) = session.why_not_opened();
                self.attempt_failed(slot, failure, &message);
            }
            Link::Up => {
                self.lost = session.lost.clone();
                if !self.running {
                    // A session that ended before the start is as good as none.
                    let message = session.lost.clone().unwrap_or_default();
                    self.note_failure(&message);
                }
                self.dialing.links[slot] = Link::Lost;
                self.lost_count += 1;
                self.note_done(slot);
            }
            Link::Due | Link::Queued | Link::Pausing | Link::Failed | Link::Lost => {}
        }
    }

    fn note_done(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.done[slot], true) {
            self.done_count += 1;
        }
    }

    /// Whether no client will ever do anything again.
    pub fn all_done(&self) -> bool {
        self.done_count == self.clients.len()
    }

    /// Whether any client still has a session.
    pub fn any_alive(&self) -> bool {
        self.dialing.links.contains(&Link::Up)
    }

    /// Send and close what clients want sent and closed.
    pub fn flush(&mut self, reactor: &mut impl Reactor) {
        for slot in self.closing.drain(..) {
            reactor.close(slot, self.clients[slot].farewell());
            self.clients[slot].forget_connection();
        }
        for slot in self.outbox.drain(..) {
            let bytes = self.clients[slot].bytes_to_send();
            if !bytes.is_empty() {
                // Where the last buffer is still on its way, `Event::Sent` brings the client back here.
                let _: Sending = reactor.send(slot, bytes);
            }
        }
    }

    /// The deadline: count what is in flight, and say whom the server should no longer work for.
    pub fn cut_off(&mut self, now_ns: u64) -> Vec<CancelKey> {
        let mut keys = Vec::new();
        for slot in 0..self.clients.len() {
            if self.clients[slot].cut_off(&mut self.context, now_ns) {
                keys.extend(self.cancel_key(slot));
            }
        }
        keys
    }

    /// What cancels the request of a client, if its server told.
    fn cancel_key(&self, slot: usize) -> Option<CancelKey> {
        let key = self.clients[slot].session().learned.cancel_key.clone();
        key.map(|(process_id, secret)| CancelKey {
            attempt: self.dialing.attempt(slot),
            process_id,
            secret,
        })
    }

    /// Sessions whose request is to be cancelled.
    pub fn take_cancels(&mut self) -> Vec<CancelKey> {
        std::mem::take(&mut self.cancels)
    }

    /// Starts that were due before `last_start_ns` and that nobody was free to make by `now_ns`.
    pub fn skip_overdue(&mut self, last_start_ns: u64, now_ns: u64) {
        if let Some(schedule) = &mut self.context.schedule {
            schedule.skip_overdue(last_start_ns);
        }
        self.settle_schedule(now_ns);
    }

    /// Close every connection in good order; how many there were.
    pub fn close_all(&mut self, reactor: &mut impl Reactor) -> usize {
        let mut alive = 0;
        for (slot, link) in self.dialing.links.iter().enumerate() {
            if *link == Link::Up {
                alive += 1;
                reactor.close(slot, self.clients[slot].farewell());
            }
        }
        alive
    }

    /// How many clients ended early or are still without the session they lost, and the latest reason.
    pub fn lost(&self) -> (usize, Option<String>) {
        let seeking = self.revivals.iter().flatten().count();
        let why = || (seeking > 0).then(|| "clients could not connect again in time".to_string());
        (self.lost_count + seeking, self.lost.clone().or_else(why))
    }
}
