//! The control device: adds, starts, takes over and removes block devices.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};

use super::kernel::{self, Command, Info, Params};

/// How long the kernel may take to see that a server is gone, after its end.
const SERVER_GONE_LIMIT: Duration = Duration::from_secs(30);
const SERVER_GONE_CHECK: Duration = Duration::from_millis(20);

/// What a kernel has to know, and what that is called where it does not.
const NEEDED: [(u64, &str); 4] = [
    (kernel::CMD_IOCTL_ENCODE, "UBLK_F_CMD_IOCTL_ENCODE"),
    (kernel::USER_COPY, "UBLK_F_USER_COPY"),
    (kernel::USER_RECOVERY, "UBLK_F_USER_RECOVERY"),
    (
        kernel::USER_RECOVERY_REISSUE,
        "UBLK_F_USER_RECOVERY_REISSUE",
    ),
];

/// How every device is served.
const FLAGS: u64 = kernel::CMD_IOCTL_ENCODE
    | kernel::USER_COPY
    | kernel::USER_RECOVERY
    | kernel::USER_RECOVERY_REISSUE;

/// `/dev/ublk-control`, and a queue for commands to it.
pub(super) struct Control {
    file: File,
    ring: IoUring<Entry128, cqueue::Entry>,
}

impl Control {
    /// Opens it, where the kernel has what is needed and allows it.
    ///
    /// # Errors
    /// Why it cannot be used, in words. What is not known is taken for no.
    pub(super) fn open() -> Result<Control, String> {
        Control::open_at(Path::new(kernel::CONTROL))
    }

    fn open_at(path: &Path) -> Result<Control, String> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| unopened(&error))?;
        let ring = IoUring::builder()
            .build(4)
            .map_err(|error| format!("io_uring cannot be used: {error}"))?;
        let mut control = Control { file, ring };
        let features = control
            .features()
            .map_err(|error| format!("the kernel does not say what its ublk knows: {error}"))?;
        match missing(features) {
            None => Ok(control),
            Some(name) => Err(format!("the kernel's ublk has no {name}")),
        }
    }

    fn features(&mut self) -> io::Result<u64> {
        let mut features = 0u64;
        let command = Command {
            len: size_of_val(&features) as u16,
            addr: (&raw mut features) as u64,
            ..for_device(u32::MAX)
        };
        self.run(kernel::GET_FEATURES, &command)?;
        Ok(features)
    }

    /// Adds a device with so many queues at most; what the kernel made of it.
    pub(super) fn add(&mut self, asked: &Info) -> io::Result<Info> {
        let mut info = Info {
            flags: FLAGS,
            // Any that is free.
            device: u32::MAX,
            ..*asked
        };
        let command = with_record(u32::MAX, &mut info);
        self.run(kernel::ADD_DEV, &command)?;
        Ok(info)
    }

    pub(super) fn info(&mut self, device: u32) -> io::Result<Info> {
        let mut info = Info::default();
        let command = with_record(device, &mut info);
        self.run(kernel::GET_DEV_INFO, &command)?;
        Ok(info)
    }

    pub(super) fn set_params(&mut self, device: u32, mut params: Params) -> io::Result<()> {
        let command = with_record(device, &mut params);
        self.run(kernel::SET_PARAMS, &command)
    }

    /// Shows the block device. Its queues have to be served already: the kernel reads from it.
    pub(super) fn start(&mut self, device: u32) -> io::Result<()> {
        self.run(kernel::START_DEV, &by_this_process(device))
    }

    /// Takes a device over whose server is gone; its queues are to be served next.
    pub(super) fn begin_recovery(&mut self, device: u32) -> io::Result<()> {
        let deadline = Instant::now() + SERVER_GONE_LIMIT;
        loop {
            match self.run(kernel::START_USER_RECOVERY, &for_device(device)) {
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
                {
                    thread::sleep(SERVER_GONE_CHECK);
                }
                done => return done,
            }
        }
    }

    /// Lets requests go on, those that waited first.
    pub(super) fn end_recovery(&mut self, device: u32) -> io::Result<()> {
        self.run(kernel::END_USER_RECOVERY, &by_this_process(device))
    }

    /// Ends the block device: what still waits, and what comes from those who have it open, gets
    /// errors.
    pub(super) fn stop(&mut self, device: u32) -> io::Result<()> {
        self.run(kernel::STOP_DEV, &for_device(device))
    }

    /// Removes what is left of one that was stopped, once nobody has it open any more; not waited for,
    /// unless the kernel is older than 6.9.
    pub(super) fn delete(&mut self, device: u32) -> io::Result<()> {
        match self.run(kernel::DEL_DEV_ASYNC, &for_device(device)) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                self.run(kernel::DEL_DEV, &for_device(device))
            }
            done => done,
        }
    }

    /// The devices that carry a mark.
    pub(super) fn marked(&mut self, mark: u64) -> Vec<Info> {
        // One that has just gone tells nothing, nor does somebody else's that they made without root.
        let infos = devices()
            .into_iter()
            .filter_map(|number| self.info(number).ok());
        infos.filter(|info| info.mark == mark).collect()
    }

    fn run(&mut self, code: u32, command: &Command) -> io::Result<()> {
        let file = Fd(self.file.as_raw_fd());
        let entry = opcode::UringCmd80::new(file, code)
            .cmd(kernel::as_bytes(command))
            .build();
        // SAFETY: the queue is empty, as every command is waited for; the memory that the command
        // names is the caller's, who waits.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                // The command may still be taken, or is under way: its memory has to stay.
                Err(error) if may_go_on(&error) => thread::yield_now(),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            if let Some(completion) = self.ring.completion().next() {
                return match completion.result() {
                    result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
        }
    }
}

