//! The control socket: lets others watch and steer a tier.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::Tier;
use super::protocol::{Answer, Flushed, Left, Progress, Refused, Request, Status};
use crate::control_socket::ControlSocket;
use cache_core::engine::JobProgress;
use roaring::RoaringBitmap;

/// Longest request, bytes: a warm-up of millions of runs.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// How long a client may take to read a reply.
const PATIENCE: Duration = Duration::from_secs(30);

/// Listens at the path; each client has a thread.
pub(super) fn listen(path: &Path, tier: Arc<Tier>) -> anyhow::Result<ControlSocket> {
    ControlSocket::listen(path, move |stream| {
        let tier = tier.clone();
        // Without a thread to spare the client is hung up on.
        let _ = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve_client(&tier, &stream));
    })
}

/// Answers a client until it hangs up.
fn serve_client(tier: &Arc<Tier>, stream: &UnixStream) -> io::Result<()> {
    // One that does not read its replies is hung up on.
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut requests = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = requests.by_ref().take(LINE_BYTES_MAX);
        if { read }.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let mut client = Client { stream };
        match serde_json::from_slice(&line) {
            Ok(request) => reply(tier, request, &mut client)?,
            Err(error) => client.refuse(format!(
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
    fn say(&mut self, reply: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Answer::of(reply))?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    fn refuse(&mut self, error: String) -> io::Result<()> {
        self.say(&Refused { error })
    }
}

fn reply(tier: &Arc<Tier>, request: Request, client: &mut Client) -> io::Result<()> {
    match request {
        Request::Counters { devices } => client.say(&Status {
            devices: devices.then(|| tier.devices()),
            ..tier.status()
        }),
        Request::Resident {} => client.say(&tier.resident()),
        Request::Heat {
            extent_blocks: Some(0),
        } => client.refuse("extent_blocks is 0: give at least 1".to_owned()),
        Request::Heat { extent_blocks } => client.say(&tier.heat(extent_blocks)),
        Request::Regions {} => client.say(&tier.regions()),
        Request::Set {
            dirty_target: Some(percent @ 101..),
            ..
        } => client.refuse(format!("dirty_target is {percent}: give 0 to 100 percent")),
        Request::Set {
            migration_threshold,
            dirty_target,
        } => client.say(&tier.set(migration_threshold, dirty_target)),
        Request::Reconfigure(wanted) => match tier.reconfigure(&wanted) {
            Ok(now) => client.say(&now),
            Err(error) => client.refuse(format!("{error:#}")),
        },
        Request::Shares {} => client.say(&tier.division()),
        Request::Shared {} => client.say(&tier.shared()),
        Request::Share(wanted) => match tier.share(wanted) {
            Ok(division) => client.say(&division),
            Err(error) => client.refuse(format!("{error:#}")),
        },
        Request::Flush {} => flush(tier, client),
        Request::Warm { runs, bytes_per_s } => match tier.blocks_of(&runs) {
            Ok(wanted) => warm(tier, wanted, bytes_per_s, client),
            Err(error) => client.refuse(error),
        },
        Request::ReadOrigin { bytes } => match tier.origin_rate(bytes) {
            Ok(rate) => client.say(&rate),
            Err(error) => client.refuse(format!("the origin could not be read: {error}")),
        },
    }
}

fn flush(tier: &Arc<Tier>, client: &mut Client) -> io::Result<()> {
    // A client that has hung up need not be waited with, but what it wanted is done.
    let flushed = tier.clean_all(|how_far| {
        let left = how_far.total - how_far.done;
        client.say(&Left { left }).is_ok()
    });
    match flushed {
        Ok(flushed) => client.say(&Flushed { flushed }),
        Err(error) => client.refuse(error),
    }
}

fn warm(
    tier: &Arc<Tier>,
    wanted: RoaringBitmap,
    bytes_per_s: Option<NonZeroU64>,
    client: &mut Client,
) -> io::Result<()> {
    let block_bytes = tier.block_bytes;
    let warmed = tier.warm(wanted, bytes_per_s, |JobProgress { done, total }| {
        let (bytes, total) = (done * block_bytes, total * block_bytes);
        // A client that has hung up wants no more.
        client.say(&Progress { bytes, total }).is_ok()
    });
    client.say(&warmed)
}
