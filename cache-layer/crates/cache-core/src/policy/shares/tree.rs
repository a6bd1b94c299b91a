//! Who owns which block, which share lies in which, and how much of it can be promised.

use std::cmp::Reverse;
use std::iter;

use roaring::RoaringBitmap;

use super::{
    EXCLUDED, FIRST_SHARE, Fit, Limits, OwnerId, PINNED, Piece, Right, Rights, Share, Shares,
    SharesError, available,
};
use crate::policy::Geometry;

pub(super) fn build(shares: &[Share], geometry: Geometry, fit: Fit) -> Result<Shares, SharesError> {
    let named = Named::read(shares, geometry, fit)?;
    let mut tree = Tree::new(&named);
    let mut room = Room::new(&tree.rights, geometry.slots, fit);
    for at in 0..tree.pinned.len() {
        tree.promise_pinned(at, &mut room)?;
    }
    let pinned = room.total;
    for &owner in &tree.inner_first {
        let limits = &mut tree.rights[owner].limits;
        limits.guaranteed = room.guarantee(owner, limits.guaranteed)?;
    }
    let available = available(geometry.slots);
    if room.total > u64::from(available) {
        return Err(SharesError::DoNotFit {
            pinned,
            guaranteed: room.total - pinned,
            available,
        });
    }
    Ok(tree.finish(named.excluded))
}

/// The blocks that were named, by right.
struct Named {
    excluded: RoaringBitmap,
    /// None of them excluded, like those of the shares.
    pinned: RoaringBitmap,
    shares: Vec<(RoaringBitmap, Limits)>,
}

impl Named {
    fn read(shares: &[Share], geometry: Geometry, fit: Fit) -> Result<Named, SharesError> {
        let mut named = Named {
            excluded: RoaringBitmap::new(),
            pinned: RoaringBitmap::new(),
            shares: Vec::new(),
        };
        for share in shares {
            let blocks = blocks_of(share, geometry)?;
            match share.right {
                Right::Pinned => named.pinned |= blocks,
                Right::Excluded => named.excluded |= blocks,
                Right::Share { guaranteed, most } if guaranteed > most && fit == Fit::Whole => {
                    return Err(SharesError::Limits { guaranteed, most });
                }
                Right::Share { guaranteed, most } => {
                    let guaranteed = guaranteed.min(most);
                    named.shares.push((blocks, Limits { guaranteed, most }));
                }
            }
        }
        named.pinned -= &named.excluded;
        for (blocks, _) in &mut named.shares {
            *blocks -= &named.excluded;
        }
        Ok(named)
    }
}

fn blocks_of(share: &Share, geometry: Geometry) -> Result<RoaringBitmap, SharesError> {
    let mut blocks = RoaringBitmap::new();
    for run in &share.blocks {
        if run.end > geometry.origin_blocks {
            return Err(SharesError::BeyondOrigin {
                end: run.end,
                origin_blocks: geometry.origin_blocks,
            });
        }
        blocks.insert_range(run.clone());
    }
    Ok(blocks)
}

/// Owners with the blocks that are theirs and of nobody inside them.
struct Tree {
    rights: Vec<Rights>,
    inner_first: Vec<OwnerId>,
    /// By share, what is not pinned.
    own: Vec<RoaringBitmap>,
    /// Of the shares, each before those around it, and at last of none.
    pinned: Vec<(OwnerId, RoaringBitmap)>,
}

impl Tree {
    fn new(named: &Named) -> Tree {
        let mut tree = Tree {
            rights: vec![of_nobody(u32::MAX), pinned_in(None), of_nobody(0)],
            inner_first: inner_first(named),
            own: vec![RoaringBitmap::new(); named.shares.len()],
            pinned: Vec::new(),
        };
        let shares = named.shares.iter().map(|&(_, limits)| Rights {
            limits,
            pinned: false,
            around: None,
        });
        tree.rights.extend(shares);
        for (at, &owner) in tree.inner_first.iter().enumerate() {
            tree.rights[owner].around = around(named, owner, &tree.inner_first[at + 1..]);
        }
        let mut taken = RoaringBitmap::new();
        for &owner in &tree.inner_first {
            let blocks = &named.shares[owner - FIRST_SHARE].0 - &taken;
            taken |= &blocks;
            let pinned = &blocks & &named.pinned;
            tree.own[owner - FIRST_SHARE] = blocks - &pinned;
            if !pinned.is_empty() {
                tree.pinned.push((tree.rights.len(), pinned));
                tree.rights.push(pinned_in(Some(owner)));
            }
        }
        tree.pinned.push((PINNED, &named.pinned - &taken));
        tree
    }