/// The numbers of all devices, whosever they are.
pub(super) fn devices() -> Vec<u32> {
    let known = fs::read_dir("/sys/class/ublk-char").into_iter().flatten();
    let numbers = known.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("ublkc")?.parse().ok()
    });
    numbers.collect()
}

fn may_go_on(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

fn for_device(device: u32) -> Command {
    Command {
        device,
        queue: u16::MAX,
        ..Command::default()
    }
}

fn by_this_process(device: u32) -> Command {
    Command {
        data: std::process::id().into(),
        ..for_device(device)
    }
}

/// A command whose record the kernel reads, writes or both, while the command runs.
fn with_record<T>(device: u32, record: &mut T) -> Command {
    Command {
        len: size_of::<T>() as u16,
        addr: std::ptr::from_mut(record) as u64,
        ..for_device(device)
    }
}

fn missing(features: u64) -> Option<&'static str> {
    let unknown = NEEDED.iter().find(|(flag, _)| features & flag == 0);
    unknown.map(|&(_, name)| name)
}

fn unopened(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("no {}: the module ublk_drv is not loaded", kernel::CONTROL)
        }
        io::ErrorKind::PermissionDenied => format!("{} is not permitted", kernel::CONTROL),
        _ => format!("{}: {error}", kernel::CONTROL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_lacks_a_feature_is_not_taken() {
        assert_eq!(missing(FLAGS), None);
        assert_eq!(missing(u64::MAX), None);
        assert_eq!(missing(0), Some("UBLK_F_CMD_IOCTL_ENCODE"));
        let without = FLAGS & !kernel::USER_RECOVERY_REISSUE;
        assert_eq!(missing(without), Some("UBLK_F_USER_RECOVERY_REISSUE"));
    }

    /// Where io_uring is forbidden, that is said; elsewhere a file answers no command, and /dev/null all
    /// of them, with nothing.
    #[test]
    fn what_does_not_say_what_it_knows_is_not_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), Path::new("/dev/null")] {
            let Err(why) = Control::open_at(path) else {
                panic!("{} was taken", path.display());
            };
            assert!(why.contains("ublk") || why.contains("io_uring"), "{why}");
        }
    }

    #[test]
    fn what_is_in_the_way_of_the_control_device_is_said() {
        let message = |code| unopened(&io::Error::from_raw_os_error(code));
        assert!(message(libc::ENOENT).contains("ublk_drv is not loaded"));
        assert!(message(libc::EACCES).contains("not permitted"));
        assert!(message(libc::EPERM).contains("not permitted"));
        assert!(message(libc::EIO).contains("/dev/ublk-control: "));
    }
}
