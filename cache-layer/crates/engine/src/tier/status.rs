//! What a tier tells of itself.

use cache_core::engine::{Counts, Health};
use cache_core::policy::Block;
use roaring::RoaringBitmap;
use std::sync::atomic::Ordering;
use virtual_time::NANOS_PER_S;

use super::Tier;
use super::driver::{in_words, name_of_device};
use super::protocol::{Heat, Regions, Resident, Run, Settings, State, Status, WriteBackFailing};
use super::run::name_of;
use crate::real_time::meter::DeviceCounters;

/// Most extents in a reply, unless their size was asked for.
const EXTENTS_MAX: u32 = 4096;

/// Blocks whose heat is looked up at a time, with the lock held.
const HEAT_BLOCKS: usize = 1024;

impl Tier {
    /// Counters and occupancy, without the devices.
    pub(super) fn status(&self) -> Status {
        let shared = &self.lock();
        let engine = &shared.engine;
        let state = match engine.health() {
            _ if engine.is_stopping() => State::Stopping,
            Health::Degrading(_) | Health::PassThrough(_) => State::PassThrough,
            Health::ReadOnly(_) => State::ReadOnly,
            Health::Healthy if engine.flush_left() > 0 => State::Flushing,
            Health::Healthy => State::Serving,
        };
        Status {
            counters: engine.counters(),
            dirty: engine.dirty().len(),
            used: engine.resident().len(),
            total: engine.policy().capacity(),
            block_bytes: self.block_bytes,
            policy: name_of(shared.policy),
            mode: engine.config().mode,
            state,
            front: self.front.get().cloned(),
            begun: shared.begun.as_secs_f64(),
            reason: match engine.health() {
                Health::Healthy => None,
                Health::Degrading(why) | Health::PassThrough(why) | Health::ReadOnly(why) => {
                    Some(why.clone())
                }
            },
            write_back_failure: engine.write_back_failure().map(|failure| WriteBackFailing {
                device: name_of_device(failure.device),
                error: in_words(failure.errno),
                seconds: self.now().saturating_sub(failure.since) as f64 / NANOS_PER_S,
                blocks: failure.blocks,
            }),
            refill: self.refill.status(),
            devices: None,
        }
    }

    /// What went through the devices.
    pub(super) fn devices(&self) -> Vec<DeviceCounters> {
        vec![
            self.origin.meter().counters("origin"),
            self.cache_meter.counters("cache"),
            self.volume_meter.counters("volume"),
        ]
    }

    pub(super) fn resident(&self) -> Resident {
        let (resident, dirty) = {
            let engine = &self.lock().engine;
            (engine.resident().clone(), engine.dirty().clone())
        };
        Resident {
            runs: runs(&resident),
            dirty: runs(&dirty),
        }
    }

    pub(super) fn heat(&self, extent_blocks: Option<u32>) -> Heat {
        let extent_blocks =
            extent_blocks.unwrap_or(self.origin_blocks().div_ceil(EXTENTS_MAX).max(1));
        let resident = self.lock().engine.resident().clone();
        let blocks: Vec<Block> = resident.iter().collect();
        let mut extents: Vec<(u32, u32, u64)> = Vec::new();
        // Requests go on in between; a block that has gone by then counts as cold.
        for blocks in blocks.chunks(HEAT_BLOCKS) {
            let shared = self.lock();
            let policy = shared.engine.policy();
            for &block in blocks {
                let first = block / extent_blocks * extent_blocks;
                let slot = policy.resident(block);
                let level = u64::from(slot.map_or(0, |slot| policy.heat(slot)));
                match extents.last_mut() {
                    Some((start, count, sum)) if *start == first => {
                        *count += 1;
                        *sum += level;
                    }
                    _ => extents.push((first, 1, level)),
                }
            }
        }
        let mean = |(first, count, sum): (u32, u32, u64)| {
            let level = (sum + u64::from(count) / 2) / u64::from(count);
            (first, count, level as u8)
        };
        Heat {
            extent_blocks,
            extents: extents.into_iter().map(mean).collect(),
        }
    }

    /// Counters by region.
    pub(super) fn regions(&self) -> Regions {
        let shared = &self.lock();
        let engine = &shared.engine;
        let was_accessed = |counts: &Counts| counts.iter().any(|&count| count > 0);
        let regions = engine.regions().counts().iter().zip(0..);
        let rows = regions.filter(|(counts, _)| was_accessed(counts));
        Regions {
            origin_bytes: engine.config().origin_bytes,
            region_bytes: self.block_bytes * u64::from(engine.regions().region_blocks()),
            begun: shared.begun.as_secs_f64(),
            regions: rows
                .map(
                    |(&[read_hits, read_misses, write_hits, write_misses], number)| {
                        (number, read_hits, read_misses, write_hits, write_misses)
                    },
                )
                .collect(),
        }
    }

    pub(super) fn set(
        &self,
        migration_threshold: Option<u64>,
        dirty_target: Option<u8>,
    ) -> Settings {
        let engine = &mut self.lock().engine;
        if let Some(sectors) = migration_threshold {
            engine.set_migration_threshold(sectors);
        }
        if let Some(percent) = dirty_target {
            engine.set_dirty_target(percent);
        }
        Settings {
            migration_threshold: engine.migration_threshold(),
            dirty_target: engine.config().dirty_target,
        }
    }

    /// The blocks of these runs, or what is wrong with one of them.
    pub(super) fn blocks_of(&self, runs: &[Run]) -> Result<RoaringBitmap, String> {
        let origin_blocks = self.origin_blocks();
        let mut blocks = RoaringBitmap::new();
        for &(first, count) in runs {
            let end = first.checked_add(count);
            let Some(end) = end.filter(|&end| end <= origin_blocks) else {
                return Err(format!(
                    "run [{first}, {count}] is beyond the origin's {origin_blocks} blocks: give runs of blocks of {} bytes",
                    self.block_bytes
                ));
            };
            blocks.insert_range(first..end);
        }
        Ok(blocks)
    }

    fn origin_blocks(&self) -> u32 {
        self.lock().engine.config().origin_blocks()
    }

    /// Size of the served device, bytes.
    pub(super) fn served_bytes(&self) -> u64 {
        self.served_bytes.load(Ordering::Relaxed)
    }
}

/// The blocks of a set as runs of (first, count), in order.
fn runs(blocks: &RoaringBitmap) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == block => *count += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_neighbours() {
        let blocks = RoaringBitmap::from([0, 62, 63, 64, 65, 199]);
        assert_eq!(runs(&blocks), [(0, 1), (62, 4), (199, 1)]);
    }
}
