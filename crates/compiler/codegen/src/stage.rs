//! Running a program over a batch: regions as machine code, lookups in between.
//!
//! [`run`] upholds the conditions that machine code relies on: the indices in the list are below the vector's length,
//! every packet is live, lists and lanes have room for a whole vector, there are as many cells as the program
//! declares, and the keys and records of each table have the sizes that the program declares. The
//! implementation of [`ir::Table`] is responsible for the addresses of records.
#![expect(unsafe_code, reason = "calls machine code")]

use crate::abi::Context;
use crate::code::{CodeBuilder, CodegenError, Compiled, ProgramForms, Signature, United};
use crate::lookup_region::{ListLayout, LookupRegion, RegionPlan, Site};
use crate::lookup_row::LookupRow;
use ir::eval::{self, Buffer, EvalState, Exit};
use ir::program::{Matching, TableDecl};
use ir::table::PrefixWalk;
use ir::{Created, FoundEarlier, Program, Table, Verified};
use packet::access::Access;
use shm::burst::{Burst, Exits, LIST_CAPACITY};
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::descriptor::Packet;
use std::sync::Arc;

/// A program, and the way it is executed.
#[derive(Clone)]
pub enum Engine {
    /// As machine code.
    Native(Compiled),
    /// By the reference evaluator.
    Evaluator(Arc<Verified>),
}

impl Engine {
    /// Machine code of a program that is compiled alone.
    ///
    /// # Errors
    ///
    /// As [`CodeBuilder::add`] and [`CodeBuilder::finish`].
    pub fn native(program: &Arc<Verified>) -> Result<Engine, CodegenError> {
        let mut builder = CodeBuilder::new()?;
        let id = builder.add(program)?;
        Ok(Engine::Native(builder.finish()?.compiled(id)))
    }

    /// [`Engine::native`], with the same program that has a fast path
    /// ([`CodeBuilder::add_with_fast_path`]).
    ///
    /// # Errors
    ///
    /// As [`CodeBuilder::add_with_fast_path`] and [`CodeBuilder::finish`].
    pub fn native_with_fast_path(program: &Arc<Verified>, fast: &Verified) -> Result<Engine, CodegenError> {
        let mut builder = CodeBuilder::new()?;
        let id = builder.add_with_fast_path(program, fast)?;
        Ok(Engine::Native(builder.finish()?.compiled(id)))
    }

    /// The rows of lookups for which it asks for unions ([`ir::Tables::union`]), in their order.
    pub fn rows(&self) -> &[LookupRow] {
        match self {
            Engine::Native(compiled) => compiled.rows(),
            Engine::Evaluator(_) => &[],
        }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Verified> {
        match self {
            Engine::Native(compiled) => compiled.program(),
            Engine::Evaluator(program) => program,
        }
    }
}

/// Lanes between stages; one for each worker, reused by all its programs.
#[derive(Debug, Default)]
pub struct Scratch {
    keys: Vec<u64>,
    records: Vec<u64>,
    carry: Vec<u64>,
    hits: Vec<u16>,
    misses: Vec<u16>,
    walks: Vec<PrefixWalk>,
    held: HeldPackets,
}

/// Packets that wait at a program's lookups, because others that arrived before them have to do something
/// outside the program first.
#[derive(Debug, Default)]
struct HeldPackets {
    /// The stage boundary and the index of each packet.
    packets: Vec<(usize, u16)>,
    /// Those that go on; kept for its allocation.
    going: Vec<(usize, u16)>,
    /// The form that runs. The evaluator begins with them from the start, at this input.
    running: FormKind,
    input: usize,
}

/// A form of a program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum FormKind {
    /// With unions of tables.
    United,
    /// With walks of tables.
    Walked,
    /// By stages only.
    #[default]
    Staged,
}

impl Scratch {
    /// The first packet that waits in the middle of the program ([`pass_in_order`]).
    #[inline]
    pub fn first_held(&self) -> Option<u16> {
        self.held.packets.iter().map(|(_, index)| *index).min()
    }

    /// Takes out the packets that wait in the middle of the program.
    pub fn take_held(&mut self) -> impl Iterator<Item = u16> {
        self.held.packets.drain(..).map(|(_, index)| index)
    }

