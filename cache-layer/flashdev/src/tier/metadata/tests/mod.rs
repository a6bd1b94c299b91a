//! Tests of what metadata promises: against a model, with a store that can be stopped anywhere.

use super::*;
use superblock::Identity;

mod computer;
mod damage;
mod kill;
mod memory;
mod model;
mod process;
mod refusals;

/// As small as can be: a journal of one page, so that checkpoints are frequent.
const TINY: Layout = Layout {
    block_bytes: 4096,
    metadata_bytes: 5 * 4096,
    cache_bytes: 5 * 4096,
    volume_bytes: 0,
};

const FLASH_BYTES: usize = 10 * 4096;

/// Blocks of the tests' origin.
const BLOCKS: u32 = 9;

/// What a run of the tests writes; `boot` tells one run of the computer from another.
fn own(layout: Layout, sync: bool, boot: u8) -> Superblock {
    Superblock {
        identity: Identity {
            layout,
            origin_id: [7; 16],
            origin_bytes: u64::from(BLOCKS) * layout.block_bytes,
        },
        generation: 0,
        closed: false,
        sync,
        boot_id: [boot; 16],
    }
}
