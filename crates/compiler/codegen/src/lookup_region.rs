//! Cutting a program into regions at its lookups.
//!
//! A region is the code of one native function: its *head* block and every block reached from there without
//! passing a stage boundary ([`Term::is_barrier`]). Blocks that two heads reach are in both regions. A value
//! that is defined before a boundary and used after it is *carried*: stored in a lane at the boundary, read
//! at the head. Where lookups share a boundary, what is behind it is one region with a head for each of them: the
//! packets go on in the order in which they came, and a lane has the number of the lookup at which each waited.

use ir::analysis::live::live_in;
use ir::analysis::stages::stages;
use ir::program::{BlockId, Matching, Program, Term, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Where packets enter a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The block that it starts with.
    pub block: BlockId,
    /// The record value that the boundary before it defines, if it is the `hit` side of one.
    pub record: Option<Value>,
    /// Values that are read there from the carry lanes.
    pub carried: BTreeSet<Value>,
}

/// One region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookupRegion {
    /// Where packets enter it: at one block, or, behind lookups that share a boundary, one for each of them.
    pub heads: Vec<Head>,
    /// All its blocks in topological order.
    pub blocks: Vec<BlockId>,
    /// Exit lists that it appends to by a constant number.
    pub lists: BTreeSet<usize>,
    /// The list of the packets that are on none of its other lists, if there is one: the function does not
    /// write it. Its caller knows the packets that the function processed and their other lists, and most of
    /// the time there are no others.
    pub main_list: Option<usize>,
}

impl LookupRegion {
    /// Where packets enter it behind one of the lookups before it, by its number in the boundary.
    pub fn head(&self, member: usize) -> &Head {
        self.heads.get(member).unwrap_or(&self.heads[0])
    }

    /// Whether it reads anything from the carry lanes.
    pub fn carries(&self) -> bool {
        self.heads.len() > 1 || self.heads.iter().any(|head| !head.carried.is_empty())
    }
}

/// A stage boundary: lookups that are done between two stages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The blocks that end with its lookups.
    pub blocks: Vec<BlockId>,
    /// The table.
    pub table: usize,
    /// Words of the key.
    pub key_words: usize,
    /// Number of arguments after the key in the lane; only those that create records have some.
    pub args: usize,
    /// Whether it creates records.
    pub creates: bool,
    /// Whether packets can be held in front of its lookups ([`crate::pass_in_order`]): they carry no record of an
    /// earlier lookup, which may be gone when they go on.
    pub can_hold: bool,
    /// The later boundaries that create records, and at which packets may wait when its lookups are done, if none was
    /// held.
    pub rivals: Vec<usize>,
    /// The region that continues if there is a record.
    pub hit: usize,
    /// The region that continues if there is none.
    pub miss: usize,
}

/// A program's regions and stage boundaries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionPlan {
    /// Whether machine code walks prefix tables itself: lookups there are then no boundaries.
    pub walked: bool,
    /// The number of the first table that is a union ([`crate::lookup_row`]); the number of all tables where
    /// none is.
    pub first_union: usize,
    /// The regions.
    pub regions: Vec<LookupRegion>,
    /// The region of each input port.
    pub entries: Vec<usize>,
    /// The stage boundaries, each after all that may lead to it.
    pub sites: Vec<Site>,
    /// The boundary at the end of a block, and the number of the block's lookup there.
    site_at: BTreeMap<BlockId, (usize, usize)>,
    /// Carry lane of each carried value.
    pub carry_slots: BTreeMap<Value, usize>,
    /// Words of a packet's key lane.
    pub key_stride: usize,
    /// Exit lists: ports, reasons, slow paths, stage boundaries, in this order.
    pub lists: ListLayout,
    /// The lists of ports, slow paths and stage boundaries to which several calls of regions append: only those may be
    /// in another order than that of the packets.
    pub joined: BTreeSet<usize>,
    /// Which cells the program writes.
    pub written_cells: Vec<bool>,
}

/// The number of exit lists of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListLayout {
    /// Output ports.
    pub outputs: usize,
    /// Drop reasons.
    pub reasons: usize,
    /// Slow paths.
    pub slow: usize,
    /// Stage boundaries.
    pub sites: usize,
}

