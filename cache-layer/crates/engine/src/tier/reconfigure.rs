//! Changes a tier while it serves: another policy or mode, a cache of another size, an origin that
//! has grown. Requests wait while the engine is closed and the next one takes up its blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use cache_core::engine::{CacheConfig, Engine, Health, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::metadata::{self, Identity, Session};
use cache_core::policy::{self, Geometry, PolicyKind};
use clap::ValueEnum;

use super::Tier;
use super::files::{StoreFiles, boot_id};
use super::protocol::{Configuration, Reconfigure};
use super::run::{dirty_target, name_of, since_1970};
use crate::flash_file::Part;
use crate::front::Front;

/// How often it is checked whether the requests that were under way have been answered.
const ANSWER_CHECK: Duration = Duration::from_millis(1);

/// How long a refill may take to make way: its reads that are under way have to end.
const REFILL_MAKES_WAY: Duration = Duration::from_secs(30);

/// What is to be, as far as it was named.
struct Wanted {
    policy: PolicyKind,
    mode: Mode,
    layout: Layout,
    origin_bytes: u64,
    parts: Option<Vec<Part>>,
}

impl Wanted {
    fn geometry(&self) -> anyhow::Result<Geometry> {
        Ok(Geometry {
            origin_blocks: self.layout.origin_blocks(self.origin_bytes)?,
            slots: self.layout.slots(),
        })
    }
}

impl Tier {
    /// Becomes what is wanted; what is cached stays, but for blocks that find no room any more.
    ///
    /// # Errors
    /// It cannot be so, a job is under way, or not everything could be written back where that must
    /// be: the tier goes on as it was.
    pub(super) fn reconfigure(
        self: &Arc<Self>,
        wanted: &Reconfigure,
    ) -> anyhow::Result<Configuration> {
        self.refill.give_way(true);
        let changed = self.reconfigure_alone(wanted);
        self.refill.give_way(false);
        changed
    }

    fn reconfigure_alone(self: &Arc<Self>, wanted: &Reconfigure) -> anyhow::Result<Configuration> {
        let alone = match self.refill.is_under_way() {
            true => self.undisturbed.try_write_for(REFILL_MAKES_WAY),
            false => self.undisturbed.try_write(),
        };
        let _alone = alone.context(
            "a warm-up, a flush or another change is under way: wait for it, then try again",
        )?;
        let wanted = self.wanted(wanted)?;
        self.ready_for(&wanted)?;
        let config = *self.lock().engine.config();
        let needs_flush = wanted.layout != config.layout || wanted.mode != config.mode;
        if needs_flush {
            // Most of it, while requests go on.
            self.clean_all_undisturbed()
                .map_err(|error| anyhow!(error))?;
        }
        self.hold();
        let changed = self.exchange(&config, &wanted, needs_flush);
        self.lock().is_held = false;
        self.released.notify_all();
        changed?;
        self.served_bytes
            .store(wanted.origin_bytes, Ordering::Relaxed);
        Ok(Configuration {
            policy: name_of(wanted.policy),
            mode: wanted.mode,
            cache_bytes: wanted.layout.cache_bytes,
            origin_bytes: wanted.origin_bytes,
        })
    }

    fn wanted(&self, asked: &Reconfigure) -> anyhow::Result<Wanted> {
        let (config, policy) = {
            let shared = self.lock();
            (*shared.engine.config(), shared.policy)
        };
        let parts = asked.flash_parts.as_ref().map(|parts| {
            let parts = parts.iter().map(|part| part.parse::<Part>());
            parts.collect::<Result<Vec<Part>, String>>()
        });
        let layout = Layout {
            cache_bytes: asked.cache_bytes.unwrap_or(config.layout.cache_bytes),
            ..config.layout
        };
        config.layout.check_change(&layout)?;
        let origin_bytes = match asked.follow_origin {
            true => self.origin_file.size_now()?,
            false => config.origin_bytes,
        };
        ensure!(
            origin_bytes >= config.origin_bytes,
            "the origin has shrunk from {} to {origin_bytes} bytes: grow it again",
            config.origin_bytes
        );
        Ok(Wanted {
            policy: named(asked.policy.as_deref(), "policy")?.unwrap_or(policy),
            mode: named(asked.mode.as_deref(), "mode")?.unwrap_or(config.mode),
            layout,
            origin_bytes,
            parts: parts.transpose().map_err(|error| anyhow!(error))?,
        })
    }

