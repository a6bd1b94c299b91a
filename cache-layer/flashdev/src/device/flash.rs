//! A flash device: one budget of work for reads and writes, and latencies that overlap.
//!
//! Flash has no arm: what a request costs does not depend on the one before it. Many dies work
//! side by side behind one controller, so a request delays its own answer by its latency, but
//! the next request only by its period: 1 / IOPS, or the time of its bytes at the rate of its
//! direction if that is longer. Requests take their periods one after the other, whatever their
//! direction, so each write takes its share from the reads. With n reads outstanding that makes
//! min(n / latency, IOPS) per second, which is Little's law and the curve of a data sheet.
//!
//! Left out are requests that meet on one die, which rounds the knee of the curve off, and
//! garbage collection as such: an IOPS figure of the steady state has it in its mean.

use super::{Agenda, Completion, Device, Op, Request};
use crate::time::{NANOS_PER_S, Nanos, nanos_per_byte};

/// What a flash is built from; the model checks the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashSpec {
    /// Reading.
    pub read: DirectionSpec,
    /// Writing.
    pub write: DirectionSpec,
}

/// What a flash does in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectionSpec {
    /// Time of a small request that has the device to itself.
    pub latency: Nanos,
    /// Most requests per second.
    pub iops: u32,
    /// Most MB/s.
    pub mb_per_s: f64,
}

#[derive(Clone, Copy, Debug)]
struct Direction {
    latency: Nanos,
    /// Rounded up, as a rate that is a ceiling must be rounded down.
    period: Nanos,
    ns_per_byte: f64,
}

impl Direction {
    fn new(spec: &DirectionSpec) -> Direction {
        Direction {
            latency: spec.latency,
            period: (NANOS_PER_S / f64::from(spec.iops)).ceil() as Nanos,
            ns_per_byte: nanos_per_byte(spec.mb_per_s),
        }
    }

    /// What a request takes out of the budget.
    fn cost(&self, bytes: u64) -> Nanos {
        let transfer = (bytes as f64 * self.ns_per_byte).ceil() as Nanos;
        transfer.max(self.period)
    }
}

/// A modelled flash device.
///
/// A write completes when it lies in the device's buffer, which survives a loss of power; so a
/// flush has nothing to do but wait for the writes before it. The order of requests alone
/// decides when each completes, so that is settled on submission.
#[derive(Debug)]
pub struct Flash {
    read: Direction,
    write: Direction,
    /// When the budget has room for the next request.
    free_at: Nanos,
    /// When the last write so far completes; all others do before.
    written_at: Nanos,
    /// What the way to the device and back takes already.
    path: Nanos,
    done: Agenda<u64>,
}

impl Flash {
    /// A flash at rest.
    pub fn new(spec: &FlashSpec) -> Flash {
        Flash {
            read: Direction::new(&spec.read),
            write: Direction::new(&spec.write),
            free_at: 0,
            written_at: 0,
            path: 0,
            done: Agenda::default(),
        }
    }

    /// The same at the end of a way that adds so much to every request: it completes them so much
    /// earlier, though none before it is submitted, and its ceilings stay.
    pub fn behind(self, path: Nanos) -> Flash {
        Flash { path, ..self }
    }

    /// Takes a request's share out of the budget; when it completes.
    ///
    /// Within a direction completions keep the distance of their costs, so neither ceiling is
    /// exceeded over any span of time. The period is part of the latency; of a large request,
    /// only the transfer beyond it comes on top.
    fn work(&mut self, now: Nanos, direction: Direction, bytes: u64) -> Nanos {
        let start = self.free_at.max(now);
        let cost = direction.cost(bytes);
        self.free_at = start + cost;
        let complete = start + direction.latency + (cost - direction.period);
        complete.saturating_sub(self.path).max(now)
    }
}

impl Device for Flash {
    fn submit(&mut self, now: Nanos, request: Request) {
        let at = match request.op {
            Op::Read => self.work(now, self.read, request.len),
            Op::Write => {
                self.written_at = self.work(now, self.write, request.len);
                self.written_at
            }
            Op::Flush => self.written_at.max(now),
        };
        self.done.push(at, request.tag);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.done.next_at()
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some((at, tag)) = self.done.pop_due(to) {
            done.push(Completion { tag, at });
        }
    }
}

#[cfg(test)]
#[path = "flash_tests.rs"]
mod tests;