impl RegionPlan {
    /// The boundary at the end of a block, and the number of the block's lookup there.
    pub fn site_of(&self, block: BlockId) -> Option<(usize, usize)> {
        self.site_at.get(&block).copied()
    }

    /// Words of a packet's carry lane.
    pub fn carry_words(&self) -> usize {
        self.carry_slots.len() + usize::from(self.regions.iter().any(|region| region.heads.len() > 1))
    }
}

impl ListLayout {
    /// Number of the list of a drop reason.
    pub fn reason(&self, reason: u16) -> usize {
        self.outputs + usize::from(reason)
    }

    /// Number of the list of a slow path.
    pub fn slow(&self, slow: u16) -> usize {
        self.outputs + self.reasons + usize::from(slow)
    }

    /// Number of the list of a stage boundary.
    pub fn site(&self, site: usize) -> usize {
        self.outputs + self.reasons + self.slow + site
    }

    /// Whether many packets may be added to a list: drops and slow paths are rare.
    pub fn is_often(&self, list: usize) -> bool {
        list < self.outputs || list >= self.site(0)
    }

    /// Lists of slow paths and stage boundaries.
    pub fn others(&self) -> usize {
        self.slow + self.sites
    }
}

/// Whether a program has tables that machine code could walk itself.
pub fn has_walkable_tables(program: &Program) -> bool {
    program.tables.iter().any(|table| table.matching == Matching::Prefixes4)
}

/// The block where packets enter a region, and the record that is defined there.
type Start = (BlockId, Option<Value>);

/// Cuts a verified program; with `walked`, not at lookups by prefix.
pub fn plan(program: &Program, walked: bool) -> RegionPlan {
    let order = program.topological_order();
    let mut heads: Vec<Vec<Start>> = vec![];
    let mut index_of = |mut these: Vec<Start>| {
        if these.iter().all(|head| *head == these[0]) {
            these.truncate(1);
        }
        heads.iter().position(|known| *known == these).unwrap_or_else(|| {
            heads.push(these);
            heads.len() - 1
        })
    };
    let entries: Vec<usize> = program.entries.iter().map(|entry| index_of(vec![(*entry, None)])).collect();
    let (mut sites, mut site_at) = (vec![], BTreeMap::new());
    // A verified program has an order of its stages.
    for blocks in stages(program, &order).unwrap_or_default() {
        let term = &program.block(blocks[0]).term;
        let Term::Lookup { table, key, args, .. } = term else { continue };
        if program.is_barrier(term, walked) {
            site_at.extend(blocks.iter().zip(0..).map(|(block, member)| (*block, (sites.len(), member))));
            let (hits, misses) =
                blocks.iter().filter_map(|block| outcomes(&program.block(*block).term)).unzip();
            sites.push(Site {
                table: usize::from(*table),
                key_words: key.len(),
                args: args.as_ref().map_or(0, Vec::len),
                creates: args.is_some(),
                can_hold: false,
                rivals: vec![],
                hit: index_of(hits),
                miss: index_of(misses),
                blocks,
            });
        }
    }
    let live = live_in(program, &order);
    let head = |&(block, record): &Start| Head {
        block,
        record,
        carried: live[block.index()].iter().copied().filter(|value| Some(*value) != record).collect(),
    };
    let mut regions: Vec<LookupRegion> = heads
        .iter()
        .map(|heads| LookupRegion {
            heads: heads.iter().map(head).collect(),
            blocks: reached(program, walked, &order, heads),
            lists: BTreeSet::new(),
            main_list: None,
        })
        .collect();
    let records: BTreeSet<Value> = order
        .iter()
        .filter_map(|block| match &program.block(*block).term {
            Term::Lookup { rec, .. } => Some(*rec),
            _ => None,
        })
        .collect();
    for site in &mut sites {
        let mut heads = [site.hit, site.miss].into_iter().flat_map(|region| &regions[region].heads);
        site.can_hold = heads.all(|head| head.carried.is_disjoint(&records));
    }
    let heads = regions.iter().flat_map(|region| &region.heads);
    let carried: BTreeSet<Value> = heads.flat_map(|head| head.carried.iter().copied()).collect();
    let lists = ListLayout {
        outputs: usize::from(program.outputs),
        reasons: program.reasons.len(),
        slow: program.slow.len(),
        sites: sites.len(),
    };
    let mut appended: BTreeMap<usize, usize> = BTreeMap::new();
    // For each boundary: how many of them are done when packets may first wait there.
    let mut first_waiting = vec![usize::MAX; sites.len()];
    for (number, region) in regions.iter_mut().enumerate() {
        let all = find_lists(program, walked, &lists, &site_at, region);
        // Packets enter by one input at a time.
        let behind = sites.iter().flat_map(|site| [site.hit, site.miss]).filter(|at| *at == number).count();
        let calls = behind + usize::from(entries.contains(&number));
        // How many boundaries are behind the first call.
        let called = sites.iter().position(|site| site.hit == number || site.miss == number);
        let first_call = if entries.contains(&number) { Some(0) } else { called.map(|site| site + 1) };
        for list in all {
            *appended.entry(list).or_default() += calls;
            if let (Some(site), Some(first)) = (list.checked_sub(lists.site(0)), first_call)
                && site < sites.len()
            {
                first_waiting[site] = first_waiting[site].min(first);
            }
        }
    }
    for number in 0..sites.len() {
        let later = number + 1..sites.len();
        sites[number].rivals =
            later.filter(|at| sites[*at].creates && first_waiting[*at] <= number).collect();
    }
    let goes_on = |list: &usize| *list < lists.outputs || *list >= lists.slow(0);
    let joined = appended.iter().filter(|(_, calls)| **calls > 1).map(|(list, _)| *list).filter(goes_on);
    let joined = joined.collect();
    RegionPlan {
        walked,
        first_union: program.tables.len(),
        carry_slots: carried.into_iter().enumerate().map(|(slot, value)| (value, slot)).collect(),
        key_stride: sites.iter().map(|site| site.key_words + site.args).max().unwrap_or(1),
        regions,
        entries,
        sites,
        site_at,
        lists,
        joined,
        written_cells: program.written_cells(),
    }
}

