//! A number for each of some blocks of the origin, most of which have none: as many are cached or
//! remembered as there are slots, however large the origin is.

use super::Block;
use super::list::NONE;
use crate::number_map::NumberMap;

/// An array costs less than a map as long as there are not more blocks than so many times those that
/// have a number.
const ARRAY_MOST: u32 = 16;

/// How often more room a map has, as about as many blocks are remembered as are cached, and a map that
/// is more than half full is now and then cleared of what has left it, for which users would wait.
const ROOM: usize = 4;

/// Numbers by block: 4 bytes a block, or some 40 to 80 for each that has one.
pub(super) enum ByBlock {
    Array(Vec<u32>),
    Map(NumberMap<u32>),
}

impl ByBlock {
    /// For so many blocks, of which about so many will have a number at a time.
    pub(super) fn new(blocks: u32, numbered: u32) -> ByBlock {
        if blocks <= numbered.saturating_mul(ARRAY_MOST) {
            return ByBlock::Array(vec![NONE; blocks as usize]);
        }
        let mut map = NumberMap::default();
        map.reserve(numbered as usize * ROOM);
        ByBlock::Map(map)
    }

    /// The block's number, or [`NONE`].
    pub(super) fn get(&self, block: Block) -> u32 {
        match self {
            ByBlock::Array(numbers) => numbers[block as usize],
            ByBlock::Map(numbers) => numbers.get(&block).copied().unwrap_or(NONE),
        }
    }

    /// Gives the block a number, or takes it away.
    pub(super) fn set(&mut self, block: Block, number: u32) {
        match self {
            ByBlock::Array(numbers) => numbers[block as usize] = number,
            ByBlock::Map(numbers) if number == NONE => drop(numbers.remove(&block)),
            ByBlock::Map(numbers) => drop(numbers.insert(block, number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn a_map_knows_what_an_array_does() {
        let (mut array, mut map) = (ByBlock::new(1000, 100), ByBlock::new(1000, 1));
        assert!(matches!(
            (&array, &map),
            (ByBlock::Array(_), ByBlock::Map(_))
        ));
        let mut dice = Dice::new(3);
        for _ in 0..5000 {
            let block = dice.below(1000) as Block;
            let number = match dice.below(2) {
                0 => NONE,
                _ => dice.below(50) as u32,
            };
            array.set(block, number);
            map.set(block, number);
        }
        assert!((0..1000).all(|block| array.get(block) == map.get(block)));
    }
}
