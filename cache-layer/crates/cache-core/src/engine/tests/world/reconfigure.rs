//! The engine is replaced while its users wait, as the daemon does it (`tier::reconfigure`): by another
//! policy, mode or size, and by one that knows that the origin has grown. What fails in between ends
//! the process, and a kill or a power cut may come at any I/O.

use super::disk::Fate;
use super::*;

/// What the tier is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    layout: Layout,
    mode: Mode,
    grows: bool,
}

/// Whether what was begun goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    GoesOn,
    /// It cannot be, and all is as it was.
    Refused,
    /// The process, or the computer, has ended meanwhile, and another one has begun.
    Ended,
}

impl World {
    /// Changes the tier, unless it cannot be.
    pub(super) fn reconfigure(&mut self) -> Result<(), String> {
        let wanted = self.wanted();
        let needs_flush = wanted.layout != self.layout || wanted.mode != self.mode;
        let is_fit = matches!(self.engine.health(), Health::Healthy) && !self.engine.is_stopping();
        if !is_fit || self.layout.check_change(&wanted.layout).is_err() {
            return Ok(());
        }
        self.log.push(format!("reconfigure: {wanted:?}"));
        if needs_flush && self.flush_all(true)? != Course::GoesOn {
            return Ok(());
        }
        // From here on nobody asks for anything; but the volume is there for its users.
        self.answer_all()?;
        if needs_flush && self.flush_all(false)? != Course::GoesOn {
            return Ok(());
        }
        self.end_engine()?;
        if !self.engine.is_closed() {
            return self.crash(false);
        }
        self.exchange(&wanted)
    }

    fn wanted(&mut self) -> Wanted {
        let slots = match self.dice.below(3) {
            0 => 3 + self.dice.below(4),
            _ => u64::from(self.layout.slots()),
        };
        Wanted {
            layout: Layout {
                cache_bytes: slots * BLOCK_BYTES,
                ..self.layout
            },
            mode: match self.dice.below(3) {
                0 => Mode::Writethrough,
                1 => Mode::Writeback,
                _ => self.mode,
            },
            grows: self.dice.once_in(4),
        }
    }

    /// Writes back what is dirty, while users go on or not.
    fn flush_all(&mut self, users: bool) -> Result<Course, String> {
        // Numbers of jobs are used again.
        self.done.clear();
        let job = self.engine.begin_flush(self.now);
        self.begin_actions()?;
        for _ in 0..100_000 {
            if let Some(result) = self.done.remove(&job) {
                return Ok(match result {
                    JobResult::Flushed(_) => Course::GoesOn,
                    _ => Course::Refused,
                });
            }
            if self.dice.once_in(400) {
                let power = self.dice.once_in(2);
                self.crash(power)?;
                return Ok(Course::Ended);
            }
            self.now += self.dice.below(20_000_000);
            match self.dice.below(4) {
                0 if users && self.asked.len() < 12 => self.ask_to_write(),
                1 => self.engine.on_timer(self.now),
                2 if self.dice.once_in(4) => self.write_volume(),
                _ => self.complete_one()?,
            }
            self.begin_actions()?;
        }
        Err("a flush never ends".into())
    }

    /// Every request that was made is answered.
    fn answer_all(&mut self) -> Result<(), String> {
        for _ in 0..100_000 {
            if self.asked.is_empty() {
                return Ok(());
            }
            self.now += 1_000_000;
            match self.begun.is_empty() {
                true => self.pass_time(),
                false => self.complete_one()?,
            }
            self.begin_actions()?;
        }
        Err(format!("these are never answered: {:?}", self.asked.keys()))
    }

    /// The next engine takes the flash up; all of its users' data are there, those of the volume too.
    fn exchange(&mut self, wanted: &Wanted) -> Result<(), String> {
        self.write_volume();
        if wanted.grows {
            self.origin_grows();
        }
        self.next_layout = wanted.layout;
        let taken_up = self.session(self.layout);
        let after = with_layout(taken_up, wanted.layout);
        let fate = Fate {
            faults: self.faults,
            dice: Dice::new(self.dice.below(u64::MAX)),
            left: self.dice.once_in(2).then(|| self.dice.below(60)),
            sync_failed: false,
        };
        let devices = Devices::with(&mut self.flash, &mut self.origin, fate);
        let changed = metadata::open(&devices, &taken_up)
            .and_then(|recovery| metadata::recut(&devices, recovery, &taken_up.identity, &after));
        self.sync_failed |= devices.into_fate().sync_failed;
        let Ok((log, mappings)) = changed else {
            // Whatever it was, the process ends with it.
            self.cut_short += 1;
            let power = self.dice.once_in(2);
            return self.crash(power);
        };
        self.changed += 1;
        (self.layout, self.mode) = (wanted.layout, wanted.mode);
        self.write_volume();
        let (answered, stored) = (true, false);
        self.check(&mappings, Left { answered, stored })?;
        self.buffers.clear();
        self.begin_engine(log, mappings);
        Ok(())
    }
}