/// Where packets go on behind a lookup: those with a record, and those without.
fn outcomes(term: &Term) -> Option<(Start, Start)> {
    match term {
        Term::Lookup { rec, hit, miss, .. } => Some(((*hit, Some(*rec)), (*miss, None))),
        _ => None,
    }
}

/// Blocks of the region that starts at some heads, in topological order.
fn reached(program: &Program, walked: bool, order: &[BlockId], heads: &[Start]) -> Vec<BlockId> {
    let mut todo: Vec<BlockId> = heads.iter().map(|(block, _)| *block).collect();
    let mut inside: BTreeSet<BlockId> = todo.iter().copied().collect();
    while let Some(block) = todo.pop() {
        let term = &program.block(block).term;
        if !program.is_barrier(term, walked) {
            todo.extend(term.successors().into_iter().filter(|to| inside.insert(*to)));
        }
    }
    order.iter().copied().filter(|block| inside.contains(block)).collect()
}

/// Derives the exit lists that a region appends to. Returns all to which its packets may be added.
fn find_lists(
    program: &Program,
    walked: bool,
    layout: &ListLayout,
    site_at: &BTreeMap<BlockId, (usize, usize)>,
    region: &mut LookupRegion,
) -> BTreeSet<usize> {
    let mut dynamic = false;
    for &block in &region.blocks {
        let list = match &program.block(block).term {
            Term::Emit(port) => Some(usize::from(*port)),
            Term::Drop(reason) => Some(layout.reason(*reason)),
            Term::Slow(slow) => Some(layout.slow(*slow)),
            Term::EmitTo(..) if program.outputs == 1 => Some(0),
            Term::EmitTo(..) => {
                dynamic = true;
                None
            }
            term if program.is_barrier(term, walked) => site_at.get(&block).map(|(at, _)| layout.site(*at)),
            _ => None,
        };
        region.lists.extend(list);
    }
    let ports = if dynamic { 0..layout.outputs } else { 0..0 };
    let all = region.lists.iter().copied().chain(ports).collect();
    if dynamic {
        // Ports are appended to by a run-time number there: their counts stay in memory.
        region.lists.retain(|list| *list >= layout.outputs);
    } else {
        // If packets can leave by several common lists, all lists are written.
        let mut often = region.lists.iter().copied().filter(|list| layout.is_often(*list));
        region.main_list = match (often.next(), often.next()) {
            (Some(only), None) => Some(only),
            (None, _) if region.lists.len() == 1 => region.lists.first().copied(),
            _ => None,
        };
    }
    all
}
