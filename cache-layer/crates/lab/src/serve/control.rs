//! The control socket of a served device: lets members of its array fail and return, has requests
//! fail, resets it, and cuts its power.
//!
//! One JSON object a line; each is answered with the device's status, or with an error:
//!
//! ```text
//! {"status": {}}   {"fail": {"member": 2}}   {"replace": {"member": 2}}   {"devices": {}}
//! {"power_cut": {}}   {"reset": {"seed": 7}}   {"hold": {}}
//! {"fail_next": {"flushes": 2, "reads": 1, "writes": 0, "seed": 7}}
//! ```
//!
//! `devices` is answered with what went through each of the served files; `power_cut` with what was
//! lost. After that every request fails, until the backing file is served anew. `reset` is answered with
//! what was lost, some sectors of what a power cut takes; the device serves on. So it is lost by each
//! flush that fails; `fail_next` is answered with what was to fail before and has not. After `hold` nothing
//! is stored but by a flush, whatever the model says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Running;
use super::power::{Failing, Power};
use crate::in_flight::Counters;
use hotset_engine::control_socket::ControlSocket;
use hotset_engine::real_time::meter::DeviceCounters;
use storage_model::device::Device;
use storage_model::device::node::DeviceStatus;

/// Longest request, bytes.
const LINE_BYTES_MAX: u64 = 4096;

/// A client that stops half-way is hung up on after this long.
const CLIENT_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    Status {},
    Devices {},
    PowerCut {},
    Reset { seed: u64 },
    FailNext(Failing),
    Hold {},
    Fail { member: usize },
    Replace { member: usize },
}

#[derive(Serialize)]
struct Status {
    #[serde(flatten)]
    device: DeviceStatus,
    /// Bytes of answered writes that a loss of power would take now.
    volatile_bytes: u64,
    counters: Counters,
}

#[derive(Serialize)]
struct Devices {
    devices: Vec<DeviceCounters>,
}

/// What a loss of power has taken.
#[derive(Serialize)]
struct Lost {
    /// Bytes of answered writes.
    lost_bytes: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Status(Status),
    Devices(Devices),
    Lost(Lost),
    Failing(Failing),
}

#[derive(Serialize)]
struct Refused {
    error: String,
}

/// Listens at the path; one client is served at a time.
pub(super) fn listen(
    path: &Path,
    running: Arc<Running>,
    power: Arc<Power>,
) -> anyhow::Result<ControlSocket> {
    ControlSocket::listen(path, move |stream| {
        // Who hangs up early has no further question.
        let _ = serve_client(&running, &power, &stream);
    })
}

fn serve_client(running: &Running, power: &Power, stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_LIMIT))?;
    stream.set_write_timeout(Some(CLIENT_LIMIT))?;
    let mut requests = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let taken = requests
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if taken == 0 {
            return Ok(());
        }
        let reply = match reply(running, power, &line) {
            Ok(answer) => serde_json::to_string(&answer),
            Err(error) => serde_json::to_string(&Refused { error }),
        };
        let mut out = stream;
        out.write_all(format!("{}\n", reply?).as_bytes())?;
    }
}

fn reply(running: &Running, power: &Power, line: &[u8]) -> Result<Answer, String> {
    let request: Request = serde_json::from_slice(line).map_err(|error| {
        format!("not a request: {error}; send one JSON object a line, such as {{\"status\": {{}}}}")
    })?;
    if let Request::Devices {} = request {
        let devices = running.devices();
        return Ok(Answer::Devices(Devices { devices }));
    }
    if let Request::Hold {} = request {
        power.hold();
    }
    let lost = match request {
        Request::PowerCut {} => Some(power.cut(|| running.volatile_bytes())),
        Request::Reset { seed } => Some(power.reset(|| running.volatile_bytes(), seed)),
        _ => None,
    };
    if let Some(lost) = lost {
        let lost_bytes = lost.map_err(|error| format!("nothing is lost: {error}"))?;
        return Ok(Answer::Lost(Lost { lost_bytes }));
    }
    if let Request::FailNext(failing) = request {
        return Ok(Answer::Failing(power.fail_next(failing)));
    }
    let (device, volatile_bytes) = running
        .with_model(|model, now| {
            match request {
                Request::Fail { member } => model.fail(now, member),
                Request::Replace { member } => model.replace(now, member),
                _ => Ok(()),
            }
            .map(|()| (model.status(), model.volatile_bytes(now)))
        })
        .map_err(|error| error.to_string())?;
    Ok(Answer::Status(Status {
        device,
        volatile_bytes,
        counters: running.counters(),
    }))
}
