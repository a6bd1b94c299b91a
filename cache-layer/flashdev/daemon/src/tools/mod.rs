//! Small programs beside the daemons.

pub mod ask;
pub mod compare;
pub mod copy;
pub mod cpu;
pub mod record;
pub mod relay;
pub mod replay;