    /// Reads the addresses of the tables that machine code can walk itself. False if one is too large for
    /// that now, or a union is missing; tables from `first_union` on are unions.
    fn find_walks(&mut self, program: &Program, first_union: usize, state: &mut EvalState<'_>) -> bool {
        self.walks.clear();
        for (number, decl) in program.tables.iter().enumerate() {
            let walk = match decl.matching {
                Matching::Unknown => PrefixWalk::default(),
                Matching::Prefixes4 => {
                    let found = match number.checked_sub(first_union) {
                        Some(row) => state.tables.union(row),
                        None => state.tables.table(number).map(|table| &*table),
                    };
                    let Some(table) = found else { return false };
                    let Some(walk) = table.walk() else { return false };
                    check_table(decl, table);
                    walk
                }
            };
            self.walks.push(walk);
        }
        true
    }

    fn make_room(&mut self, key_stride: usize, carry_stride: usize) {
        let grow = |lane: &mut Vec<u64>, words: usize| {
            if lane.len() < words {
                lane.resize(words, 0);
            }
        };
        grow(&mut self.keys, key_stride * LIST_CAPACITY);
        grow(&mut self.carry, carry_stride.max(1) * LIST_CAPACITY);
        grow(&mut self.records, LIST_CAPACITY);
    }
}

/// The packets outside of a program that have to reach its tables before packets behind them.
#[derive(Clone, Copy, Debug)]
pub struct Precedence<'a> {
    /// The first packet that waits elsewhere and can still reach a table; [`u16::MAX`] for none.
    pub first: u16,
    /// The output ports whose packets can come back to a table.
    pub outputs: &'a [u16],
}

impl Precedence<'_> {
    /// No such packets.
    pub const NONE: Precedence<'static> = Precedence { first: u16::MAX, outputs: &[] };

    /// The first of them, of those that have left so far.
    fn first(self, exits: &Exits) -> u16 {
        let left = self.outputs.iter().flat_map(|output| exits.output(usize::from(*output)));
        left.copied().fold(self.first, u16::min)
    }
}

/// Runs a program on a burst, and sorts its packets into `exits` (ports, reasons, then slow paths).
///
/// # Panics
/// When an index in the list is outside the vector, the vector is longer than [`LIST_CAPACITY`], there are
/// fewer cells than the program declares, or a table has keys or records of another size.
pub fn run(
    engine: &Engine,
    burst: Burst<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) {
    let list = burst.list;
    if let Some(port) = pass(engine, burst, state, scratch, exits) {
        exits.extend(port, list);
    }
}

/// The same for callers that can use the list as it is: if all packets leave by one port, as they mostly do,
/// the port is returned and no list is written.
///
/// # Panics
/// As [`run`].
#[inline]
pub fn pass(
    engine: &Engine,
    burst: Burst<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) -> Option<usize> {
    pass_with::<false>(engine, burst, Precedence::NONE, state, scratch, exits)
}

/// The same for callers that run slow paths, which may change tables, in the order in which packets arrived:
/// packets that look up behind one that leaves by a slow path, or that takes precedence, are held
/// ([`Scratch::first_held`]) until [`resume`] is called with the same scratch.
///
/// # Panics
/// As [`run`].
#[inline]
pub fn pass_in_order(
    engine: &Engine,
    burst: Burst<'_>,
    precedence: Precedence<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) -> Option<usize> {
    pass_with::<true>(engine, burst, precedence, state, scratch, exits)
}

#[inline(always)]
fn pass_with<const HOLDS: bool>(
    engine: &Engine,
    burst: Burst<'_>,
    precedence: Precedence<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) -> Option<usize> {
    assert!(burst.packets.len() <= LIST_CAPACITY && burst.list.len() <= LIST_CAPACITY);
    match engine {
        Engine::Native(compiled) => native::<HOLDS>(compiled, burst, precedence, state, scratch, exits),
        Engine::Evaluator(program) => {
            evaluate::<HOLDS>(program, burst, precedence, state, scratch, exits);
            None
        }
    }
}

