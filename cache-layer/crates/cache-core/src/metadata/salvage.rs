//! What can still be proven of a cache whose metadata is damaged, by reading alone.
//!
//! A slot is *dirty* here only if nothing that is missing could have changed it; one that anything
//! missing may have changed is *unknown*, and might hold any block. What is missing:
//!
//! | missing | unknown is then |
//! |---|---|
//! | a page of the table | its slots, unless the table and journal before it, or the one that was being written, tell |
//! | a record of the journal | every slot, until a later record says what it holds: `map` and `unmap` do |
//! | what shows where the journal ends | every slot |
//! | a superblock | whatever is not the same in all pasts that may have been: see [`Remains::pasts`] |
//!
//! The journal ends before the first place that holds an older generation's record, or says that
//! nothing was ever written there. What cannot be told from the real thing is a sector that reads as
//! it did in the past.

use roaring::RoaringBitmap;

use super::MetadataError;
use super::journal::{Event, Journal, Place};
use super::slots::{Change, Content, Entry};
use super::store::FlashStore;
use super::superblock::{Superblock, SuperblockCopy, emptied_up_to, is_empty, read_each};
use super::table;
use super::{Session, check_sizes};
use crate::layout::{ENTRIES_PER_PAGE, Layout};
use crate::policy::{Block, Mapping, Slot};

/// What is known of a damaged cache.
#[derive(Debug, Default)]
pub struct Salvage {
    /// What the origin lacks, proven: it may be written back.
    pub dirty: Vec<Mapping>,
    /// Slots that may hold, of any block, what the origin lacks.
    pub unknown: Vec<Slot>,
    /// Blocks that were last seen in those, or are named twice. In order.
    pub last_seen: Vec<Block>,
    /// Size of the origin when the cache was last in use, as far as that is known, bytes.
    pub origin_bytes: u64,
    /// A superblock says whose it is: otherwise that is only what the session says.
    pub is_identified: bool,
    /// Superblocks that cannot be read.
    pub superblocks_lost: usize,
    /// Pages of the tables that are neither empty nor whole.
    pub table_pages_damaged: usize,
    /// Records of the journals that are not whole.
    pub records_damaged: usize,
}

/// Finds out what can be proven of the cache on the flash; nothing is written. The session says
/// whose it is, which is believed only where no superblock is whole.
///
/// # Errors
/// A [`MetadataError`] if it was made with another layout, for another origin or in another format,
/// or if the origin has shrunk.
pub fn salvage(store: &impl FlashStore, session: &Session) -> Result<Salvage, MetadataError> {
    let layout = check_sizes(store, session)?;
    let copies = read_each(store)?;
    let lost = [0, 1].map(|place| !tells(&copies[place], place as u64));
    let whole = copies
        .iter()
        .zip(lost)
        .filter_map(|(copy, lost)| match copy {
            SuperblockCopy::Whole(superblock) if !lost => Some(*superblock),
            _ => None,
        })
        .max_by_key(|superblock| superblock.generation);
    if let Some(whole) = &whole {
        session.identity.check_stored(&whole.identity)?;
    }
    let origin_bytes = whole.map_or(session.identity.origin_bytes, |it| it.identity.origin_bytes);
    if is_empty(&copies) {
        return Ok(Salvage {
            origin_bytes,
            is_identified: true,
            ..Salvage::default()
        });
    }
    let emptied = emptied_up_to(&copies).unwrap_or(0);
    let remains = Remains {
        store,
        layout,
        blocks: layout.origin_blocks(origin_bytes)?,
        journals: [0, 1].map(|which| Journal::read_damaged(store, &layout, which)),
        emptied,
        // What is not known of it: as it is served.
        sync: match whole {
            Some(superblock) if lost == [false; 2] => superblock.sync,
            whole => session.sync && whole.is_none_or(|superblock| superblock.sync),
        },
        whole: whole.filter(|superblock| superblock.generation > emptied),
        lost,
    };
    // The end of the origin cuts a block short, and where it was then is not known.
    let has_grown = lost != [false; 2] && origin_bytes != session.identity.origin_bytes;
    let pasts = match has_grown {
        true => Vec::new(),
        false => remains.pasts(session),
    };
    Ok(Salvage {
        origin_bytes,
        is_identified: whole.is_some(),
        superblocks_lost: lost.iter().filter(|&&lost| lost).count(),
        table_pages_damaged: remains.pages_damaged(),
        records_damaged: remains.records_damaged(),
        ..remains.proven(&pasts)
    })
}

/// Whether a superblock's place says what it is to say.
fn tells(copy: &SuperblockCopy, place: u64) -> bool {
    match copy {
        SuperblockCopy::Whole(superblock) => superblock.generation % 2 == place,
        SuperblockCopy::Empty(_) => true,
        SuperblockCopy::Blank | SuperblockCopy::Damaged => false,
    }
}

