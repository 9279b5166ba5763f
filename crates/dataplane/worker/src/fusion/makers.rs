//! The tables in which a region's program makes records: whether a new record may end one that entries use.

use ir::{Tables, Term};
use std::collections::BTreeSet;

/// With room for so many records, or for half of what a table holds, it is not short of room any more.
const ROOM: usize = 512;
/// The most mappings that a packet is taken to make where it is not known better: all rewriters that share a budget may
/// be in its way.
const MOST_MADE: usize = 64;

/// The tables in which a program makes records.
pub(crate) struct Makers {
    tables: Vec<usize>,
    /// Those among them in which a new record may end another one although there is room.
    ending: Vec<usize>,
    /// For how many packets they have room for sure.
    room_for: usize,
}

impl Makers {
    /// Those of a program.
    pub fn of(program: &ir::Program) -> Makers {
        let made_at = |block: &ir::Block| match block.term {
            Term::Lookup { table, args: Some(_), .. } => Some(usize::from(table)),
            _ => None,
        };
        let tables: BTreeSet<usize> = program.blocks.iter().filter_map(made_at).collect();
        Makers { tables: tables.into_iter().collect(), ending: vec![], room_for: 0 }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether all have room for the records of so many packets for sure. They are not asked for each burst: until the
    /// next tick there is room for as many packets as could not have filled them.
    #[inline]
    pub fn have_room_for(&mut self, packets: usize) -> bool {
        let left = self.room_for.checked_sub(packets);
        self.room_for = left.unwrap_or(0);
        left.is_some()
    }

    /// Has the tables asked by the next burst.
    pub fn tick(&mut self) {
        self.room_for = 0;
    }

    /// Whether a table has no room for the records of so many flows: it may end others.
    pub fn are_short_of_room(&mut self, tables: &mut dyn Tables, packets: usize) -> bool {
        let rooms = self.tables.iter().filter_map(|table| tables.table(*table)?.room());
        let left = rooms.map(|room| room.left).min().unwrap_or(usize::MAX);
        self.room_for = (left / MOST_MADE).saturating_sub(packets);
        let may_end = |table: &&usize| tables.table(**table).is_some_and(|it| it.may_end_others().is_some());
        self.ending.clear();
        self.ending.extend(self.tables.iter().filter(may_end));
        left < packets
    }

    /// Whether a new record may end another one now although there is room.
    pub fn may_end_others(&self, tables: &mut dyn Tables) -> bool {
        self.ending
            .iter()
            .any(|table| tables.table(*table).is_none_or(|table| table.may_end_others() == Some(true)))
    }

    /// Whether a packet that asked these tables may have such a record.
    pub fn may_be_ended(&self, asked: &[u16]) -> bool {
        asked.iter().any(|table| self.ending.contains(&usize::from(*table)))
    }

    /// Whether every table has room for a while.
    pub fn have_room_again(&self, tables: &mut dyn Tables) -> bool {
        let mut rooms = self.tables.iter().filter_map(|table| tables.table(*table)?.room());
        rooms.all(|room| room.left >= (room.whole / 2).min(ROOM))
    }

    /// Tells the tables whether caches have merged all that they counted, and count nothing meanwhile.
    pub fn tell(&self, tables: &mut dyn Tables, is_merged: bool) {
        for number in &self.tables {
            if let Some(table) = tables.table(*number) {
                table.note_merged(is_merged);
            }
        }
    }
}
