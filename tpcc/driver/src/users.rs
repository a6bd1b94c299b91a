//! The inner loop: one thread drives the connections of all its users.
//!
//! Each user has one call under way or sleeps; the thread waits for whatever comes first, an
//! answer, the end of a sleep (a pause, or until a transaction is due) or the second's end. So no user wakes another's thread, and a
//! transaction costs one send, one receive and a share of one wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::arrivals::{Arrivals, is_late};
use crate::clock;
use crate::inputs::{Kind, Terminal, Value};
use crate::libpq::{Answer, Connection, Libpq};
use crate::mersenne::Mersenne;
use crate::options::{Begin, Options};
use crate::poll::Poll;
use crate::report::Recorder;

struct User<'r> {
    connection: Connection<'r>,
    terminal: Terminal<'r>,
    /// The transaction under way, or the one a sleep ends with.
    kind: Kind,
    inputs: Vec<Value>,
    attempt: u32,
    /// What the latency counts from: when the transaction was due, or else when it was sent.
    started: f64,
    awake: Awake,
    /// There is nothing left to do.
    home: bool,
}

/// What a user does when a sleep ends.
#[derive(Clone, Copy)]
enum Awake {
    /// Starts the transaction.
    Start,
    /// Starts the transaction that is due then.
    StartDue,
    /// Repeats the call as it is.
    Repeat,
    /// Takes the next arrival, after a failure.
    TakeArrival,
}

/// The users of one thread.
pub struct Users<'r> {
    options: &'r Options,
    users: Vec<User<'r>>,
    poll: Poll,
    /// When sleepers wake: (monotonic time in nanoseconds, user), the earliest first.
    sleepers: BinaryHeap<Reverse<(u64, usize)>>,
    jitter: Mersenne,
    arrivals: Option<Arrivals>,
    working: usize,
    end: f64,
    /// Samples not yet reported.
    pub recorder: Recorder,
}