fn native<const HOLDS: bool>(
    compiled: &Compiled,
    burst: Burst<'_>,
    precedence: Precedence<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) -> Option<usize> {
    let Burst { input, packets, list } = burst;
    let forms = compiled.program_forms();
    assert!(scratch.held.packets.is_empty(), "lanes of packets that are held");
    // Its forms have the same cells and exits.
    if state.cells.len() < forms.program.cells.len() {
        too_few_cells(&forms.program, state.cells.len());
    }
    let (form, program, signature) = choose(forms, state, scratch);
    let Signature { plan, regions } = signature;
    exits.reset(plan.lists.outputs, plan.lists.reasons, plan.lists.others());
    scratch.make_room(plan.key_stride, plan.carry_words());
    let mut context = context_of(packets, state, scratch, exits);
    // No index is larger than the union of their bits, which is computed quickly.
    let bits = list.iter().fold(0, |bits, index| bits | index);
    if usize::from(bits) >= packets.len() {
        check_indices(list, packets.len());
    }
    let region = regions[plan.entries[input]];
    // The program was verified: it accesses only bytes, cells and records that exist.
    // SAFETY: the list names packets of the vector (asserted), which are live (the caller's); lists and lanes
    // have room for `LIST_CAPACITY` packets (`make_room`), cells are those that the program declares
    // (asserted), and records are where `ir::Table` promises, as far apart as declared (`check_table`).
    unsafe { region(&raw mut context, list.as_ptr(), list.len() as u64) };
    let entry = &plan.regions[plan.entries[input]];
    match entry.main_list {
        Some(port) if port < plan.lists.outputs && !exits.has_exceptions(plan.lists.slow) => {
            return Some(port);
        }
        _ => {}
    }
    let has_exceptions = hand_on(&plan.lists, entry, list, exits);
    scratch.held.running = form;
    let program = (program, signature);
    let so_far = SoFar { is_resumed: false, has_exceptions, precedence };
    // SAFETY: as above.
    unsafe { run_sites::<HOLDS>(program, &mut context, so_far, state, scratch, exits) };
    None
}

/// What machine code gets.
fn context_of(
    packets: &mut [Packet],
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) -> Context {
    let (lists, counts) = exits.raw();
    Context {
        packets: packets.as_mut_ptr(),
        cells: state.cells.as_mut_ptr(),
        lists,
        counts,
        keys: scratch.keys.as_mut_ptr(),
        records: scratch.records.as_mut_ptr(),
        carry: scratch.carry.as_mut_ptr(),
        walks: scratch.walks.as_ptr(),
        list_end: std::ptr::null(),
        now_ns: state.now_ns,
    }
}

/// What is known before the lookups of a program.
struct SoFar<'a> {
    /// Whether its packets were held.
    is_resumed: bool,
    /// Whether any packet is dropped or leaves by a slow path.
    has_exceptions: bool,
    precedence: Precedence<'a>,
}

/// Does the lookups of all stage boundaries at which packets wait, and runs what is behind them.
///
/// # Safety
/// The context is [`context_of`] these, and the indices on the boundaries' lists were written there by machine
/// code for a list that [`native`] checked, or are copies of them.
unsafe fn run_sites<const HOLDS: bool>(
    (program, signature): (&Program, &Signature),
    context: &mut Context,
    SoFar { is_resumed, mut has_exceptions, precedence }: SoFar<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) {
    let Signature { plan, regions } = signature;
    let mut has_looked_up = false;
    for (number, site) in plan.sites.iter().enumerate() {
        let pending = plan.lists.slow + number;
        if exits.other(pending).is_empty() {
            continue;
        }
        // Several regions may have listed packets, each its own in order. Tables see packets in the order of
        // their arrival, and so does what comes next.
        if is_resumed || plan.joined.contains(&plan.lists.site(number)) {
            exits.order(plan.lists.site(number));
        }
        has_looked_up = true;
        let decl = &program.tables[site.table];
        if HOLDS && site.can_hold {
            // Packets leave routes as they are.
            let first = match decl.matching {
                Matching::Prefixes4 => u16::MAX,
                Matching::Unknown => precedence.first(exits),
            };
            has_exceptions |= first < u16::MAX;
            if has_exceptions && hold(plan, number, first, scratch, exits) == 0 {
                continue;
            }
        }
        let may_wait = HOLDS && site.can_hold;
        let first_of_others = match may_wait && site.creates {
            true if is_resumed => {
                first_at_same_table(plan, number, number + 1..plan.sites.len(), state, exits)
            }
            true => first_at_same_table(plan, number, site.rivals.iter().copied(), state, exits),
            false => None,
        };
        let waiting = exits.other(pending);
        let order = Order { may_wait, first_of_others };
        let done = look_up((site, order), decl, plan.key_stride, waiting, state, scratch);
        if done < waiting.len() {
            scratch.held.packets.extend(waiting[done..].iter().map(|index| (number, *index)));
            has_exceptions = true;
        }
        exits.clear_other(pending);
        for (region, list) in [(site.hit, &scratch.hits), (site.miss, &scratch.misses)] {
            if !list.is_empty() {
                // SAFETY: as in `native`; the list is a part of one that machine code wrote from the first. The
                // records' lanes of its packets were written by a table of the declared sizes (`look_up`).
                unsafe { regions[region](&raw mut *context, list.as_ptr(), list.len() as u64) };
                has_exceptions |= hand_on(&plan.lists, &plan.regions[region], list, exits);
            }
        }
    }
    if has_looked_up {
        let last = if has_exceptions { plan.lists.site(0) } else { plan.lists.outputs };
        match is_resumed {
            true => exits.order_all(plan.lists.slow),
            false => plan.joined.range(..last).for_each(|list| exits.order(*list)),
        }
    }
}

