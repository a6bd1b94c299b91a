//! Superblocks of the members of md arrays (include/uapi/linux/raid/md_p.h; super_90_load and
//! super_1_load of drivers/md/md.c).

use std::io;

use super::{SECTOR, View, le};
use crate::media::{Medium, hex};

const MAGIC: u64 = 0xa92b_4efc;
const SIZE: usize = 4096;

/// A disk of an array.
pub struct Member {
    /// Where its superblock lies, which changes whenever the array is started or written to.
    pub at: u64,
    /// The array's UUID, and the member's own. None before version 1, where members have no own,
    /// and where the superblock does not say where it lies.
    pub name: Option<String>,
}

/// The superblock, if there is one; `head`: the first bytes of the view.
pub fn find(view: &View, medium: &Medium, head: &[u8]) -> io::Result<Option<Member>> {
    for at in [SIZE, 0] {
        let name = name_at(&head[at..at + SIZE], at as u64);
        if name.is_some() {
            return Ok(Some(Member {
                at: at as u64,
                name,
            }));
        }
    }
    let at = (view.length() / SECTOR).saturating_sub(16) / 8 * 8 * SECTOR;
    let name = name_at(&view.read(medium, at, SIZE as u64)?, at);
    if name.is_some() {
        return Ok(Some(Member { at, name }));
    }
    let at = (view.length() & !65535).saturating_sub(65536);
    let old = view.read(medium, at, SIZE as u64)?;
    let is_old = le(&old, 0, 4) == MAGIC && le(&old, 4, 4) == 0;
    Ok(is_old.then_some(Member { at, name: None }))
}

/// The name in a superblock of version 1. It says where it lies: that of a partition which ends
/// with the disk is not the disk's.
fn name_at(block: &[u8], at: u64) -> Option<String> {
    let is_one = le(block, 0, 4) == MAGIC && le(block, 4, 4) == 1;
    let is_here = le(block, 144, 8) == at / SECTOR;
    (is_one && is_here).then(|| hex(&block[16..32]) + &hex(&block[168..184]))
}