/// How the last session may have ended.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// Of the superblock that counts.
    generation: u64,
    /// The devices have all that was written.
    kept_all: bool,
    /// Nothing was to follow.
    closed: bool,
}

/// How far the journals are to be believed.
struct Believed {
    /// Records of the generation's own journal.
    own: usize,
    /// Records of the next one's, if it had begun.
    next: Option<usize>,
    /// Nothing that counts can have come after them.
    certain: bool,
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing, or which block was last seen in it.
    Unknown(Option<Block>),
    /// That the origin has what it holds.
    NotDirty,
    /// All.
    Is(Entry),
}

impl State {
    fn forget(self) -> State {
        match self {
            State::Is(entry) if entry.content != Content::Free => State::Unknown(Some(entry.block)),
            State::Unknown(block) => State::Unknown(block),
            _ => State::Unknown(None),
        }
    }

    fn after(self, change: Change) -> State {
        match (self, change) {
            // It makes no sense: one of both is wrong.
            (State::Is(entry), _) => entry.after(change).map_or(self.forget(), State::Is),
            (_, Change::Map { .. } | Change::Unmap) => {
                Entry::default().after(change).map_or(self, State::Is)
            }
            (_, Change::Clean) => State::NotDirty,
            (_, Change::Dirty) => self.forget(),
            (_, Change::Present(_)) => self,
        }
    }

    /// As far as it matters to what the origin lacks.
    fn of_dirt(self) -> State {
        match self {
            State::Is(entry) if entry.content == Content::Dirty => {
                State::Is(Entry { heat: 0, ..entry })
            }
            State::Is(_) => State::NotDirty,
            unknown => unknown,
        }
    }
}

/// What is left of the metadata.
struct Remains<'a, S> {
    store: &'a S,
    layout: Layout,
    /// Of the origin.
    blocks: u32,
    journals: [Journal; 2],
    /// Generations up to this one do not count.
    emptied: u64,
    sync: bool,
    /// The newest superblock that is whole.
    whole: Option<Superblock>,
    /// Whose place says nothing.
    lost: [bool; 2],
}

