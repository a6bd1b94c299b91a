//! The control socket: lets others watch and steer a tier.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use serde::Serialize;

use super::Tier;
use super::block_set::BlockSet;
use super::core::regions::Counts;
use super::protocol::{
    Complaint, Flushed, Heat, Left, Progress, Regions, Request, Resident, Run, Settings, State,
    Status,
};
use crate::Refusal;

/// Longest request, bytes: a warm-up of millions of runs.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Most extents in an answer, unless their size was asked for.
const EXTENTS_MAX: u32 = 4096;

/// The socket; gone from the file system when dropped.
pub(super) struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens at the path, for whoever may write to it: the owner.
    pub(super) fn listen(path: &Path, tier: Arc<Tier>) -> anyhow::Result<Control> {
        let shown = path.display();
        make_way(path)?;
        let listener = UnixListener::bind(path).map_err(|error| {
            Refusal(format!(
                "control socket {shown}: {error}; give a path of at most 107 bytes in a directory that can be written to"
            ))
        })?;
        let control = Control {
            path: path.to_owned(),
        };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot set the permissions of {shown}"))?;
        let accept = move || {
            for stream in listener.incoming().flatten() {
                let tier = tier.clone();
                // Without a thread to spare the client is hung up on.
                let _ = thread::Builder::new()
                    .name("control".to_owned())
                    .spawn(move || converse(&tier, &stream));
            }
        };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(accept)?;
        Ok(control)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Clears away a socket that was left behind by a process that is gone.
fn make_way(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(Refusal(format!(
            "control socket {shown}: there is another file of that name; give another path"
        ))
        .into());
    }
    if UnixStream::connect(path).is_ok() {
        return Err(Refusal(format!(
            "control socket {shown} is in use by another flashdev: stop that one, or give another path"
        ))
        .into());
    }
    fs::remove_file(path).with_context(|| format!("cannot remove the stale socket {shown}"))
}

/// Answers a client until it hangs up.
fn converse(tier: &Arc<Tier>, stream: &UnixStream) -> io::Result<()> {
    let mut requests = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = requests.by_ref().take(LINE_BYTES_MAX);
        if { read }.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let mut client = Client { stream };
        match serde_json::from_slice(&line) {
            Ok(request) => answer(tier, request, &mut client)?,
            Err(error) => client.complain(format!(
                "not a request: {error}; send one JSON object per line, such as {{\"counters\": {{}}}}"
            ))?,
        }
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
    }
}

struct Client<'a> {
    stream: &'a UnixStream,
}

impl Client<'_> {
    fn say(&mut self, answer: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    fn complain(&mut self, error: String) -> io::Result<()> {
        self.say(&Complaint { error })
    }
}

fn answer(tier: &Arc<Tier>, request: Request, client: &mut Client) -> io::Result<()> {
    match request {
        Request::Counters {} => client.say(&tier.status()),
        Request::Resident {} => client.say(&tier.resident()),
        Request::Heat {
            extent_blocks: Some(0),
        } => client.complain("extent_blocks is 0: give at least 1".to_owned()),
        Request::Heat { extent_blocks } => client.say(&tier.heat(extent_blocks)),
        Request::Regions {} => client.say(&tier.regions()),
        Request::Set {
            dirty_target: Some(percent @ 101..),
            ..
        } => client.complain(format!("dirty_target is {percent}: give 0 to 100 percent")),
        Request::Set {
            migration_threshold,
            dirty_target,
        } => client.say(&tier.set(migration_threshold, dirty_target)),
        Request::Flush {} => flush(tier, client),
        Request::Warm { runs } => match tier.blocks_of(&runs) {
            Ok(wanted) => warm(tier, wanted, client),
            Err(error) => client.complain(error),
        },
        Request::ReadOrigin { bytes } => match tier.origin_rate(bytes) {
            Ok(rate) => client.say(&rate),
            Err(error) => client.complain(format!("the origin could not be read: {error}")),
        },
    }
}