    /// What of it has no room is pinned no more: the last of the origin's.
    fn promise_pinned(&mut self, at: usize, room: &mut Room) -> Result<(), SharesError> {
        let (owner, blocks) = &mut self.pinned[at];
        let kept = room.promise(self.rights[*owner].around, blocks.len())?;
        self.rights[*owner].limits = Limits {
            guaranteed: kept as u32,
            most: kept as u32,
        };
        if let Some(first) = blocks.select(kept as u32) {
            let mut cut = blocks.clone();
            cut.remove_range(..first);
            blocks.remove_range(first..);
            if let Some(share) = self.rights[*owner].around {
                self.own[share - FIRST_SHARE] |= cut;
            }
        }
        Ok(())
    }

    fn finish(self, excluded: RoaringBitmap) -> Shares {
        let mut pieces = pieces_of(&excluded, EXCLUDED);
        for (owner, blocks) in &self.pinned {
            pieces.extend(pieces_of(blocks, *owner));
        }
        for (share, blocks) in self.own.iter().enumerate() {
            pieces.extend(pieces_of(blocks, FIRST_SHARE + share));
        }
        pieces.sort_unstable_by_key(|piece| piece.first);
        Shares {
            pieces,
            rights: self.rights,
            inner_first: self.inner_first,
        }
    }
}

fn of_nobody(most: u32) -> Rights {
    let guaranteed = 0;
    Rights {
        limits: Limits { guaranteed, most },
        pinned: false,
        around: None,
    }
}

fn pinned_in(around: Option<OwnerId>) -> Rights {
    Rights {
        pinned: true,
        around,
        ..of_nobody(0)
    }
}

/// The smallest first; of two alike the one that was given later.
fn inner_first(named: &Named) -> Vec<OwnerId> {
    let mut owners: Vec<OwnerId> = (FIRST_SHARE..FIRST_SHARE + named.shares.len()).collect();
    owners.sort_by_key(|&owner| (named.shares[owner - FIRST_SHARE].0.len(), Reverse(owner)));
    owners
}

/// The smallest share that most blocks of this one belong to. Two files may meet in a block, and a
/// table may have grown since its database was looked up: neither makes or ends a nesting.
fn around(named: &Named, owner: OwnerId, larger: &[OwnerId]) -> Option<OwnerId> {
    let blocks = &named.shares[owner - FIRST_SHARE].0;
    let holds = |&&other: &&OwnerId| {
        blocks.intersection_len(&named.shares[other - FIRST_SHARE].0) * 2 > blocks.len()
    };
    larger.iter().find(holds).copied()
}

fn pieces_of(blocks: &RoaringBitmap, owner: OwnerId) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for block in blocks {
        match pieces.last_mut() {
            Some(piece) if piece.end == block => piece.end += 1,
            _ => pieces.push(Piece {
                first: block,
                end: block + 1,
                owner,
            }),
        }
    }
    pieces
}

/// What has been promised: in each share, and in all.
struct Room {
    around: Vec<Option<OwnerId>>,
    most: Vec<u32>,
    promised: Vec<u64>,
    total: u64,
    available: u32,
    fit: Fit,
}

impl Room {
    fn new(rights: &[Rights], slots: u32, fit: Fit) -> Room {
        Room {
            around: rights.iter().map(|of| of.around).collect(),
            most: rights.iter().map(|of| of.limits.most).collect(),
            promised: vec![0; rights.len()],
            total: 0,
            available: available(slots),
            fit,
        }
    }

    /// Promises so many slots inside a share and those around it; returns how many have room.
    fn promise(&mut self, inside: Option<OwnerId>, wanted: u64) -> Result<u64, SharesError> {
        let shares: Vec<OwnerId> = iter::successors(inside, |&share| self.around[share]).collect();
        let mut given = wanted;
        for &owner in &shares {
            let (promised, most) = (self.promised[owner], self.most[owner]);
            let spare = u64::from(most).saturating_sub(promised);
            if wanted > spare && self.fit == Fit::Whole {
                return Err(SharesError::Inside {
                    share: owner - FIRST_SHARE,
                    promised: promised + wanted,
                    most,
                });
            }
            given = given.min(spare);
        }
        if self.fit == Fit::AsFarAsPossible {
            given = given.min(u64::from(self.available).saturating_sub(self.total));
        }
        for owner in shares {
            self.promised[owner] += given;
        }
        self.total += given;
        Ok(given)
    }

    /// Guarantees a share so many slots, of which those promised inside it are a part; returns what
    /// others leave it.
    fn guarantee(&mut self, owner: OwnerId, wanted: u32) -> Result<u32, SharesError> {
        let missing = u64::from(wanted).saturating_sub(self.promised[owner]);
        self.promised[owner] += self.promise(self.around[owner], missing)?;
        Ok(self.promised[owner] as u32)
    }
}