impl<S: FlashStore> Remains<'_, S> {
    /// The pasts that may have been. With both superblocks their generation is known; what the devices
    /// have kept, only where a witness says it or the computer has stopped. Otherwise the lost one may
    /// have been the newer, of any run of the computer; then the newest generation that anything on
    /// the flash is of is its own, or that of a checkpoint after it.
    fn pasts(&self, session: &Session) -> Vec<Past> {
        let past = |generation, kept_all, closed| Past {
            generation,
            kept_all,
            closed,
        };
        if let (Some(whole), [false, false]) = (&self.whole, self.lost) {
            let may_have: &[bool] = match whole.boot_id == session.boot_id {
                true if whole.is_witnessed(session) => &[true],
                true => &[true, false],
                false => &[false],
            };
            let each = may_have.iter();
            return each
                .map(|&kept_all| past(whole.generation, kept_all, whole.closed))
                .collect();
        }
        // A session of which nothing else is left, either: its journal's beginning would show it.
        let hidden = |&which: &u64| {
            self.lost[which as usize] && matches!(self.place(which, 0), Place::Damaged)
        };
        if [0, 1].iter().any(hidden) {
            return Vec::new();
        }
        let newest = self.newest();
        let of_whole = self.whole.map_or(0, |whole| whole.generation);
        let may_count = |generation: &u64| {
            let was_lost = self.lost[(generation % 2) as usize] && *generation > self.emptied;
            *generation >= of_whole && (*generation == of_whole || was_lost) && *generation > 0
        };
        let mut generations = vec![newest, newest.saturating_sub(1), of_whole];
        generations.dedup();
        generations.retain(may_count);
        generations
            .iter()
            .flat_map(|&generation| [true, false].map(|kept_all| past(generation, kept_all, false)))
            .collect()
    }

    /// The newest generation that anything is of.
    fn newest(&self) -> u64 {
        let of_pages = self.pages().filter_map(|page| table::generation_of(&page?));
        let of_records = self.journals.iter().flat_map(Journal::records);
        let all = of_pages.chain(of_records.map(|record| record.generation));
        let of_whole = self.whole.map_or(0, |whole| whole.generation);
        all.max().unwrap_or(0).max(of_whole)
    }

    /// The pages of both tables; those that cannot be read are none.
    fn pages(&self) -> impl Iterator<Item = Option<table::Page>> {
        let count = (self.layout.slots() as usize).div_ceil(ENTRIES_PER_PAGE) as u32;
        [0, 1].into_iter().flat_map(move |generation| {
            (0..count).map(move |page| table::read_page(self.store, &self.layout, generation, page))
        })
    }

    fn pages_damaged(&self) -> usize {
        let is_well = |page: &table::Page| {
            page.iter().all(|&byte| byte == 0) || table::generation_of(page).is_some()
        };
        let damaged = |page: &Option<table::Page>| !page.as_ref().is_some_and(is_well);
        self.pages().filter(damaged).count()
    }

    fn records_damaged(&self) -> usize {
        let places = self.journals.iter().flat_map(|journal| {
            (0..journal.places()).filter(|&at| matches!(journal.place(at), Place::Damaged))
        });
        places.count()
    }

    /// What is the same in all of the pasts.
    fn proven(&self, pasts: &[Past]) -> Salvage {
        let mut replayed = pasts.iter().filter_map(|past| self.replay(past));
        let slots = self.layout.slots() as usize;
        let mut states = replayed
            .next()
            .unwrap_or_else(|| vec![State::Unknown(None); slots]);
        for other in replayed {
            for (state, other) in states.iter_mut().zip(other) {
                if *state != other {
                    *state = match (state.forget(), other.forget()) {
                        (State::Unknown(None), last) => last,
                        (last, _) => last,
                    };
                }
            }
        }
        let mut salvage = Salvage::default();
        for (slot, state) in (0..).zip(states) {
            match state {
                State::Is(entry) => salvage.dirty.push(Mapping {
                    block: entry.block,
                    slot,
                    dirty: true,
                    heat: 0,
                    missing: entry.missing,
                }),
                State::NotDirty => {}
                State::Unknown(last) => {
                    salvage.unknown.push(slot);
                    salvage
                        .last_seen
                        .extend(last.filter(|&block| block < self.blocks));
                }
            }
        }
        salvage.last_seen.sort_unstable();
        salvage.last_seen.dedup();
        salvage
    }

    /// What the slots held at the end of this past; `None` if it cannot have been.
    fn replay(&self, past: &Past) -> Option<Vec<State>> {
        let generation = past.generation;
        let believed = match past.kept_all {
            true => self.believed_of_process(past)?,
            false => self.believed_of_computer(past)?,
        };
        let mut states = vec![State::Unknown(None); self.layout.slots() as usize];
        if let Some(Event::Continue(records)) = self.event(generation, 0) {
            // The same session's checkpoint before: it leads to what the table holds.
            self.lay(generation - 1, &mut states);
            self.play(generation - 1, records as usize, &mut states);
        }
        self.lay(generation, &mut states);
        self.play(generation, believed.own, &mut states);
        if let Some(records) = believed.next {
            self.lay(generation + 1, &mut states);
            self.play(generation + 1, records, &mut states);
        }
        if !believed.certain {
            states.iter_mut().for_each(|state| *state = state.forget());
        }
        self.doubt(&mut states);
        states.iter_mut().for_each(|state| *state = state.of_dirt());
        Some(states)
    }

    /// Takes in what is whole of the table of this generation.
    fn lay(&self, generation: u64, states: &mut [State]) {
        let mut entries = [Entry::default(); ENTRIES_PER_PAGE];
        for (number, chunk) in (0u32..).zip(states.chunks_mut(ENTRIES_PER_PAGE)) {
            let page = table::read_page(self.store, &self.layout, generation, number);
            let entries = &mut entries[..chunk.len()];
            let whole = page.and_then(|page| table::decode(&page, generation, number, entries));
            if whole.is_some() {
                for (state, &entry) in chunk.iter_mut().zip(&*entries) {
                    *state = State::Is(entry);
                }
            }
        }
    }

    /// Takes in the first records of the journal of this generation.
    fn play(&self, generation: u64, records: usize, states: &mut [State]) {
        // What has been learned since all was forgotten; there may be many gaps.
        let mut learned: Option<Vec<usize>> = None;
        for at in 0..records {
            match self.event(generation, at) {
                Some(Event::Changed(slot, change)) if (slot as usize) < states.len() => {
                    let state = &mut states[slot as usize];
                    *state = state.after(change);
                    if let Some(learned) = &mut learned {
                        learned.push(slot as usize);
                    }
                }
                Some(Event::Committed(_) | Event::Begin | Event::Continue(_)) => {}
                // Whatever it was, of whatever slot.
                _ => {
                    let all = || (0..states.len()).collect();
                    for slot in learned.replace(Vec::new()).unwrap_or_else(all) {
                        states[slot] = states[slot].forget();
                    }
                }
            }
        }
    }

    /// Of a block that cannot be, or is in two slots, one of its records is wrong.
    fn doubt(&self, states: &mut [State]) {
        let all = self.layout.sub_blocks().all();
        let (mut seen, mut twice) = (RoaringBitmap::new(), RoaringBitmap::new());
        let held = |state: &State| match state {
            State::Is(entry) if entry.content != Content::Free => Some(*entry),
            _ => None,
        };
        for entry in states.iter().filter_map(held) {
            if entry.block < self.blocks && !seen.insert(entry.block) {
                twice.insert(entry.block);
            }
        }
        for state in states {
            let wrong = held(state).is_some_and(|entry| {
                entry.block >= self.blocks
                    || entry.missing & !all != 0
                    || twice.contains(entry.block)
            });
            if wrong {
                *state = state.forget();
            }
        }
    }

    fn journal(&self, generation: u64) -> &Journal {
        &self.journals[(generation % 2) as usize]
    }

    /// What is at a place of the journal that the generation would use.
    fn place(&self, generation: u64, at: usize) -> Place {
        self.journal(generation).place(at)
    }

    fn event(&self, generation: u64, at: usize) -> Option<Event> {
        match self.place(generation, at) {
            Place::Record(of, event) if of == generation => Some(event),
            _ => None,
        }
    }

    /// How many places of the journal the generation has used, as far as is to be seen.
    fn used(&self, generation: u64) -> usize {
        let places = 0..self.journal(generation).places();
        let last = places
            .rev()
            .find(|&at| self.event(generation, at).is_some());
        last.map_or(0, |at| at + 1)
    }

    /// Whether the place shows that the generation's journal had not come so far.
    fn is_end(&self, generation: u64, at: usize) -> bool {
        self.journal(generation).is_end(generation, at)
    }

    /// The same of the first place after these that the generation has not used.
    fn ends_after(&self, generation: u64, mut at: usize) -> bool {
        while self.event(generation, at).is_some() {
            at += 1;
        }
        self.is_end(generation, at)
    }

    /// Whether the superblock itself shows that no record followed on it.
    fn is_closed(&self, past: &Past) -> bool {
        let first = self.place(past.generation, 0);
        past.closed && self.used(past.generation) == 0 && !matches!(first, Place::Damaged)
    }

    /// The next journal is begun when this one is full, or when the session is closed.
    fn has_no_next(&self, generation: u64) -> bool {
        let journal = self.journal(generation);
        self.used(generation) < journal.places()
            || !matches!(self.place(generation + 1, 0), Place::Damaged)
    }

    /// The number of records that the next journal follows on; what is lost of it counts for
    /// nothing. `None` if it follows on a table of its own, whose superblock was there then.
    fn followed(&self, generation: u64) -> Option<usize> {
        match self.event(generation + 1, 0) {
            Some(Event::Continue(records)) => {
                Some((records as usize).min(self.journal(generation).places()))
            }
            None => Some(self.used(generation)),
            Some(_) => None,
        }
    }

    /// After a process, all records count.
    fn believed_of_process(&self, past: &Past) -> Option<Believed> {
        let generation = past.generation;
        let (own, next) = (self.used(generation), self.used(generation + 1));
        if next > 0 {
            let followed = self.followed(generation)?;
            return Some(Believed {
                own: followed,
                next: Some(next),
                certain: own <= followed && self.is_end(generation + 1, next),
            });
        }
        let ends = self.is_closed(past) || self.is_end(generation, own);
        let certain = ends && self.has_no_next(generation);
        Some(Believed {
            own,
            next: certain.then_some(0),
            certain,
        })
    }

    /// After the computer stopped, records count up to the last commit.
    fn believed_of_computer(&self, past: &Past) -> Option<Believed> {
        let (generation, next) = (past.generation, past.generation + 1);
        let followed = self.followed(generation)?;
        let sync = self.sync || self.is_closed(past);
        if let Some((at, records)) = self.last_commit(next) {
            return Some(Believed {
                own: followed,
                next: Some(records),
                certain: sync && self.ends_after(next, at + 1),
            });
        }
        let (after, own) = match self.last_commit(generation) {
            Some((at, records)) => (at + 1, records),
            None => (0, 0),
        };
        let ends = self.is_closed(past) || self.ends_after(generation, after);
        let none_hidden = match self.used(next) {
            0 => self.has_no_next(generation),
            _ => self.ends_after(next, 0),
        };
        Some(Believed {
            own,
            next: None,
            certain: sync && ends && none_hidden,
        })
    }

    /// Where the last commit of the journal is, and how many records it covers.
    fn last_commit(&self, generation: u64) -> Option<(usize, usize)> {
        (0..self.used(generation))
            .rev()
            .find_map(|at| match self.event(generation, at) {
                Some(Event::Committed(records)) => Some((at, records as usize)),
                _ => None,
            })
    }
}
