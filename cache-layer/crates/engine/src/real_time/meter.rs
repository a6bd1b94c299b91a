//! What goes through a device, and how long it takes: requests, bytes and latencies by direction,
//! and the time with a request under way. Times are real ones.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::Serialize;

use super::Op;
use crate::reply::Reply;

/// Binary digits of a latency that are kept: it is known to 1/16 of itself.
const DIGITS: u32 = 4;

/// Room for latencies below 2^36 us, which is 19 hours; a longer one counts as that.
const BUCKETS: usize = (36 - DIGITS as usize + 1) << DIGITS;

/// Counts the requests to a device.
pub struct Meter {
    books: Mutex<Books>,
    start: Instant,
}

struct Books {
    read: Side,
    write: Side,
    under_way: u64,
    busy_since_ns: u64,
    busy_ns: u64,
}

struct Side {
    requests: u64,
    bytes: u64,
    ns: u64,
    buckets: Box<[u64; BUCKETS]>,
}

/// One direction of a device since it was started.
#[derive(Debug, PartialEq, Serialize)]
pub struct SideCounters {
    /// Requests that have ended.
    requests: u64,
    /// What they were for.
    bytes: u64,
    /// Their latencies together.
    ns: u64,
    /// How many took at most so many microseconds, and longer than the entry before says.
    latencies_us: Vec<(u64, u64)>,
}

/// A device since it was started.
#[derive(Debug, PartialEq, Serialize)]
pub struct DeviceCounters {
    name: &'static str,
    read: SideCounters,
    write: SideCounters,
    /// Time with at least one request under way.
    busy_ns: u64,
}

/// A request under way; it has ended when this is dropped.
pub struct Timing {
    meter: Arc<Meter>,
    op: Op,
    bytes: u64,
    begun_ns: u64,
}

impl Meter {
    /// Begins to count.
    pub fn new() -> Arc<Meter> {
        Arc::new(Meter {
            books: Mutex::new(Books {
                read: Side::new(),
                write: Side::new(),
                under_way: 0,
                busy_since_ns: 0,
                busy_ns: 0,
            }),
            start: Instant::now(),
        })
    }

    /// A request begins. Only reads and writes are counted.
    pub fn begin(self: &Arc<Self>, op: Op, bytes: u64) -> Timing {
        let mut books = self.books.lock();
        // Within the lock, or a request could begin before one that ended earlier.
        let begun_ns = self.now_ns();
        if books.under_way == 0 {
            books.busy_since_ns = begun_ns;
        }
        books.under_way += 1;
        Timing {
            meter: self.clone(),
            op,
            bytes,
            begun_ns,
        }
    }

    /// What there was until now.
    pub fn counters(&self, name: &'static str) -> DeviceCounters {
        let books = self.books.lock();
        let running_ns = match books.under_way {
            0 => 0,
            _ => self.now_ns() - books.busy_since_ns,
        };
        DeviceCounters {
            name,
            read: books.read.counters(),
            write: books.write.counters(),
            busy_ns: books.busy_ns + running_ns,
        }
    }

    fn end(&self, timing: &Timing) {
        let mut books = self.books.lock();
        let now_ns = self.now_ns();
        books.under_way -= 1;
        if books.under_way == 0 {
            books.busy_ns += now_ns - books.busy_since_ns;
        }
        let taken_ns = now_ns - timing.begun_ns;
        match timing.op {
            Op::Read => books.read.count(timing.bytes, taken_ns),
            Op::Write => books.write.count(timing.bytes, taken_ns),
            Op::Flush | Op::Discard => {}
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

impl Timing {
    /// A reply that ends the request when it is given.
    pub fn until(self, reply: Reply) -> Reply {
        Reply::then(move |outcome| {
            drop(self);
            reply.give(outcome);
        })
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        self.meter.end(self);
    }
}

impl Side {
    fn new() -> Side {
        Side {
            requests: 0,
            bytes: 0,
            ns: 0,
            buckets: Box::new([0; BUCKETS]),
        }
    }

    fn count(&mut self, bytes: u64, taken_ns: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.ns += taken_ns;
        self.buckets[bucket(taken_ns / 1000)] += 1;
    }

    fn counters(&self) -> SideCounters {
        let counted = self
            .buckets
            .iter()
            .zip(0..)
            .filter(|(count, _)| **count > 0);
        SideCounters {
            requests: self.requests,
            bytes: self.bytes,
            ns: self.ns,
            latencies_us: counted
                .map(|(&count, number)| (highest_us(number), count))
                .collect(),
        }
    }
}

/// Where a latency is counted: by its first binary digits.
fn bucket(us: u64) -> usize {
    let shift = (u64::BITS - us.leading_zeros()).saturating_sub(DIGITS + 1);
    let number = ((shift as usize) << DIGITS) + (us >> shift) as usize;
    number.min(BUCKETS - 1)
}

/// The longest latency that is counted there.
fn highest_us(number: usize) -> u64 {
    let shift = (number >> DIGITS).saturating_sub(1);
    let first = (number - (shift << DIGITS)) as u64;
    ((first + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn requests_count_when_they_end_and_the_device_is_busy_until_then() {
        let meter = Meter::new();
        let first = meter.begin(Op::Read, 4096);
        let second = meter.begin(Op::Write, 512);
        sleep(Duration::from_millis(5));
        drop(first);
        let flush = meter.begin(Op::Flush, 0);
        let counted = meter.counters("origin");
        assert_eq!((counted.read.requests, counted.read.bytes), (1, 4096));
        assert_eq!(counted.write.requests, 0);
        assert!(counted.read.ns >= 5_000_000);
        assert_eq!(counted.read.latencies_us[0].1, 1);
        assert!(counted.read.latencies_us[0].0 >= 5000);
        assert!(counted.busy_ns >= counted.read.ns);
        drop((second, flush));
        let rested = meter.counters("origin");
        assert_eq!((rested.write.requests, rested.write.bytes), (1, 512));
        sleep(Duration::from_millis(5));
        assert_eq!(meter.counters("origin"), rested, "nothing is under way");
    }

    #[test]
    fn a_reply_ends_its_request() {
        let meter = Meter::new();
        let (sender, replies) = std::sync::mpsc::channel();
        let reply = Reply::then(move |outcome| sender.send(outcome.is_ok()).unwrap());
        let timed = meter.begin(Op::Read, 10).until(reply);
        assert_eq!(meter.counters("origin").read.requests, 0);
        timed.give_bytes(&[1; 10]);
        assert_eq!(replies.recv(), Ok(true));
        assert_eq!(meter.counters("origin").read.requests, 1);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_what_is_close_to_its_highest(us in 0_u64..1 << 36) {
            let number = bucket(us);
            prop_assert!(number < BUCKETS);
            let highest = highest_us(number);
            prop_assert!(us <= highest);
            prop_assert!(highest - us <= us / 16);
            prop_assert!(number == 0 || highest_us(number - 1) < us);
        }

        #[test]
        fn no_latency_is_too_long(us: u64) {
            prop_assert!(bucket(us) < BUCKETS);
        }
    }
}
