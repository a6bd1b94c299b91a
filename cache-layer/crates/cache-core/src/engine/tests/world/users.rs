//! Users: what they ask for, and what they must find.

use super::*;

impl World {
    pub(super) fn ask(&mut self, request: Request) {
        let answered = |sectors: &[Sector]| sectors.iter().map(|sector| sector.answered).collect();
        let asked = match request {
            Request::Flush => Asked::Flush {
                answered: answered(&self.sectors),
            },
            _ => Asked::FlushVolume {
                answered: answered(&self.volume),
            },
        };
        self.submit(asked, request);
    }

    pub(super) fn submit(&mut self, asked: Asked, request: Request) {
        self.next_id += 1;
        self.note_hung(self.next_id, request);
        self.asked.insert(self.next_id, asked);
        self.engine.on_request(self.now, self.next_id, request);
    }

    pub(super) fn range(&mut self) -> (u64, u64) {
        let per_block = BLOCK_BYTES / SECTOR_BYTES;
        let per_page = PAGE_BYTES / SECTOR_BYTES;
        let sectors = self.sectors.len() as u64;
        match self.dice.below(4) {
            0 => {
                let first = self.dice.below(BLOCKS) * per_block;
                (first, per_block.min(sectors - first))
            }
            1 | 2 => {
                let pages = sectors / per_page;
                let first = self.dice.below(pages);
                let count = 1 + self.dice.below((pages - first).min(6));
                (first * per_page, count * per_page)
            }
            _ => {
                let first = self.dice.below(sectors);
                (first, 1 + self.dice.below((sectors - first).min(20)))
            }
        }
    }

    pub(super) fn ask_to_write(&mut self) {
        let (first, count) = self.range();
        let sectors = &mut self.sectors[first as usize..(first + count) as usize];
        if sectors.iter().any(|sector| sector.busy) {
            return;
        }
        let mut data = Vec::new();
        let mut version = Vec::new();
        for (number, sector) in (first..).zip(sectors) {
            sector.busy = true;
            version.push(sector.begin());
            data.extend(stamp(number, sector.begun));
        }
        let request = Request::Write {
            offset: first * SECTOR_BYTES,
            len: data.len() as u32,
        };
        let asked = Asked::Write {
            first,
            version,
            data,
        };
        self.submit(asked, request);
    }

    pub(super) fn ask_to_discard(&mut self) {
        let per_block = BLOCK_BYTES / SECTOR_BYTES;
        let block = self.dice.below(BLOCKS);
        let count = 1 + self.dice.below((BLOCKS - block).min(3));
        let first = block * per_block;
        let count = (count * per_block).min(self.sectors.len() as u64 - first);
        let sectors = &mut self.sectors[first as usize..(first + count) as usize];
        if sectors.iter().any(|sector| sector.busy) {
            return;
        }
        let discard = |sector: &mut Sector| {
            sector.busy = true;
            let version = sector.begin();
            sector.discards.push(version);
            version
        };
        let version = sectors.iter_mut().map(discard).collect();
        let request = Request::Discard {
            offset: first * SECTOR_BYTES,
            len: (count * SECTOR_BYTES) as u32,
        };
        let data = Vec::new();
        let asked = Asked::Write {
            first,
            version,
            data,
        };
        self.submit(asked, request);
    }

    pub(super) fn ask_to_read(&mut self) {
        let (first, count) = self.range();
        let sectors = &self.sectors[first as usize..(first + count) as usize];
        let len = (count * SECTOR_BYTES) as u32;
        let asked = Asked::Read {
            first,
            data: vec![0xee; len as usize],
            least: sectors.iter().map(|sector| sector.answered).collect(),
            sure: self.untold == 0,
        };
        let offset = first * SECTOR_BYTES;
        self.submit(asked, Request::Read { offset, len });
    }

    /// The volume is written past the engine, but flushed by it.
    pub(super) fn use_volume(&mut self) {
        if self.dice.once_in(2) {
            return self.ask(Request::FlushVolume);
        }
        self.write_volume();
    }

    pub(super) fn write_volume(&mut self) {
        if !self.has_volume() {
            return;
        }
        let number = self.dice.below(VOLUME_SECTORS);
        let sector = &mut self.volume[number as usize];
        sector.answered = sector.begin();
        let offset = self.layout.volume_offset() + number * SECTOR_BYTES;
        self.flash.write(offset, &stamp(number, sector.begun));
    }

    pub(super) fn warm_up(&mut self) {
        let wanted = (0..BLOCKS as u32)
            .filter(|_| self.dice.once_in(3))
            .collect::<RoaringBitmap>();
        self.engine.begin_warm_up(self.now, wanted, None);
        if self.dice.once_in(3) {
            self.engine.begin_flush(self.now);
        }
    }

    /// Other blocks are pinned, excluded and shared from now on; what is dirty among them must not
    /// get lost by that.
    pub(super) fn share_again(&mut self) {
        let mut range = |most: u64| {
            let first = self.dice.below(BLOCKS) as u32;
            let end = first + self.dice.below(most + 1) as u32;
            first..end.min(BLOCKS as u32)
        };
        let (pinned, excluded, shared) = (range(2), range(5), range(6));
        let limits = Right::Share {
            guaranteed: self.dice.below(3) as u32,
            most: 2 + self.dice.below(3) as u32,
        };
        let shares = [
            (pinned, Right::Pinned),
            (excluded, Right::Excluded),
            (shared, limits),
        ]
        .map(|(blocks, right)| Share {
            blocks: vec![blocks],
            right,
        });
        let count = self.dice.below(4) as usize;
        // A cache that is smaller now may not have room for them.
        if let Ok(shares) = Shares::new(&shares[..count], geometry(&self.layout)) {
            self.engine.begin_shares(&shares);
        }
    }

    pub(super) fn replied(
        &mut self,
        id: RequestId,
        result: Result<(), Errno>,
    ) -> Result<(), String> {
        let asked = self.asked.remove(&id).ok_or("answered twice")?;
        self.note_answer(id, &asked);
        match asked {
            Asked::Read {
                first,
                data,
                least,
                sure: true,
            } if result.is_ok() => {
                let sectors = data.chunks(SECTOR_BYTES as usize);
                for ((number, bytes), least) in (first..).zip(sectors).zip(least) {
                    let sector = &self.sectors[number as usize];
                    let (version, most) = (sector.version(number, bytes)?, sector.newest);
                    if !(least..=most).contains(&version) {
                        return Err(format!(
                            "sector {number} reads as version {version}, not {least} to {most}"
                        ));
                    }
                }
            }
            Asked::Write { first, version, .. } => {
                for (number, version) in (first..).zip(version) {
                    let sector = &mut self.sectors[number as usize];
                    sector.busy = false;
                    if result.is_ok() {
                        sector.answered = version;
                    }
                }
            }
            Asked::Flush { answered } if result.is_ok() => promise(&mut self.sectors, &answered),
            Asked::FlushVolume { answered } if result.is_ok() => {
                promise(&mut self.volume, &answered);
            }
            _ => {}
        }
        Ok(())
    }
}
