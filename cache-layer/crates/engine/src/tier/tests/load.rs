//! Random requests whose answers are known.
//!
//! The origin is cut into cells. Each write stamps its cells with a version, and each cell is
//! written by one thread only, which therefore knows what a read must find; but neighbouring
//! cells, and so all blocks, belong to different threads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::*;

pub(super) const CELL_BYTES: u64 = 4096;
pub(super) const CELLS: u64 = ORIGIN_BLOCKS * BLOCK_BYTES / CELL_BYTES;
pub(super) const THREADS: u64 = 6;

/// Longest request, cells: three blocks or so.
const REQUEST_CELLS_MAX: u64 = 12;

/// Neighbouring cells of one thread.
const ROW: u64 = 2;

/// What a cell must hold, in a file that outlives the process: the version whose write was begun
/// last, and the one whose write was answered last. In between they may be found torn apart.
pub(super) struct Ledger {
    file: File,
}

impl Ledger {
    pub(super) fn make(dir: &Path) {
        let file = File::create(dir.join("ledger")).unwrap();
        file.set_len(CELLS * 16).unwrap();
    }

    pub(super) fn open(dir: &Path) -> Ledger {
        let mut options = File::options();
        let file = options.read(true).write(true).open(dir.join("ledger"));
        Ledger {
            file: file.unwrap(),
        }
    }

    /// How many cells have been written and the writes answered, all in all.
    pub(super) fn answered(&self) -> u64 {
        (0..CELLS).map(|cell| self.get(cell, 1)).sum()
    }

    fn put(&self, cell: u64, column: u64, version: u64) {
        let place = cell * 16 + column * 8;
        self.file
            .write_all_at(&version.to_le_bytes(), place)
            .unwrap();
    }

    pub(super) fn get(&self, cell: u64, column: u64) -> u64 {
        let mut version = [0; 8];
        let place = cell * 16 + column * 8;
        self.file.read_exact_at(&mut version, place).unwrap();
        u64::from_le_bytes(version)
    }
}

/// The version that a cell's bytes carry, or what is wrong with them.
pub(super) fn version_of(cell: u64, bytes: &[u8]) -> Result<u64, String> {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let stamp = word(0);
    if (0..bytes.len()).step_by(8).any(|at| word(at) != stamp) {
        return Err(format!("cell {cell} is torn"));
    }
    match (stamp, stamp >> 48) {
        (0, _) => Ok(0),
        (_, stamped) if stamped == cell + 1 => Ok(stamp & ((1 << 48) - 1)),
        (_, stamped) => Err(format!("cell {cell} holds cell {}", stamped - 1)),
    }
}

fn stamped(cell: u64, version: u64) -> [u8; CELL_BYTES as usize] {
    let stamp = ((cell + 1) << 48 | version).to_le_bytes();
    std::array::from_fn(|at| stamp[at % 8])
}

fn owner(cell: u64) -> u64 {
    cell / ROW % THREADS
}

/// What every cell holds; taken from the tier, after checking that it may.
pub(super) fn take_stock(rig: &Rig, ledger: &Ledger) -> Result<Vec<u64>, String> {
    let mut versions = Vec::new();
    let all = rig.read(0, (CELLS * CELL_BYTES) as usize);
    for (cell, bytes) in (0..).zip(all.bytes().chunks(CELL_BYTES as usize)) {
        let version = version_of(cell, bytes)?;
        let (begun, answered) = (ledger.get(cell, 0), ledger.get(cell, 1));
        if !(answered..=begun).contains(&version) {
            return Err(format!(
                "cell {cell} holds version {version}, but {answered} was answered and {begun} begun"
            ));
        }
        // From now on this is what it holds: it must not change by itself.
        ledger.put(cell, 0, version);
        ledger.put(cell, 1, version);
        versions.push(version);
    }
    Ok(versions)
}

/// One thread's requests.
pub(super) struct Worker<'a> {
    pub(super) number: u64,
    pub(super) rig: &'a Rig,
    pub(super) ledger: &'a Ledger,
    pub(super) dice: Dice,
    /// What the cells hold, as far as they are this thread's.
    pub(super) versions: Vec<u64>,
}

impl Worker<'_> {
    /// Makes one request, and checks its answer.
    pub(super) fn step(&mut self) -> Result<(), String> {
        match self.dice.below(100) {
            0..2 => self.rig.flush(),
            2..45 => self.write(),
            _ => return self.read(),
        }
        Ok(())
    }

    fn write(&mut self) {
        let row = self.dice.below(CELLS / ROW / THREADS) * THREADS + self.number;
        let first = row * ROW + self.dice.below(ROW);
        let cells = first..(row + 1) * ROW;
        let mut data = Vec::new();
        for cell in cells.clone() {
            let version = &mut self.versions[cell as usize];
            *version += 1;
            self.ledger.put(cell, 0, *version);
            data.extend(stamped(cell, *version));
        }
        self.rig.write(first * CELL_BYTES, &data);
        for cell in cells {
            self.ledger.put(cell, 1, self.versions[cell as usize]);
        }
    }

    fn read(&mut self) -> Result<(), String> {
        let first = self.dice.below(CELLS);
        let count = (1 + self.dice.below(REQUEST_CELLS_MAX)).min(CELLS - first);
        let bytes = self
            .rig
            .read(first * CELL_BYTES, (count * CELL_BYTES) as usize);
        for (cell, bytes) in (first..).zip(bytes.bytes().chunks(CELL_BYTES as usize)) {
            if owner(cell) != self.number {
                continue;
            }
            let (version, wanted) = (version_of(cell, bytes)?, self.versions[cell as usize]);
            if version != wanted {
                return Err(format!("cell {cell} holds version {version}, not {wanted}"));
            }
        }
        Ok(())
    }
}
