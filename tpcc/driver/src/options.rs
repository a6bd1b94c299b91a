//! What the parent says: the options of a run, as one line of JSON on standard input. Secrets
//! travel there too, and nowhere else.

use std::collections::HashMap;

use serde::Deserialize;

use crate::arrivals::{ArrivalOptions, Arrivals};

/// A run, as the parent wants it. Times are in seconds.
#[derive(Deserialize)]
pub struct Options {
    /// The libpq to load: the one that the parent's own connections use.
    pub libpq: String,
    /// Connection parameters of libpq, the password among them.
    pub connection: HashMap<String, String>,
    /// Statements that each connection begins with.
    pub setup: String,
    /// The five stored procedures, in the order of their clauses.
    pub procedures: Vec<String>,
    /// What SQLSTATEs mean.
    pub errors: Errors,
    /// Threads that share the users.
    pub threads: usize,
    /// The users.
    pub users: Vec<UserOptions>,
    /// Warehouses that take part.
    pub warehouses: u32,
    /// Each transaction picks its warehouse; otherwise users stay at home.
    pub all_warehouses: bool,
    /// Users pause (clause 5.2.5).
    pub think_time: bool,
    /// Transactions are due at random times, whoever is free; otherwise as soon as a user is free.
    pub arrivals: Option<ArrivalOptions>,
    /// Items and customers by number are drawn uniformly, as by HammerDB; otherwise by NURand.
    pub uniform: bool,
    /// The constants C of clause 2.1.6.
    pub constants: Constants,
    /// The cards a user shuffles and deals (clause 5.2.4.2), as kinds.
    pub deck: Vec<u8>,
    /// Keying times by kind.
    pub keying_s: [f64; 5],
    /// Mean think times by kind.
    pub think_s: [f64; 5],
    /// Repetitions of an aborted transaction before it counts as failed.
    pub retries: u32,
    /// The longest pause before the first repetition; the second's is twice that, and so on.
    pub backoff_s: f64,
    /// The pause after a failed transaction.
    pub failure_pause_s: f64,
    /// How long transactions under way at the end may take to finish.
    pub drain_s: f64,
    /// After a whole second, when to report it: its last samples are in by then.
    pub report_grace_s: f64,
}

impl Options {
    /// The numbers of the users of one thread.
    pub fn users_of(&self, thread: usize) -> impl ExactSizeIterator<Item = usize> {
        (thread..self.users.len()).step_by(self.threads)
    }

    /// When transactions are due for one thread's users; None when as soon as a user is free.
    pub fn arrivals_of(&self, thread: usize) -> Option<Arrivals> {
        let share = self.users_of(thread).len() as f64 / self.users.len() as f64;
        self.arrivals
            .as_ref()
            .map(|options| Arrivals::new(options, thread, share))
    }
}

/// SQLSTATEs and what they mean to the run.
#[derive(Deserialize)]
pub struct Errors {
    /// The unused item of clause 2.4.1.4 was met.
    pub intended_rollback: String,
    /// State to cause: worth a repetition.
    pub retryable: HashMap<String, String>,
    /// State to cause: does not pass by itself.
    pub lasting: HashMap<String, String>,
    /// Beginnings of states that mean: the server is gone.
    pub gone: Vec<String>,
}

/// The constants C of NURand, one per use.
#[derive(Deserialize)]
pub struct Constants {
    /// Of last names.
    pub last_name: u32,
    /// Of customer numbers.
    pub customer: u32,
    /// Of item numbers.
    pub item: u32,
}

/// One user.
#[derive(Deserialize)]
pub struct UserOptions {
    /// The seed of this user's stream, as 32-bit words, the lowest first.
    pub seed: Vec<u32>,
    /// Its home warehouse.
    pub warehouse: u32,
    /// Its home district.
    pub district: u32,
}

/// When users start and stop starting transactions: seconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Deserialize)]
pub struct Begin {
    /// The start of ramp-up.
    pub start: f64,
    /// The start of the window.
    pub opens: f64,
    /// The end of the window.
    pub end: f64,
}