/// Holds the packets of a stage boundary that arrived behind the packet `first`, or behind one that leaves by a slow
/// path or is held. Returns how many are left there.
#[cold]
fn hold(plan: &RegionPlan, site: usize, first: u16, scratch: &mut Scratch, exits: &mut Exits) -> usize {
    let pending = plan.lists.slow + site;
    let slow = (0..plan.lists.slow).flat_map(|path| exits.other(path));
    let first = slow.copied().chain(scratch.first_held()).fold(first, u16::min);
    let left = exits.other(pending).partition_point(|index| *index < first);
    scratch.held.packets.extend(exits.other(pending)[left..].iter().map(|index| (site, *index)));
    exits.truncate(plan.lists.site(site), left);
    left
}

/// Goes on with those of the packets that [`pass_in_order`] held whose index is below the `first` of the precedence.
/// `packets` is the vector of that call, and the engine and the input are the same. False, and nothing done, if a table has
/// changed so much meanwhile that the program cannot go on.
///
/// # Panics
/// As [`run`].
pub fn resume(
    engine: &Engine,
    packets: &mut [Packet],
    precedence: Precedence<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) -> bool {
    let end = precedence.first;
    let held = &mut scratch.held;
    let (running, input) = (held.running, held.input);
    let mut now = std::mem::take(&mut held.going);
    let goes_on = |(_, index): &(usize, u16)| *index < end && usize::from(*index) < packets.len();
    now.extend(held.packets.extract_if(.., |held| goes_on(held)));
    match engine {
        Engine::Native(compiled) => {
            let forms = compiled.program_forms();
            if state.cells.len() < forms.program.cells.len() {
                too_few_cells(&forms.program, state.cells.len());
            }
            let Some((program, signature)) = choose_again(forms, running, state, scratch) else {
                scratch.held.packets.append(&mut now);
                return false;
            };
            let lists = &signature.plan.lists;
            exits.reset(lists.outputs, lists.reasons, lists.others());
            now.iter().for_each(|(site, index)| exits.push(lists.site(*site), *index));
            let mut context = context_of(packets, state, scratch, exits);
            let so_far = SoFar { is_resumed: true, has_exceptions: false, precedence };
            // SAFETY: as in `native`. The indices are below the vector's length (above), and machine code listed
            // them for these boundaries. The lanes of these packets are as it left them, since no other program
            // runs with this scratch (asserted in `native`); they hold no addresses (`Site::can_hold`).
            unsafe { run_sites::<true>((program, signature), &mut context, so_far, state, scratch, exits) };
        }
        Engine::Evaluator(program) => {
            let mut list: Vec<u16> = now.iter().map(|(_, index)| *index).collect();
            list.sort_unstable();
            let burst = Burst { input, packets, list: &list };
            evaluate::<true>(program, burst, precedence, state, scratch, exits);
        }
    }
    now.clear();
    scratch.held.going = now;
    true
}

/// The form of a program that the present tables allow: with unions, walking tables itself, or by stages.
#[inline]
fn choose<'c>(
    forms: &'c ProgramForms,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
) -> (FormKind, &'c Program, &'c Signature) {
    for form in [FormKind::United, FormKind::Walked] {
        if let Some((program, signature)) = choose_again(forms, form, state, scratch) {
            return (form, program, signature);
        }
    }
    (FormKind::Staged, &forms.program, &forms.staged)
}

/// That form, if there is one and the present tables allow it.
#[inline]
fn choose_again<'c>(
    forms: &'c ProgramForms,
    form: FormKind,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
) -> Option<(&'c Program, &'c Signature)> {
    let (program, signature): (&Program, _) = match (form, &forms.united, &forms.walked) {
        (FormKind::United, Some(United { program, code, .. }), _) => (program, code),
        (FormKind::Walked, _, Some(walked)) => (&forms.program, walked),
        (FormKind::Staged, ..) => return Some((&forms.program, &forms.staged)),
        _ => return None,
    };
    scratch.find_walks(program, signature.plan.first_union, state).then_some((program, signature))
}

