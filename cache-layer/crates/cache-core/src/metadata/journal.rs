//! The journals: what happened since the table was written, one record per change.
//!
//! There are two, and the generations take turns: while the table of the next generation is being
//! written, its journal is already in use, and continues the one before. A record is generation,
//! sequence, kind, heat, a mask of sub-blocks and two operands, and the checksum: 32 bytes. Its sequence is its place in
//! the journal. The first record says what the journal follows on.
//!
//! Every place holds a record at all times: where nothing was written yet, one of generation 0 that
//! continues as many records as the journal's number. So the end of a generation is the first place that
//! holds an older one's record; whatever else is there, zeros too, may be what is left of a record that
//! was lost.

use std::io;

use super::slots::Change;
use super::store::{FlashStore, is_sealed, seal, take};
use crate::layout::{Layout, RECORD_BYTES, SECTOR_BYTES};
use crate::policy::Slot;

const MAP: u8 = 1;
const UNMAP: u8 = 2;
const DIRTY: u8 = 3;
const CLEAN: u8 = 4;
const COMMIT: u8 = 5;
const BEGIN: u8 = 6;
const CONTINUE: u8 = 7;
const MAP_DIRTY: u8 = 8;
const PRESENT: u8 = 9;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A slot changed.
    Changed(Slot, Change),
    /// The first so many records, what they follow on, and the data they speak of, are durable.
    Committed(u64),
    /// The journal follows on the table of its own generation.
    Begin,
    /// The journal follows on so many records in that of the generation before.
    Continue(u64),
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) generation: u64,
    pub(super) sequence: u64,
    pub(super) event: Event,
}

impl Record {
    /// Where the record lies, bytes from the start of the flash.
    pub(super) fn offset(generation: u64, sequence: u64, layout: &Layout) -> u64 {
        layout.journal_offset(generation) + sequence * RECORD_BYTES as u64
    }

    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let halves = |number: u64| [number as u32, (number >> 32) as u32];
        let (mut heat, mut mask) = (0, 0);
        let (kind, operands) = match self.event {
            Event::Changed(slot, change) => match change {
                Change::Map {
                    block,
                    heat: worth,
                    missing,
                    dirty,
                } => {
                    (heat, mask) = (worth, missing);
                    (if dirty { MAP_DIRTY } else { MAP }, [slot, block])
                }
                Change::Present(present) => {
                    mask = present;
                    (PRESENT, [slot, 0])
                }
                Change::Unmap => (UNMAP, [slot, 0]),
                Change::Dirty => (DIRTY, [slot, 0]),
                Change::Clean => (CLEAN, [slot, 0]),
            },
            Event::Committed(records) => (COMMIT, halves(records)),
            Event::Begin => (BEGIN, [0, 0]),
            Event::Continue(records) => (CONTINUE, halves(records)),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16] = kind;
        bytes[17] = heat;
        bytes[18..20].copy_from_slice(&mask.to_le_bytes());
        bytes[20..24].copy_from_slice(&operands[0].to_le_bytes());
        bytes[24..28].copy_from_slice(&operands[1].to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Record> {
        if !is_sealed(bytes) {
            return None;
        }
        let mut rest = bytes;
        let generation = u64::from_le_bytes(take(&mut rest));
        let sequence = u64::from_le_bytes(take(&mut rest));
        let [kind, heat] = take(&mut rest);
        let mask = u16::from_le_bytes(take(&mut rest));
        let mut number = || u32::from_le_bytes(take(&mut rest));
        let (first, second) = (number(), number());
        let count = u64::from(first) | u64::from(second) << 32;
        let event = match kind {
            MAP | MAP_DIRTY => {
                let map = Change::Map {
                    block: second,
                    heat,
                    missing: mask,
                    dirty: kind == MAP_DIRTY,
                };
                Event::Changed(first, map)
            }
            PRESENT => Event::Changed(first, Change::Present(mask)),
            UNMAP => Event::Changed(first, Change::Unmap),
            DIRTY => Event::Changed(first, Change::Dirty),
            CLEAN => Event::Changed(first, Change::Clean),
            COMMIT => Event::Committed(count),
            BEGIN => Event::Begin,
            CONTINUE => Event::Continue(count),
            _ => return None,
        };
        Some(Record {
            generation,
            sequence,
            event,
        })
    }
}

/// Has both journals say that nothing was written to them yet.
pub(super) fn make_blank(store: &impl FlashStore, layout: &Layout) -> io::Result<()> {
    [0, 1].into_iter().try_for_each(|number| {
        let records = (0..layout.journal_records()).map(|sequence| Record {
            generation: 0,
            sequence,
            event: Event::Continue(number),
        });
        let bytes: Vec<u8> = records.flat_map(|record| record.encode()).collect();
        store.write_at(&bytes, layout.journal_offset(number))
    })
}

/// The newest generation of the records in a page that may be a journal's.
pub(super) fn newest_in(page: &[u8]) -> Option<u64> {
    let in_page = page.len() / RECORD_BYTES;
    let records = (0..).zip(page.chunks_exact(RECORD_BYTES));
    let own = records.filter_map(|(place, bytes)| {
        Record::decode(bytes).filter(|record| record.sequence % in_page as u64 == place)
    });
    own.map(|record| record.generation).max()
}

/// What a place of a journal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing was ever written there.
    Nothing,
    /// No record, or one that belongs elsewhere.
    Damaged,
    /// A generation's record.
    Record(u64, Event),
}

