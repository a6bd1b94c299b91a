//! The journal: what happened since the table was written, one record per change.
//!
//! A record is generation, sequence, kind and two operands, and the checksum: 32 bytes. Its
//! sequence is its place in the journal, so that the first place without a valid record of the
//! generation is the end.

use std::io;

use super::slots::Change;
use super::store::{Store, is_sealed, seal, take};
use crate::policy::Slot;
use crate::tier::layout::{Layout, RECORD_BYTES};

const MAP: u32 = 1;
const UNMAP: u32 = 2;
const DIRTY: u32 = 3;
const CLEAN: u32 = 4;
const COMMIT: u32 = 5;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A slot changed.
    Changed(Slot, Change),
    /// The first so many records, and the data they speak of, are durable.
    Committed(u64),
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) generation: u64,
    pub(super) sequence: u64,
    pub(super) event: Event,
}

impl Record {
    /// Writes the record to its place, which exists.
    pub(super) fn write(&self, store: &impl Store, layout: &Layout) -> io::Result<()> {
        let offset = layout.journal_offset() + self.sequence * RECORD_BYTES as u64;
        store.write_at(&self.encode(), offset)
    }

    fn encode(&self) -> [u8; RECORD_BYTES] {
        let (kind, operands) = match self.event {
            Event::Changed(slot, Change::Map(block)) => (MAP, [slot, block]),
            Event::Changed(slot, Change::Unmap) => (UNMAP, [slot, 0]),
            Event::Changed(slot, Change::Dirty) => (DIRTY, [slot, 0]),
            Event::Changed(slot, Change::Clean) => (CLEAN, [slot, 0]),
            Event::Committed(records) => (COMMIT, [records as u32, (records >> 32) as u32]),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&kind.to_le_bytes());
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
        let mut number = || u32::from_le_bytes(take(&mut rest));
        let (kind, first, second) = (number(), number(), number());
        let event = match kind {
            MAP => Event::Changed(first, Change::Map(second)),
            UNMAP => Event::Changed(first, Change::Unmap),
            DIRTY => Event::Changed(first, Change::Dirty),
            CLEAN => Event::Changed(first, Change::Clean),
            COMMIT => Event::Committed(u64::from(first) | u64::from(second) << 32),
            _ => return None,
        };
        Some(Record {
            generation,
            sequence,
            event,
        })
    }
}

/// The journal as it was found.
#[derive(Debug)]
pub(super) struct Journal {
    bytes: Vec<u8>,
}

impl Journal {
    pub(super) fn read(store: &impl Store, layout: &Layout) -> io::Result<Journal> {
        let mut bytes = vec![0; layout.journal_records() as usize * RECORD_BYTES];
        store.read_at(&mut bytes, layout.journal_offset())?;
        Ok(Journal { bytes })
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
