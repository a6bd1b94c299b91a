//! A model as the engine takes it.

use std::sync::Arc;

use hotset_engine::real_time::{DeviceModel, Pacer, SyncBacking};
use storage_model::spec::ModelSpec;

use crate::timed::Timed;

/// A device below the engine, as slow as its model.
#[derive(Debug)]
pub struct Modelled(pub ModelSpec);

impl DeviceModel for Modelled {
    fn start(&self, bytes: u64, sync: SyncBacking) -> anyhow::Result<Arc<dyn Pacer>> {
        let device = self.0.build_served(bytes, None)?;
        Ok(Timed::start(device, sync)?)
    }
}
