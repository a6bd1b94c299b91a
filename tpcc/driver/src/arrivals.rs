//! When transactions are due: a Poisson process, as `Arrivals` of `hotset/load/arrivals.py` draws
//! it, draw by draw.
//!
//! A transaction's latency counts from the moment it was due, whether or not a user was free then:
//! otherwise a slow second would hide how many waited in it (coordinated omission).

use serde::Deserialize;

use crate::mersenne::Mersenne;

/// One that starts later than this after it was due is late.
const LATE_S: f64 = 0.001;

/// An open load: transactions are due by a Poisson process.
#[derive(Deserialize)]
pub struct ArrivalOptions {
    /// Transactions a second, of all users together.
    pub rate_per_s: f64,
    /// How long a transaction may wait for a free user before it is given up.
    pub patience_s: f64,
    /// The seed of each thread's arrivals, as 32-bit words, the lowest first.
    pub seeds: Vec<Vec<u32>>,
}

/// The arrivals for one thread's users.
pub struct Arrivals {
    random: Mersenne,
    mean_s: f64,
    patience_s: f64,
    next: f64,
    end: f64,
}

/// What became of the arrivals up to one that can be served.
pub struct Taken {
    /// When the transaction to serve is due; None when the run is over.
    pub due: Option<f64>,
    /// When those were due that waited for too long.
    pub skipped: Vec<f64>,
}

impl Arrivals {
    /// `share`: of the run's rate, what this thread's users serve.
    pub fn new(options: &ArrivalOptions, thread: usize, share: f64) -> Self {
        Self {
            random: Mersenne::new(&options.seeds[thread]),
            mean_s: 1.0 / (options.rate_per_s * share),
            patience_s: options.patience_s,
            next: 0.0,
            end: 0.0,
        }
    }

    /// The first transaction is due some time after `start`, the last before `end`.
    pub fn begin(&mut self, start: f64, end: f64) {
        (self.next, self.end) = (start, end);
        self.draw();
    }

    fn draw(&mut self) -> f64 {
        let due = self.next;
        self.next += self.random.exponential(self.mean_s);
        due
    }

    /// The next arrival for a user who is free now, past those that waited beyond patience. What
    /// was due before the window closed is served after it, too.
    pub fn take(&mut self, now: f64) -> Taken {
        let mut skipped = Vec::new();
        while self.next < self.end {
            let due = self.draw();
            if now - due <= self.patience_s {
                return Taken {
                    due: Some(due),
                    skipped,
                };
            }
            skipped.push(due);
        }
        Taken { due: None, skipped }
    }
}

/// Whether a transaction that starts now is late.
pub fn is_late(due: f64, now: f64) -> bool {
    now - due > LATE_S
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(rate_per_s: f64) -> Arrivals {
        let options = ArrivalOptions {
            rate_per_s,
            patience_s: 2.0,
            seeds: vec![vec![42]],
        };
        let mut arrivals = Arrivals::new(&options, 0, 0.5);
        arrivals.begin(100.0, 200.0);
        arrivals
    }

    #[test]
    fn the_rate_is_the_share_of_the_run_s() {
        let mut arrivals = arrivals(40.0);
        let mut dues = Vec::new();
        while let Some(due) = arrivals.take(100.0).due {
            dues.push(due);
        }
        assert!((1850..2150).contains(&dues.len()), "{}", dues.len());
        assert!(dues.is_sorted());
        assert!(dues[0] > 100.0 && dues[dues.len() - 1] < 200.0);
    }

    #[test]
    fn those_that_waited_beyond_patience_are_skipped_and_counted() {
        let mut arrivals = arrivals(20.0);
        let taken = arrivals.take(150.0);
        let due = taken.due.unwrap();
        assert!((148.0..150.0).contains(&due), "{due}");
        assert!(taken.skipped.iter().all(|skipped| *skipped < 148.0));
        assert!((400..560).contains(&taken.skipped.len()));
    }

    #[test]
    fn what_was_due_before_the_end_is_served_after_it() {
        let mut arrivals = arrivals(20.0);
        let taken = arrivals.take(200.5);
        assert!((198.5..200.0).contains(&taken.due.unwrap()));
        let mut served = 1;
        while let Some(due) = arrivals.take(200.5).due {
            assert!(due < 200.0);
            served += 1;
        }
        assert!((2..40).contains(&served), "{served}");
        assert!(arrivals.take(200.5).skipped.is_empty());
    }
}
