//! ublk's ABI (linux/ublk_cmd.h).

/// The control device; there once the module `ublk_drv` is loaded.
pub(super) const CONTROL: &str = "/dev/ublk-control";

/// `_IOC(direction, 'u', number, record_bytes)` of ioctl(2).
const fn code(direction: u32, record_bytes: u32, number: u32) -> u32 {
    (direction << 30) | (record_bytes << 16) | ((b'u' as u32) << 8) | number
}

const READS: u32 = 2;
const READS_AND_WRITES: u32 = 3;

const fn control_code(direction: u32, number: u32) -> u32 {
    code(direction, size_of::<Command>() as u32, number)
}

pub(super) const GET_DEV_INFO: u32 = control_code(READS, 0x02);
pub(super) const ADD_DEV: u32 = control_code(READS_AND_WRITES, 0x04);
pub(super) const DEL_DEV: u32 = control_code(READS_AND_WRITES, 0x05);
pub(super) const START_DEV: u32 = control_code(READS_AND_WRITES, 0x06);
pub(super) const STOP_DEV: u32 = control_code(READS_AND_WRITES, 0x07);
pub(super) const SET_PARAMS: u32 = control_code(READS_AND_WRITES, 0x08);
pub(super) const START_USER_RECOVERY: u32 = control_code(READS_AND_WRITES, 0x10);
pub(super) const END_USER_RECOVERY: u32 = control_code(READS_AND_WRITES, 0x11);
pub(super) const GET_FEATURES: u32 = control_code(READS, 0x13);
pub(super) const DEL_DEV_ASYNC: u32 = control_code(READS, 0x14);

pub(super) const FETCH_REQ: u32 = code(READS_AND_WRITES, size_of::<IoCommand>() as u32, 0x20);
pub(super) const COMMIT_AND_FETCH_REQ: u32 =
    code(READS_AND_WRITES, size_of::<IoCommand>() as u32, 0x21);

/// A device whose server is gone stays, and its requests wait for another server.
pub(super) const USER_RECOVERY: u64 = 1 << 3;
/// Those that the server had taken and not answered are given to the next one.
pub(super) const USER_RECOVERY_REISSUE: u64 = 1 << 4;
/// Commands are encoded as here.
pub(super) const CMD_IOCTL_ENCODE: u64 = 1 << 6;
/// The bytes of a request are read from and written to the character device.
pub(super) const USER_COPY: u64 = 1 << 7;

/// Of a device that was added and does not serve yet, or no more.
pub(super) const STATE_DEAD: u16 = 0;

/// Part of `Params`.
pub(super) const PARAM_BASIC: u32 = 1 << 0;
pub(super) const PARAM_DISCARD: u32 = 1 << 1;

/// What was answered may be in a volatile cache: the kernel sends flushes. It makes one of a write
/// with FUA, too, as long as the device does not say that it takes such.
pub(super) const ATTR_VOLATILE_CACHE: u32 = 1 << 2;

pub(super) const OP_READ: u32 = 0;
pub(super) const OP_WRITE: u32 = 1;
pub(super) const OP_FLUSH: u32 = 2;
pub(super) const OP_DISCARD: u32 = 3;

/// Requests that a queue may have room for: where its descriptors lie goes by it.
const QUEUE_DEPTH_MAX: usize = 4096;
/// Bytes of the character device from one queue's descriptors to the next one's.
pub(super) const DESCRIPTORS_SPACING: usize = QUEUE_DEPTH_MAX * size_of::<Descriptor>();

/// Where in the character device the bytes of a request lie.
pub(super) fn bytes_place(queue: u16, tag: u16) -> u64 {
    const START: u64 = 0x8000_0000;
    const TAG_SHIFT: u32 = 25;
    const QUEUE_SHIFT: u32 = TAG_SHIFT + 16;
    START + (u64::from(queue) << QUEUE_SHIFT) + (u64::from(tag) << TAG_SHIFT)
}

/// `ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Command {
    pub(super) device: u32,
    pub(super) queue: u16,
    pub(super) len: u16,
    pub(super) addr: u64,
    pub(super) data: u64,
    pub(super) path_len: u16,
    pub(super) pad: u16,
    pub(super) reserved: u32,
}

/// `ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Info {
    pub(super) queues: u16,
    pub(super) depth: u16,
    pub(super) state: u16,
    pub(super) pad0: u16,
    pub(super) request_bytes_max: u32,
    pub(super) device: u32,
    pub(super) server: i32,
    pub(super) pad1: u32,
    pub(super) flags: u64,
    /// The server's own: the kernel keeps it.
    pub(super) mark: u64,
    pub(super) owner_uid: u32,
    pub(super) owner_gid: u32,
    pub(super) reserved: [u64; 2],
}

/// `ublk_params`, as far as it is used here: the kernel goes by `len`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Params {
    pub(super) len: u32,
    pub(super) types: u32,
    pub(super) attrs: u32,
    pub(super) logical_block_shift: u8,
    pub(super) physical_block_shift: u8,
    pub(super) io_opt_shift: u8,
    pub(super) io_min_shift: u8,
    pub(super) max_sectors: u32,
    pub(super) chunk_sectors: u32,
    pub(super) device_sectors: u64,
    pub(super) virt_boundary_mask: u64,
    pub(super) discard_alignment: u32,
    pub(super) discard_granularity: u32,
    pub(super) discard_sectors_max: u32,
    pub(super) write_zeroes_sectors_max: u32,
    pub(super) discard_segments_max: u16,
    pub(super) reserved: [u16; 3],
}

/// `ublksrv_io_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct IoCommand {
    pub(super) queue: u16,
    pub(super) tag: u16,
    pub(super) result: i32,
    pub(super) addr: u64,
}

/// `ublksrv_io_desc`: a request.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) op_flags: u32,
    pub(super) sectors: u32,
    pub(super) first_sector: u64,
    pub(super) addr: u64,
}

impl Descriptor {
    /// What is asked for; the other bits are flags.
    pub(super) fn op(&self) -> u32 {
        self.op_flags & 0xff
    }
}

/// A command's record as it lies in a place of the submission queue.
pub(super) fn as_bytes<T: Copy>(record: &T) -> [u8; 80] {
    const { assert!(size_of::<T>() <= 80) };
    let mut bytes = [0; 80];
    // SAFETY: the records above are plain numbers without padding, and fit.
    unsafe {
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(record).cast::<u8>(),
            bytes.as_mut_ptr(),
            size_of::<T>(),
        );
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// By the kernel's header: a record of another layout would be read as something else.
    #[test]
    fn records_and_codes_are_those_of_the_kernel() {
        assert_eq!(size_of::<Command>(), 32);
        assert_eq!(size_of::<Info>(), 64);
        assert_eq!(offset_of!(Info, mark), 32);
        assert_eq!(size_of::<IoCommand>(), 16);
        assert_eq!(size_of::<Descriptor>(), 24);
        assert_eq!(offset_of!(Params, device_sectors), 24);
        assert_eq!(offset_of!(Params, discard_alignment), 40);
        assert_eq!(offset_of!(Params, discard_segments_max), 56);
        assert_eq!(ADD_DEV, 0xc020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(FETCH_REQ, 0xc010_7520);
        assert_eq!(COMMIT_AND_FETCH_REQ, 0xc010_7521);
        assert_eq!(DESCRIPTORS_SPACING, 98304);
        assert_eq!(bytes_place(0, 0), 1 << 31);
        assert_eq!(bytes_place(1, 3), (1 << 31) + (1 << 41) + (3 << 25));
    }
}