/// Compares a table with the program's declaration, once for each lookup of a batch. A walk steps from record
/// to record by the declared bytes, so that these must be exact and not only sufficient.
#[inline]
fn check_table(decl: &TableDecl, table: &dyn Table) {
    let declared = usize::from(decl.record_bytes);
    let fits = match (decl.matching, table.record_bytes()) {
        (Matching::Unknown, Some(bytes)) => bytes >= declared,
        (Matching::Prefixes4, Some(bytes)) => bytes.div_ceil(8) == declared.div_ceil(8),
        (_, None) => false,
    };
    if !fits || table.key_words() != usize::from(decl.key_words) {
        does_not_fit(decl, table);
    }
}

#[cold]
fn does_not_fit(decl: &TableDecl, table: &dyn Table) -> ! {
    let TableDecl { name, key_words, record_bytes, .. } = decl;
    let words = table.key_words();
    match table.record_bytes() {
        Some(bytes) => panic!(
            "table `{name}` has keys of {words} words and records of {bytes} bytes; the program declares {key_words} \
             and {record_bytes}"
        ),
        None => panic!("table `{name}` gives out no addresses: only the evaluator runs programs on it"),
    }
}

#[cold]
fn too_few_cells(program: &Program, cells: usize) -> ! {
    panic!("program `{}` has {} state cells and was given {cells}", program.name, program.cells.len());
}

#[cold]
fn check_indices(list: &[u16], packets: usize) {
    let highest = list.iter().copied().max();
    assert!(highest.is_none_or(|index| usize::from(index) < packets), "list names {highest:?} of {packets}");
}

/// Writes the list that the region's function leaves to its caller: the packets that it appended to no other
/// list.
///
/// Returns whether any packet is dropped or leaves by a slow path.
#[inline]
fn hand_on(layout: &ListLayout, region: &LookupRegion, list: &[u16], exits: &mut Exits) -> bool {
    let has_exceptions = exits.has_exceptions(layout.slow);
    match region.main_list {
        // Its other lists are drops and slow paths, by the choice of the main list.
        Some(main) if !has_exceptions => exits.extend(main, list),
        Some(main) => hand_on_rest(region, main, list, exits),
        None => {}
    }
    has_exceptions || region.main_list.is_some_and(|main| main >= layout.outputs && main < layout.site(0))
}

#[cold]
fn hand_on_rest(region: &LookupRegion, main: usize, list: &[u16], exits: &mut Exits) {
    // Packets of other regions may be on those lists, too; they are not in this index list.
    let mut elsewhere = [false; LIST_CAPACITY];
    for other in region.lists.iter().copied().filter(|other| *other != main) {
        exits.list(other).iter().for_each(|index| elsewhere[usize::from(*index) % LIST_CAPACITY] = true);
    }
    for &index in list {
        if !elsewhere[usize::from(index) % LIST_CAPACITY] {
            exits.push(main, index);
        }
    }
}

/// What the packets of a stage boundary may have to wait for.
#[derive(Clone, Copy)]
struct Order {
    /// Whether they may wait for others.
    may_wait: bool,
    /// The first packet that waits at another boundary to make a record of the same table.
    first_of_others: Option<u16>,
}

/// The first packet that waits at one of the later stage boundaries `others` to make a record of the same table: several
/// inputs of an element may be in one program.
fn first_at_same_table(
    plan: &RegionPlan,
    number: usize,
    others: impl Iterator<Item = usize>,
    state: &mut EvalState<'_>,
    exits: &Exits,
) -> Option<u16> {
    let mut address =
        |site: &Site| state.tables.table(site.table).map(|table| (&raw const *table).cast::<u8>());
    let mut own = None;
    let mut first = None;
    for (later, site) in others.map(|later| (later, &plan.sites[later])).filter(|(_, site)| site.creates) {
        let Some(index) = exits.other(plan.lists.slow + later).iter().min() else { continue };
        let own = *own.get_or_insert_with(|| address(&plan.sites[number]));
        if address(site) == own {
            first = first.into_iter().chain([*index]).min();
        }
    }
    first
}

