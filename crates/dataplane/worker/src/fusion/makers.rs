//! The tables in which a region's program makes records: whether a new record may end one that entries use.

use ir::{BlockId, Inst, Program, Tables, Term, Value};
use std::collections::{BTreeMap, BTreeSet};

/// With room for so many records, or for half of what a table holds, it is not short of room any more.
const ROOM: usize = 512;
/// The most mappings that a packet is taken to make where it is not known better: all rewriters that share a budget may
/// be in its way.
const MOST_MADE: usize = 64;

/// Where packets that enter by one input of a program may make records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Maker {
    input: usize,
    table: usize,
    /// The first argument of the creation, if it is the same for all packets.
    by: Option<u64>,
}

/// The tables in which a program makes records.
pub(crate) struct Makers {
    tables: Vec<usize>,
    all: Vec<Maker>,
    /// Those among them whose new records may end another one although there is room.
    ending: Vec<Maker>,
    /// For how many packets they have room for sure.
    room_for: usize,
}

impl Makers {
    /// Those of a program.
    pub fn of(program: &Program) -> Makers {
        let (inputs, constants) = (program.entries.iter().enumerate(), constants(program));
        let all: BTreeSet<Maker> =
            inputs.flat_map(|(input, entry)| makers_behind(program, &constants, input, *entry)).collect();
        let tables: BTreeSet<usize> = all.iter().map(|maker| maker.table).collect();
        Makers {
            tables: tables.into_iter().collect(),
            all: all.into_iter().collect(),
            ending: vec![],
            room_for: 0,
        }
    }

    /// Whether a program makes records. Asked often.
    pub fn are_in(program: &Program) -> bool {
        program.blocks.iter().any(|block| matches!(block.term, Term::Lookup { args: Some(_), .. }))
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
        let may_end = |maker: &&Maker| {
            tables.table(maker.table).is_some_and(|it| it.may_end_others(maker.by).is_some())
        };
        self.ending.clear();
        self.ending.extend(self.all.iter().filter(may_end));
        left < packets
    }

    /// Whether a new record of a packet that enters by this input may end another one now although there is room.
    pub fn may_end_others(&self, tables: &mut dyn Tables, input: usize) -> bool {
        self.ending.iter().filter(|maker| maker.input == input).any(|maker| {
            tables.table(maker.table).is_none_or(|table| table.may_end_others(maker.by) == Some(true))
        })
    }

    /// Whether a record by which a packet asked these tables, each with the first argument of its creation, may end
    /// another one.
    pub fn may_end(&self, asked: &[(u16, Option<u64>)]) -> bool {
        let is_same = |maker: &Maker, table: u16, by: Option<u64>| {
            maker.table == usize::from(table) && (by.is_none() || maker.by.is_none() || maker.by == by)
        };
        asked.iter().any(|(table, by)| self.ending.iter().any(|maker| is_same(maker, *table, *by)))
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

/// Where packets that enter a program at a block may make records.
fn makers_behind(
    program: &Program,
    constants: &BTreeMap<Value, u64>,
    input: usize,
    entry: BlockId,
) -> Vec<Maker> {
    let mut is_reached = vec![false; program.blocks.len()];
    let (mut open, mut makers) = (vec![entry], vec![]);
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut is_reached[at.index()], true) {
            continue;
        }
        let term = &program.block(at).term;
        if let Term::Lookup { table, args: Some(args), .. } = term {
            let by = args.first().and_then(|first| constants.get(first).copied());
            makers.push(Maker { input, table: usize::from(*table), by });
        }
        open.extend(term.successors());
    }
    makers
}

/// The values that are always the same number.
fn constants(program: &Program) -> BTreeMap<Value, u64> {
    let insts = program.blocks.iter().flat_map(|block| &block.insts);
    let constants = insts.filter_map(|(yields, inst)| match (yields, inst) {
        (Some(value), Inst::Const(number)) => Some((*value, *number)),
        _ => None,
    });
    constants.collect()
}