fn flush(tier: &Tier, client: &mut Client) -> io::Result<()> {
    // A client that has hung up need not be waited with, but what it wanted is done.
    let flushed = tier.clean_all(|left| client.say(&Left { left }).is_ok());
    match flushed {
        Ok(flushed) => client.say(&Flushed { flushed }),
        Err(error) => client.complain(error),
    }
}

fn warm(tier: &Arc<Tier>, wanted: BlockSet, client: &mut Client) -> io::Result<()> {
    let warmed = tier.warm(wanted, |bytes, total| {
        // A client that has hung up wants no more.
        client.say(&Progress { bytes, total }).is_ok()
    });
    client.say(&warmed)
}

impl Tier {
    /// Counters and occupancy.
    pub(super) fn status(&self) -> Status {
        let core = self.lock();
        let state = match (core.pool.stopping, core.cleaner.left()) {
            (true, _) => State::Stopping,
            (false, 0) => State::Serving,
            (false, _) => State::Flushing,
        };
        Status {
            counters: core.counters,
            dirty: core.dirty.len(),
            used: core.resident.len(),
            total: core.policy.capacity(),
            block_bytes: self.layout.block_bytes,
            policy: self.policy_name.clone(),
            mode: core.mode(),
            state,
        }
    }

    fn resident(&self) -> Resident {
        let (resident, dirty) = {
            let core = self.lock();
            (core.resident.clone(), core.dirty.clone())
        };
        Resident {
            runs: resident.runs(),
            dirty: dirty.runs(),
        }
    }

    fn heat(&self, extent_blocks: Option<u32>) -> Heat {
        let blocks = self.origin_blocks();
        let extent_blocks = extent_blocks.unwrap_or(blocks.div_ceil(EXTENTS_MAX));
        let mut extents: Vec<(u32, u32, u64)> = Vec::new();
        let core = self.lock();
        for block in core.resident.iter() {
            let first = block / extent_blocks * extent_blocks;
            let slot = core.policy.resident(block);
            let level = u64::from(slot.map_or(0, |slot| core.policy.heat(slot)));
            match extents.last_mut() {
                Some((start, count, sum)) if *start == first => {
                    *count += 1;
                    *sum += level;
                }
                _ => extents.push((first, 1, level)),
            }
        }
        drop(core);
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
        let core = self.lock();
        let asked = |counts: &Counts| counts.iter().any(|&count| count > 0);
        let regions = core.regions.counts().iter().zip(0..);
        let rows = regions.filter(|(counts, _)| asked(counts));
        Regions {
            origin_bytes: self.origin_bytes,
            region_bytes: self.layout.block_bytes * u64::from(core.regions.region_blocks()),
            begun: self.begun.as_secs_f64(),
            regions: rows
                .map(
                    |(&[read_hits, read_misses, write_hits, write_misses], number)| {
                        (number, read_hits, read_misses, write_hits, write_misses)
                    },
                )
                .collect(),
        }
    }

    fn set(&self, migration_threshold: Option<u64>, dirty_target: Option<u8>) -> Settings {
        let mut core = self.lock();
        if let Some(sectors) = migration_threshold {
            core.pool.threshold_sectors = sectors;
        }
        if let Some(percent) = dirty_target {
            core.cleaner.target_percent = percent;
        }
        self.work.notify_one();
        Settings {
            migration_threshold: core.pool.threshold_sectors,
            dirty_target: core.cleaner.target_percent,
        }
    }

    /// The blocks of these runs, or what is wrong with one of them.
    fn blocks_of(&self, runs: &[Run]) -> Result<BlockSet, String> {
        let origin_blocks = self.origin_blocks();
        let mut blocks = BlockSet::new(origin_blocks);
        for &(first, count) in runs {
            let end = first.checked_add(count);
            let Some(end) = end.filter(|&end| end <= origin_blocks) else {
                return Err(format!(
                    "run [{first}, {count}] is beyond the origin's {origin_blocks} blocks: give runs of blocks of {} bytes",
                    self.layout.block_bytes
                ));
            };
            (first..end).for_each(|block| {
                blocks.insert(block);
            });
        }
        Ok(blocks)
    }

    fn origin_blocks(&self) -> u32 {
        self.origin_bytes.div_ceil(self.layout.block_bytes) as u32
    }
}
