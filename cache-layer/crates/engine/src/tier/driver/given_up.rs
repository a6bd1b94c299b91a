//! A cache that is given up as its flash fails. That it counts no more belongs on the flash itself, where
//! every computer finds it: it is emptied, as soon as the flash can be written again. Until then the
//! mark beside the computer's settings says so, or the origin's new id.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use cache_core::engine::{Engine, Health, IoId};
use cache_core::metadata;

use crate::tier::Tier;

/// How long users and stops wait for a flash that may never answer.
const FLASH_LIMIT: Duration = Duration::from_secs(2);

/// From one try to empty the flash to the next.
const RETRY: Duration = Duration::from_millis(500);

impl Tier {
    /// Sees to it that nobody takes the cache for the origin's any more; tells the engine when that is so.
    pub(super) fn detach(self: &Arc<Self>, io: IoId) {
        let (tier, under_way) = (self.clone(), self.under_way(io));
        let detach = move || {
            let emptied = tier.empty_flash_within_limit();
            let marked = tier.origin_id.give_new_id();
            under_way.end(emptied.or(marked));
        };
        // Without the thread it has failed: whoever drops what is under way says so.
        let _ = thread::Builder::new()
            .name("detach".to_owned())
            .spawn(detach);
    }

    /// Whether the cache has been given up.
    pub(in crate::tier) fn is_given_up(&self) -> bool {
        matches!(self.lock().engine.health(), Health::PassThrough(_))
    }

    /// The end of a tier whose cache has been given up: no orderly one of the cache's.
    ///
    /// # Errors
    /// The flash cannot be emptied: it may be taken up again where nobody knows.
    pub(in crate::tier) fn end_given_up(self: &Arc<Self>) -> anyhow::Result<()> {
        self.empty_flash_within_limit().context(
            "the cache was given up, and the flash cannot be told: use it for no cache before it is erased",
        )
    }

    /// Empties the flash, and goes on trying if that cannot be yet.
    fn empty_flash_within_limit(self: &Arc<Self>) -> io::Result<()> {
        let (tier, (tried, first)) = (self.clone(), channel());
        let empty = move || {
            tier.wait_until(None, Engine::log_is_over);
            loop {
                let result = tier.empty_flash();
                let is_over = result.is_ok() || tier.keeps_its_cache();
                // Nobody may be waiting any more.
                let _ = tried.send(result);
                if is_over {
                    return;
                }
                thread::sleep(RETRY);
            }
        };
        thread::Builder::new()
            .name("given-up".to_owned())
            .spawn(empty)?;
        let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut));
        first.recv_timeout(FLASH_LIMIT).unwrap_or_else(late)
    }

    /// Whether it could not be given up after all.
    fn keeps_its_cache(&self) -> bool {
        matches!(self.lock().engine.health(), Health::ReadOnly(_))
    }

    /// To be called when the log is over: its last writes must not come after it.
    fn empty_flash(&self) -> io::Result<()> {
        let is_empty = &mut *self.is_emptied.lock();
        if !*is_empty {
            metadata::make_empty(&*self.flash_file).map_err(io::Error::other)?;
            *is_empty = true;
        }
        Ok(())
    }
}