impl<'r> Users<'r> {
    /// Connects each user of this thread; the error says why that failed.
    pub fn connect(
        library: &'r Libpq,
        options: &'r Options,
        thread: usize,
        recorder: Recorder,
    ) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let mut users = Vec::new();
        let mut first = 0;
        for number in options.users_of(thread) {
            let connection = Connection::open(
                library,
                &options.connection,
                &options.setup,
                &options.procedures,
            )?;
            poll.add(connection.socket(), users.len())
                .map_err(|error| error.to_string())?;
            first = number as u32;
            users.push(User {
                connection,
                terminal: Terminal::new(options, &options.users[number]),
                kind: 0,
                inputs: Vec::new(),
                attempt: 0,
                started: 0.0,
                awake: Awake::Start,
                home: false,
            });
        }
        Ok(Self {
            options,
            working: users.len(),
            users,
            poll,
            sleepers: BinaryHeap::new(),
            jitter: Mersenne::new(&[first]),
            arrivals: options.arrivals_of(thread),
            end: 0.0,
            recorder,
        })
    }

    /// Works until the window closes and all transactions under way are done. An error means that
    /// the server is gone.
    pub fn work(&mut self, begin: Begin) -> Result<(), String> {
        self.end = begin.end;
        self.recorder.begin(begin);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.begin(begin.start, begin.end);
        }
        clock::sleep_until(begin.start);
        for user in 0..self.users.len() {
            if self.options.think_time {
                // People do not all sit down in the same second.
                let pause_s = self.jitter.random() * self.options.keying_s[0];
                self.take_card(user, pause_s)?;
            } else {
                self.take_card(user, 0.0)?;
            }
        }
        let mut reports = Reports::new(begin, self.options.report_grace_s);
        let last = begin.end + self.options.drain_s + self.patience_s();
        let mut ready = Vec::new();
        while self.working > 0 {
            let now = clock::now();
            if now > last {
                break;
            }
            if reports.due(now) {
                self.recorder.report();
            }
            self.wake(now)?;
            let until = self.next_wake().min(reports.next);
            self.poll
                .wait(until, &mut ready)
                .map_err(|e| e.to_string())?;
            for user in ready.drain(..) {
                if let Some(answer) = self.users[user].connection.receive() {
                    self.settle(user, answer)?;
                }
            }
        }
        clock::sleep_until(begin.end + self.options.report_grace_s);
        self.give_up();
        self.recorder.report();
        Ok(())
    }

    /// How long what was due in the window may wait for a user after it.
    fn patience_s(&self) -> f64 {
        self.options
            .arrivals
            .as_ref()
            .map_or(0.0, |arrivals| arrivals.patience_s)
    }

    /// Counts what stuck users have under way, and the arrivals that they leave, all of which have
    /// waited beyond patience.
    fn give_up(&mut self) {
        let now = clock::now();
        for user in self.users.iter().filter(|user| !user.home) {
            self.recorder.unfinished(user.started, now, user.kind);
        }
        self.take_arrival(now);
    }

    fn go_home(&mut self, index: usize) {
        self.users[index].home = true;
        self.working -= 1;
    }

    /// Deals the user's next transaction and starts it: when it is due, or after a pause and its
    /// keying time where users are to pause; past the end the user goes home instead.
    fn take_card(&mut self, index: usize, pause_s: f64) -> Result<(), String> {
        if self.arrivals.is_some() {
            return self.await_arrival(index, pause_s);
        }
        let user = &mut self.users[index];
        (user.kind, user.inputs) = user.terminal.next();
        let now = clock::now();
        let mut pause_s = pause_s;
        if self.options.think_time {
            pause_s += self.options.keying_s[usize::from(user.kind)];
        }
        if now + pause_s >= self.end {
            self.go_home(index);
            return Ok(());
        }
        if pause_s > 0.0 {
            self.sleep(index, now + pause_s, Awake::Start);
            return Ok(());
        }
        self.start(index, now)
    }

    /// The same for transactions that are due at times of their own.
    fn await_arrival(&mut self, index: usize, pause_s: f64) -> Result<(), String> {
        let now = clock::now();
        if pause_s > 0.0 {
            self.sleep(index, now + pause_s, Awake::TakeArrival);
            return Ok(());
        }
        let Some(due) = self.take_arrival(now) else {
            self.go_home(index);
            return Ok(());
        };
        let user = &mut self.users[index];
        (user.kind, user.inputs) = user.terminal.next();
        user.started = due;
        if due > now {
            self.sleep(index, due, Awake::StartDue);
            return Ok(());
        }
        self.start_due(index, now)
    }

    /// When the next transaction is due; those that waited for too long are recorded as skipped.
    fn take_arrival(&mut self, now: f64) -> Option<f64> {
        let taken = self.arrivals.as_mut()?.take(now);
        for due in taken.skipped {
            self.recorder.skipped(due);
        }
        taken.due
    }

    fn start_due(&mut self, index: usize, now: f64) -> Result<(), String> {
        let due = self.users[index].started;
        self.recorder.started(due, is_late(due, now));
        self.start(index, due)
    }

    /// Sends the transaction, whose latency counts `from` there.
    fn start(&mut self, index: usize, from: f64) -> Result<(), String> {
        let user = &mut self.users[index];
        (user.attempt, user.started) = (0, from);
        user.connection.send(user.kind, &user.inputs)
    }

    /// Does what those wanted whose sleep is over.
    fn wake(&mut self, now: f64) -> Result<(), String> {
        while let Some(Reverse((at, index))) = self.sleepers.peek().copied() {
            if at > clock::nanoseconds(now) {
                break;
            }
            self.sleepers.pop();
            let user = &mut self.users[index];
            match user.awake {
                Awake::Repeat => user.connection.send(user.kind, &user.inputs)?,
                Awake::Start => self.start(index, now)?,
                Awake::StartDue => self.start_due(index, now)?,
                Awake::TakeArrival => self.await_arrival(index, 0.0)?,
            }
        }
        Ok(())
    }

    /// An answer came: record it, and go on.
    fn settle(&mut self, index: usize, answer: Answer) -> Result<(), String> {
        let now = clock::now();
        let errors = &self.options.errors;
        let user = &mut self.users[index];
        let kind = user.kind;
        let (state, message) = match answer {
            Answer::Done => {
                self.recorder.commit(kind, user.started, now);
                return self.go_on(index);
            }
            Answer::Refused(state, message) => (state, message),
        };
        if state == errors.intended_rollback {
            self.recorder.event(now, kind, "rolled back", "");
            return self.go_on(index);
        }
        let gone = errors.gone.iter().any(|class| state.starts_with(class));
        if user.connection.broken() || state.is_empty() || gone {
            return Err(message);
        }
        if let Some(cause) = errors.retryable.get(&state) {
            if user.attempt < self.options.retries {
                self.recorder.event(now, kind, "retry", cause);
                user.attempt += 1;
                let longest_s = self.options.backoff_s * f64::from(user.attempt);
                let pause_s = self.jitter.random() * longest_s;
                self.sleep(index, now + pause_s, Awake::Repeat);
                return Ok(());
            }
            self.recorder
                .failed(user.started, now, kind, cause, &message);
        } else {
            let cause = errors.lasting.get(&state).cloned();
            let cause = cause.unwrap_or_else(|| format!("error {state}"));
            self.recorder
                .failed(user.started, now, kind, &cause, &message);
        }
        // A server that refuses everything gets no flood.
        self.go_on_after(index, self.options.failure_pause_s)
    }

    fn go_on(&mut self, index: usize) -> Result<(), String> {
        self.go_on_after(index, 0.0)
    }

    fn go_on_after(&mut self, index: usize, pause_s: f64) -> Result<(), String> {
        let user = &mut self.users[index];
        let think_s = if self.options.think_time {
            user.terminal.think_s(user.kind)
        } else {
            0.0
        };
        self.take_card(index, pause_s + think_s)
    }

    fn sleep(&mut self, index: usize, until: f64, awake: Awake) {
        self.users[index].awake = awake;
        self.sleepers
            .push(Reverse((clock::nanoseconds(until), index)));
    }

    fn next_wake(&self) -> f64 {
        self.sleepers
            .peek()
            .map_or(f64::INFINITY, |Reverse((at, _))| *at as f64 / 1e9)
    }
}

/// When to report: after each whole second of the run, by a grace for its last sample.
struct Reports {
    next: f64,
}

impl Reports {
    fn new(begin: Begin, grace_s: f64) -> Self {
        Self {
            next: begin.start + 1.0 + grace_s,
        }
    }

    fn due(&mut self, now: f64) -> bool {
        let due = now >= self.next;
        while now >= self.next {
            self.next += 1.0;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_due_once_after_each_second_however_late() {
        let mut reports = Reports::new(
            Begin {
                start: 100.0,
                opens: 100.0,
                end: 110.0,
            },
            0.02,
        );
        let due: Vec<bool> = [100.5, 101.01, 101.03, 101.5, 104.5, 104.6, 105.02]
            .map(|now| reports.due(now))
            .into();
        assert_eq!(due, [false, false, true, false, true, false, true]);
    }
}
