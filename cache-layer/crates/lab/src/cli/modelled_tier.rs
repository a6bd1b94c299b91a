//! The command line of `flashdev tier`: the engine's, and models below it.

use std::sync::Arc;

use clap::Args;

use flashdev::modelled::Modelled;
use hotset_engine::cli::tier::TierArgs;
use hotset_engine::real_time::DeviceModel;
use hotset_engine::tier::run_tier;
use storage_model::spec::{ModelError, ModelSpec};

#[derive(Args)]
pub struct ModelledTierArgs {
    #[command(flatten)]
    tier: TierArgs,
    /// Model of the origin: JSON file, or the name of a built-in one [default: as fast as it is].
    #[arg(long, value_name = "FILE|NAME")]
    origin_model: Option<String>,
    /// Model of the flash [default: as fast as its file].
    #[arg(long, value_name = "FILE|NAME")]
    flash_model: Option<String>,
}

pub fn run_modelled_tier(args: ModelledTierArgs) -> anyhow::Result<()> {
    let only_check = args.tier.check;
    let mut options = args.tier.options();
    options.origin_model = loaded(args.origin_model.as_deref())?;
    options.flash_model = loaded(args.flash_model.as_deref())?;
    run_tier(&options, only_check)
}

fn loaded(model: Option<&str>) -> Result<Option<Arc<dyn DeviceModel>>, ModelError> {
    let Some(model) = model else {
        return Ok(None);
    };
    Ok(Some(Arc::new(Modelled(ModelSpec::load(model)?))))
}