/// One of the journals as it was found.
#[derive(Debug)]
pub(super) struct Journal {
    bytes: Vec<u8>,
    /// Which of the two.
    number: u64,
}

impl Journal {
    /// Reads the journal that this generation uses.
    pub(super) fn read(
        store: &impl FlashStore,
        layout: &Layout,
        generation: u64,
    ) -> io::Result<Journal> {
        let mut bytes = vec![0; layout.journal_records() as usize * RECORD_BYTES];
        store.read_at(&mut bytes, layout.journal_offset(generation))?;
        let number = generation % 2;
        Ok(Journal { bytes, number })
    }

    /// The same of one that may not be readable everywhere: what is not, reads as damaged.
    pub(super) fn read_damaged(
        store: &impl FlashStore,
        layout: &Layout,
        generation: u64,
    ) -> Journal {
        let mut bytes = vec![0; layout.journal_records() as usize * RECORD_BYTES];
        let starts = (layout.journal_offset(generation)..).step_by(SECTOR_BYTES as usize);
        for (offset, sector) in starts.zip(bytes.chunks_mut(SECTOR_BYTES as usize)) {
            if store.read_at(sector, offset).is_err() {
                sector.fill(0xff);
            }
        }
        let number = generation % 2;
        Journal { bytes, number }
    }

    /// How many records it has room for.
    pub(super) fn places(&self) -> usize {
        self.bytes.len() / RECORD_BYTES
    }

    /// What is at a place; behind the last one there is nothing.
    pub(super) fn place(&self, at: usize) -> Place {
        let start = at * RECORD_BYTES;
        let Some(bytes) = self.bytes.get(start..start + RECORD_BYTES) else {
            return Place::Nothing;
        };
        let record = Record::decode(bytes).filter(|record| record.sequence == at as u64);
        match record.map(|record| (record.generation, record.event)) {
            Some((0, Event::Continue(number))) if number == self.number => Place::Nothing,
            Some((of, event)) if of > 0 && of % 2 == self.number => Place::Record(of, event),
            _ => Place::Damaged,
        }
    }

    /// Whether the place shows that the generation has not come so far.
    pub(super) fn is_end(&self, generation: u64, at: usize) -> bool {
        match self.place(at) {
            Place::Record(of, _) => of < generation,
            Place::Nothing => true,
            Place::Damaged => false,
        }
    }

    /// Every valid record of any generation, in order; those before the end and those after it.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        (0..)
            .zip(self.bytes.chunks_exact(RECORD_BYTES))
            .filter_map(|(place, bytes)| {
                Record::decode(bytes).filter(|record| record.sequence == place)
            })
    }

    /// The events of a generation up to its end.
    pub(super) fn run(&self, generation: u64) -> impl Iterator<Item = Event> + '_ {
        (0..)
            .zip(self.records())
            .take_while(move |(place, record)| {
                record.sequence == *place && record.generation == generation
            })
            .map(|(_, record)| record.event)
    }
}