/// Does the lookups of one stage boundary for the packets that wait there. Returns how many are done: all, or those up
/// to one for which the table has to wait until the earlier ones have passed ([`Created::Wait`]). That one is done
/// alone, and what is behind it looks up again.
fn look_up(
    (site, order): (&Site, Order),
    decl: &TableDecl,
    stride: usize,
    pending: &[u16],
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
) -> usize {
    let Some(table) = state.tables.table(site.table) else {
        panic!(
            "table {} of a program is not there: its element lowers to more tables than it has",
            site.table
        );
    };
    check_table(decl, table);
    let Scratch { keys, records, hits, misses, .. } = scratch;
    hits.clear();
    misses.clear();
    table.lookup_batch(keys, stride, pending, records);
    let missed = pending.iter().filter(|index| records[usize::from(**index)] == 0).count();
    // A record that a packet makes at another boundary may end one that is found here.
    let may_end = || table.room().is_some_and(|room| room.ends_others || room.left < LIST_CAPACITY);
    if missed == 0 && !(order.first_of_others.is_some() && may_end()) {
        hits.extend_from_slice(pending);
        return pending.len();
    }
    let pending = match order.first_of_others {
        Some(first) => &pending[..pending.partition_point(|index| *index < first)],
        None => pending,
    };
    for (at, &index) in pending.iter().enumerate() {
        let lane = usize::from(index);
        if site.creates && records[lane] == 0 {
            let words = &keys[lane * stride..lane * stride + site.key_words + site.args];
            let (key, args) = words.split_at(site.key_words);
            // An earlier packet of the burst may have created the record since: `create` finds it.
            let earlier = FoundEarlier { list: &pending[..at], records, may_wait: order.may_wait };
            match table.create_behind(key, args, state.now_ns, earlier) {
                Created::Record(record) => {
                    records[lane] = record;
                    if let Some(replaced) = table.take_replaced() {
                        forget(replaced, &pending[at + 1..], records);
                    }
                }
                Created::Refused => {}
                Created::Wait if at > 0 => return at,
                Created::Wait => {
                    if let Created::Record(record) = table.create(key, args, state.now_ns) {
                        hits.push(index);
                        records[lane] = record;
                    } else {
                        misses.push(index);
                    }
                    return 1;
                }
            }
        }
        if records[lane] != 0 { hits.push(index) } else { misses.push(index) }
    }
    pending.len()
}

/// Takes records that are gone from the packets that have found them.
fn forget(gone: [u64; 2], list: &[u16], records: &mut [u64]) {
    for &index in list {
        let record = &mut records[usize::from(index)];
        if gone.contains(record) {
            *record = 0;
        }
    }
}

/// A packet's bytes for the evaluator.
pub struct SlotBuffer(pub Packet);

impl SlotBuffer {
    /// The whole buffer of the first segment, as a packet of its own.
    fn whole(&self) -> Packet {
        self.0.whole_buffer()
    }
}

impl Buffer for SlotBuffer {
    fn read(&self, at: usize, out: &mut [u8]) -> bool {
        PacketBytes::new(&self.whole()).copy_out(at, out)
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        PacketBytesMut::new(&mut self.whole()).copy_in(at, bytes)
    }

    fn read_packet(&self, packet: &Packet, at: usize, out: &mut [u8]) -> bool {
        PacketBytes::new(packet).copy_out(at, out)
    }
}

fn evaluate<const HOLDS: bool>(
    program: &Program,
    burst: Burst<'_>,
    precedence: Precedence<'_>,
    state: &mut EvalState<'_>,
    scratch: &mut Scratch,
    exits: &mut Exits,
) {
    let Burst { input, packets, list } = burst;
    exits.reset(usize::from(program.outputs), program.reasons.len(), program.slow.len());
    let (outputs, reasons) = (exits.outputs(), exits.reasons());
    // Without tables, the order in which packets run is of no meaning.
    let holds = HOLDS && !program.tables.is_empty();
    let mut first = precedence.first;
    for (at, &index) in list.iter().enumerate() {
        if holds && index > first {
            scratch.held.input = input;
            scratch.held.packets.extend(list[at..].iter().map(|index| (0, *index)));
            return;
        }
        let packet = &mut packets[usize::from(index)];
        let mut buffer = SlotBuffer(*packet);
        match eval::run(program, input, packet, &mut buffer, state) {
            Ok(Exit::Emit(port)) => {
                exits.push(usize::from(port), index);
                if precedence.outputs.contains(&port) {
                    first = first.min(index);
                }
            }
            Ok(Exit::Drop(reason)) => exits.push(outputs + usize::from(reason), index),
            Ok(Exit::Slow(slow)) => {
                exits.push(outputs + reasons + usize::from(slow), index);
                first = first.min(index);
            }
            Err(error) => panic!("{error}: the verifier should have refused the program"),
        }
    }
}
