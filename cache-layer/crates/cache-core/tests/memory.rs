//! What a cached block costs in memory, counted at the allocator: everything that an engine keeps,
//! its policy and its metadata.

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::metadata::{FlashStore, Identity, Session, Store, format};
use cache_core::policy::{Geometry, Mapping, PolicyKind, make};
use clap::ValueEnum;

const BLOCK_BYTES: u64 = 64 << 10;

/// Held by whoever counts.
static ALONE: Mutex<()> = Mutex::new(());

/// How much is in use.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: what the system's allocator promises; only numbers are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        IN_USE.fetch_add(memory.size(), Ordering::Relaxed);
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, at: *mut u8, memory: Memory) {
        IN_USE.fetch_sub(memory.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A flash that keeps its metadata, and an origin that never fails.
struct Flash(File);

impl FlashStore for Flash {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn sync_flash(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Store for Flash {
    fn read_origin_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_origin(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What an engine has in use whose slots are all full, every other block dirty and lacking
/// something, over an origin of so many blocks.
fn in_use(kind: PolicyKind, slots: u32, blocks: u64) -> usize {
    let before = IN_USE.load(Ordering::Relaxed);
    let layout = Layout::for_slots(slots, BLOCK_BYTES);
    let origin_bytes = blocks * BLOCK_BYTES;
    let file = tempfile::tempfile().unwrap();
    file.set_len(layout.volume_offset()).unwrap();
    let session = Session {
        identity: Identity {
            layout,
            origin_id: Default::default(),
            origin_bytes,
        },
        sync: false,
        boot_id: Default::default(),
        id: Default::default(),
        witnessed: None,
    };
    let log = format(&Flash(file), &session).unwrap();
    let config = CacheConfig {
        mode: Mode::Writeback,
        layout,
        origin_bytes,
        dirty_target: 50,
        pace: Pace::of(kind),
    };
    let geometry = Geometry {
        origin_blocks: config.origin_blocks(),
        slots,
    };
    let odd = |slot: u32| slot % 2 == 1;
    let mapping = |slot| Mapping {
        block: (u64::from(slot) * blocks / u64::from(slots)) as u32,
        slot,
        dirty: odd(slot),
        heat: 0,
        missing: if odd(slot) { 0xff } else { 0 },
    };
    let mappings: Vec<Mapping> = (0..slots).map(mapping).collect();
    let engine = Engine::new(config, make(kind, geometry), Some(log), &mappings);
    drop(mappings);
    let used = IN_USE.load(Ordering::Relaxed) - before;
    drop(engine);
    used
}

/// ARC remembers as many blocks as it holds, and twice over.
fn most(kind: PolicyKind) -> f64 {
    match kind {
        PolicyKind::Arc => 54.0,
        _ => 48.0,
    }
}

#[test]
fn a_cached_block_costs_at_most_48_bytes() {
    let _alone = ALONE.lock();
    let mut too_much = Vec::new();
    for &kind in PolicyKind::value_variants() {
        let (few, many) = (16 << 10, 64 << 10);
        let of = |slots: u32| in_use(kind, slots, 2 * u64::from(slots));
        let more = of(many) - of(few);
        let each = more as f64 / f64::from(many - few);
        println!("{kind:?}: {each:.1} bytes a cached block");
        if each > most(kind) {
            too_much.push((kind, each));
        }
    }
    assert!(too_much.is_empty(), "{too_much:?}");
}

/// Of an origin that is out of all proportion to its cache, too.
#[test]
fn an_engine_over_100_tib_with_a_small_cache_takes_less_than_300_mb() {
    let _alone = ALONE.lock();
    let blocks = (100 << 40) / BLOCK_BYTES;
    for &kind in PolicyKind::value_variants() {
        let bytes = in_use(kind, 8192, blocks);
        println!("{kind:?}: {bytes} bytes");
        assert!(bytes < 300_000_000, "{kind:?}: {bytes}");
    }
}