    /// Refuses what cannot be, before anything is changed.
    fn ready_for(&self, wanted: &Wanted) -> anyhow::Result<()> {
        let geometry = wanted.geometry()?;
        self.checked_shares(geometry)?;
        let engine = &self.lock().engine;
        ensure!(
            matches!(engine.health(), Health::Healthy) && !engine.is_stopping(),
            "the tier is not healthy: its log says why"
        );
        ensure!(
            wanted.origin_bytes == engine.config().origin_bytes
                || self.front.get().is_none_or(Front::can_grow),
            "a ublk device cannot grow while it is in use: deactivate the disk and activate it again, which takes in the origin's new size"
        );
        let flash_bytes = match &wanted.parts {
            Some(parts) => parts.iter().map(|part| part.size).sum(),
            None => self.flash_file.size_bytes(),
        };
        wanted.layout.check(flash_bytes)?;
        Ok(())
    }

    /// Lets no request in any more, and waits for those that were.
    fn hold(&self) {
        self.lock().is_held = true;
        while !self.lock().is_answered() {
            thread::sleep(ANSWER_CHECK);
        }
    }

    /// Puts another engine in the place of this one, the requests held.
    ///
    /// One that cannot go on as it was either ends this process: whoever supervises it starts it
    /// again, and until then users see errors rather than old data.
    fn exchange(
        self: &Arc<Self>,
        before: &CacheConfig,
        wanted: &Wanted,
        needs_flush: bool,
    ) -> anyhow::Result<()> {
        if needs_flush {
            self.clean_all_undisturbed()
                .map_err(|error| anyhow!(error))?;
        }
        let exchanged = self
            .close_engine()
            .and_then(|()| self.next_engine(before, wanted));
        if let Err(error) = &exchanged {
            eprintln!(
                "hotset-engine: the tier could not be changed: {error:#}: it has to start again"
            );
            std::process::exit(1);
        }
        exchanged
    }

    fn next_engine(&self, before: &CacheConfig, wanted: &Wanted) -> anyhow::Result<()> {
        let store = StoreFiles {
            flash: self.flash_file.clone(),
            origin: &self.origin_id,
        };
        let session = |layout, origin_bytes| -> anyhow::Result<Session> {
            Ok(Session {
                identity: Identity {
                    layout,
                    origin_id: self.origin_id.id,
                    origin_bytes,
                },
                sync: self.durability == crate::backing::Durability::Synced,
                boot_id: boot_id()?,
                id: self.session,
                witnessed: self.witness.session(),
            })
        };
        self.origin_file.grow_to(wanted.origin_bytes);
        let taken_up = session(before.layout, wanted.origin_bytes)?;
        let recovered = metadata::open(&store, &taken_up)?;
        if let Some(parts) = &wanted.parts {
            self.flash_file.set_parts(&self.flash_path, parts)?;
        }
        let geometry = wanted.geometry()?;
        let new = session(wanted.layout, wanted.origin_bytes)?;
        let (log, mappings) = metadata::recut(&store, recovered, &taken_up.identity, &new)?;
        let config = CacheConfig {
            mode: wanted.mode,
            layout: wanted.layout,
            origin_bytes: wanted.origin_bytes,
            dirty_target: dirty_target(wanted.mode, wanted.policy),
            pace: Pace::of(wanted.policy),
        };
        let policy = policy::make(wanted.policy, geometry);
        let mut engine = Engine::new(config, policy, Some(log), &mappings);
        engine.set_shares(self.now(), &self.checked_shares(geometry)?);
        let mut shared = self.lock();
        shared.engine = engine;
        shared.policy = wanted.policy;
        shared.begun = since_1970();
        Ok(())
    }
}

/// A value by its name on the command line.
fn named<T: ValueEnum>(name: Option<&str>, what: &str) -> anyhow::Result<Option<T>> {
    let Some(name) = name else { return Ok(None) };
    T::from_str(name, false).map(Some).map_err(|_| {
        let known = T::value_variants().iter().filter_map(T::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        anyhow!(
            "{what} `{name}` is unknown: give one of {}",
            known.join(", ")
        )
    })
}
