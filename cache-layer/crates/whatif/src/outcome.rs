//! What a cache made of a trace.

use std::fmt;

use serde::Serialize;

/// What a policy made of a trace. Requests are cut at the blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Number of requests.
    pub requests: u64,
    /// Those whose block was on the flash.
    pub hits: u64,
    /// Those whose block was not.
    pub misses: u64,
    /// Misses per request; 0 for an empty trace.
    pub miss_ratio: f64,
    /// Blocks copied to the flash.
    pub promotions: u64,
    /// Blocks given up.
    pub demotions: u64,
    /// Requests that write.
    pub writes: u64,
    /// Those of them whose block was on the flash.
    pub write_hits: u64,
    /// Bytes of those.
    pub write_hit_bytes: u64,
    /// Those of them that went to the flash alone.
    pub absorbed: u64,
    /// Blocks that went to the origin later for that.
    pub write_backs: u64,
    /// Requests that were sent past the cache.
    pub bypassed: u64,
}

impl Outcome {
    /// Counts a request, or the piece of one that lies in a block.
    pub(crate) fn count(&mut self, hit: bool, write: bool, bytes: u64) {
        self.requests += 1;
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
        self.writes += u64::from(write);
        if hit && write {
            self.write_hits += 1;
            self.write_hit_bytes += bytes;
        }
    }

    pub(crate) fn with_ratio(mut self) -> Outcome {
        self.miss_ratio = self.misses as f64 / self.requests.max(1) as f64;
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        writeln!(formatter, "requests     {}", self.requests)?;
        writeln!(formatter, "hits         {}", self.hits)?;
        writeln!(formatter, "misses       {}", self.misses)?;
        writeln!(formatter, "miss ratio   {:.6}", self.miss_ratio)?;
        writeln!(formatter, "promotions   {}", self.promotions)?;
        writeln!(formatter, "demotions    {}", self.demotions)?;
        writeln!(formatter, "writes       {}", self.writes)?;
        writeln!(formatter, "write hits   {}", self.write_hits)?;
        writeln!(formatter, "  their bytes {}", self.write_hit_bytes)?;
        writeln!(formatter, "absorbed     {}", self.absorbed)?;
        writeln!(formatter, "write-backs  {}", self.write_backs)?;
        write!(formatter, "bypassed     {}", self.bypassed)
    }
}
