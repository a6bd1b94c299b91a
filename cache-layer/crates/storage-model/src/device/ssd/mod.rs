//! A flash device: one budget of work for reads and writes, latencies that overlap, and, where a
//! model knows them, the dies behind.
//!
//! Flash has no arm: what a request costs does not depend on the one before it. Many dies work
//! side by side behind one controller, so a request delays its own answer by its latency, but
//! the next request only by its period: 1 / IOPS, or the time of its bytes at the rate of its
//! direction if that is longer. Requests take their periods one after the other, whatever their
//! direction, so each write takes its share from the reads. With n reads outstanding that makes
//! min(n / latency, IOPS) per second, which is Little's law and the curve of a data sheet.
//!
//! That is all a data sheet tells, and an IOPS figure of the steady state has garbage collection
//! in its mean. With [`nand`], requests also meet on dies and channels, the write buffer can fill
//! up, and garbage collection costs what the free space makes it cost.

pub(crate) mod nand;

use std::collections::VecDeque;

use super::{Agenda, Completion, Device, Op, Request};
use nand::{Nand, NandSpec};
use virtual_time::{NANOS_PER_S, Nanos, nanos_per_byte};

/// What a flash device is built from; the model checks the values.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdSpec {
    /// Reading.
    pub read: DirectionSpec,
    /// Writing.
    pub write: DirectionSpec,
    /// Without it, what is in the buffer is lost with the power, and a flush waits for the cells.
    pub power_loss_protection: bool,
    /// From the buffer to the cells, where there is no [`nand`] to ask.
    pub program: Nanos,
    /// The dies, if they are modelled.
    pub nand: Option<NandSpec>,
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

/// What has been written to a flash device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Wear {
    /// By the host, bytes.
    pub host_bytes: u64,
    /// To the cells, garbage collection included, bytes.
    pub cell_bytes: u64,
    /// Given back by the host, bytes.
    pub discarded_bytes: u64,
}

/// A modelled flash device.
///
/// A write completes when it lies in the device's buffer. The order of requests alone decides
/// when each completes, so that is settled on submission.
#[derive(Debug)]
pub struct Ssd {
    read: Direction,
    write: Direction,
    /// When the budget has room for the next request.
    free_at: Nanos,
    /// When the last write so far completes; all others do before.
    written_at: Nanos,
    done: Agenda<u64>,
    nand: Option<Nand>,
    program: Nanos,
    /// Without protection: writes in the buffer and when each is in the cells, in that order.
    volatile: Option<VecDeque<(Nanos, u64)>>,
    wear: Wear,
}

impl Ssd {
    /// A device at rest.
    pub fn new(spec: &SsdSpec) -> Ssd {
        Ssd {
            read: Direction::new(&spec.read),
            write: Direction::new(&spec.write),
            free_at: 0,
            written_at: 0,
            done: Agenda::default(),
            nand: spec.nand.as_ref().map(Nand::new),
            program: spec.program,
            volatile: (!spec.power_loss_protection).then(VecDeque::new),
            wear: Wear::default(),
        }
    }

    /// What has been written so far.
    pub fn wear(&self) -> Wear {
        self.wear
    }

    /// Takes a request's share out of the budget; when it completes if nothing else holds it up.
    ///
    /// Within a direction completions keep the distance of their costs, so neither ceiling is
    /// exceeded over any span of time. The period is part of the latency; of a large request,
    /// only the transfer beyond it comes on top.
    fn work(&mut self, now: Nanos, direction: Direction, bytes: u64) -> Nanos {
        let start = self.free_at.max(now);
        let cost = direction.cost(bytes);
        self.free_at = start + cost;
        start + direction.latency + (cost - direction.period)
    }

    fn read(&mut self, now: Nanos, request: &Request) -> Nanos {
        let undisturbed = self.work(now, self.read, request.len);
        match &mut self.nand {
            None => undisturbed,
            Some(nand) => undisturbed + nand.read(now, request.offset, request.len),
        }
    }

    fn write(&mut self, now: Nanos, request: &Request) -> Nanos {
        let mut accepted = self.work(now, self.write, request.len);
        let programmed = match &mut self.nand {
            None => {
                self.wear.cell_bytes += request.len;
                accepted + self.program
            }
            Some(nand) => {
                let written = nand.write(now, request.offset, request.len);
                self.wear.cell_bytes += written.cell_bytes;
                accepted += written.waited;
                written.programmed_at.max(accepted)
            }
        };
        self.wear.host_bytes += request.len;
        if let Some(volatile) = &mut self.volatile {
            // The buffer is emptied in order, or as if: what counts is when nothing is left.
            let at = volatile
                .back()
                .map_or(programmed, |(at, _)| programmed.max(*at));
            volatile.push_back((at, request.len));
        }
        accepted
    }

    /// When everything accepted before is safe.
    fn flushed_at(&mut self, now: Nanos) -> Nanos {
        let written_at = self.written_at.max(now);
        match &mut self.volatile {
            None => written_at,
            Some(volatile) => {
                while volatile.front().is_some_and(|(at, _)| *at <= now) {
                    volatile.pop_front();
                }
                volatile
                    .back()
                    .map_or(written_at, |(at, _)| written_at.max(*at))
            }
        }
    }
}

impl Device for Ssd {
    fn submit(&mut self, now: Nanos, request: Request) {
        let at = match request.op {
            Op::Read => self.read(now, &request),
            Op::Write => {
                let accepted = self.write(now, &request);
                self.written_at = self.written_at.max(accepted);
                accepted
            }
            Op::Flush => self.flushed_at(now),
            Op::Discard => {
                self.wear.discarded_bytes += request.len;
                if let Some(nand) = &mut self.nand {
                    nand.discard(request.offset, request.len);
                }
                now
            }
        };
        let at = match request.op {
            Op::Read | Op::Write => at.saturating_sub(request.head_start).max(now),
            Op::Flush | Op::Discard => at,
        };
        self.done.push(at, request.tag);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.done.next_at()
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some((at, tag)) = self.done.pop_due(to) {
            done.push(Completion::done(tag, at));
        }
    }

    fn volatile_bytes(&self, now: Nanos) -> u64 {
        let Some(volatile) = &self.volatile else {
            return 0;
        };
        let still = volatile.iter().rev().take_while(|(at, _)| *at > now);
        still.map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
impl SsdSpec {
    /// A protected device of which only the data sheet is known.
    pub fn of_data_sheet(read: DirectionSpec, write: DirectionSpec) -> SsdSpec {
        SsdSpec {
            read,
            write,
            power_loss_protection: true,
            program: 0,
            nand: None,
        }
    }
}

#[cfg(test)]
mod tests;
