//! Classes in the form that their own filters give them.
//!
//! The walk makes expressions with what is known when it meets them, and never puts a number in the place of a
//! value, so that paths which do the same become one class. Two programs that do the same may know the same at
//! different times. So two classes are compared in one form: all of what the filter says of the packet as it
//! arrived is known from the start, and a value of which that leaves one number is that number.
//!
//! The filter has the same packets as before. Conditions on the packet as it arrived stay, as narrow as all conditions
//! together make them, and the others are simplified with these. A condition by which a number of a record is one number
//! stays as well, and where other expressions have it as a part, that number takes its place.

mod arrived;
mod locations;
mod pinned;

use self::arrived::{Arrived, is_on_such, lengths};
use super::Class;
use super::expr::{Atom, BIAS, Id, Log, Node, Pool, RecWrite, TransportSum, Write};
use super::facts::Facts;
use super::fields::by_field;
use super::filter::{Factor, Filter};
use super::path_state::{PathState, StateLocation, read_record, write_record};
use super::simplify::Maker;
use super::writes::{by_word, read, write};
use ir::BinOp;
use ir::analysis::interval::IntervalSet;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Puts a class into that form. Its filter has the same packets, and for these its end is the same.
pub fn settle(pool: &mut Pool, class: &mut Class) {
    let Some(mut settler) = Settler::of(pool, &mut class.filter) else {
        // It says itself that no packet passes.
        return class.filter.0.push(Factor::Any([].into()));
    };
    class.filter = settler.filter(&class.filter);
    settler.end(&mut class.end);
}

/// The form that a filter gives to filters and ends of any classes, as they are for packets that pass it.
pub struct SettledForm<'p> {
    settler: Settler<'p>,
    own: Filter,
}

impl SettledForm<'_> {
    /// That of a filter; `None` if no packet passes it.
    pub fn of<'p>(pool: &'p mut Pool, filter: &Filter) -> Option<SettledForm<'p>> {
        let mut own = filter.clone();
        let mut settler = Settler::of_all(pool, &mut own, true)?;
        let own = settler.filter(&own);
        (!own.is_never()).then_some(SettledForm { settler, own })
    }

    /// The filter itself in that form.
    pub fn own(&self) -> &Filter {
        &self.own
    }

    /// Another filter: it loses what the own one says, and has no packet where that contradicts it.
    pub fn filter(&mut self, filter: &Filter) -> Filter {
        let around = self.settler.around.len();
        let settled = self.settler.filter(filter);
        // What it says, the next one does not.
        self.settler.around.truncate(around);
        settled
    }

    /// An end.
    pub fn end(&mut self, end: &PathState) -> PathState {
        self.settler.ended(end)
    }
}

/// Ends of two classes as they are for packets that are in both; `None` if their filters, in the form that they give
/// each other, say that there are none. With `thoroughly`, numbers of records that one filter says are known of those
/// records in the other filter, too: more work.
pub fn settled_for_both<'e>(
    pool: &mut Pool,
    [a, b]: [&Filter; 2],
    ends: impl IntoIterator<Item = &'e PathState>,
    thoroughly: bool,
) -> Option<Vec<PathState>> {
    let mut both = Filter(a.0.iter().chain(&b.0).cloned().collect());
    let mut settler = Settler::of_all(pool, &mut both, thoroughly)?;
    let mut filter = settler.filter(&both);
    if thoroughly {
        filter = filter.propagated()?;
    }
    if filter.is_never() || Facts::of(settler.pool, filter.required()).is_none() {
        return None;
    }
    Some(ends.into_iter().map(|end| settler.ended(end)).collect())
}

/// Alternatives are compared with those around them if they are so few.
const FEW: usize = 4;

/// Simplifies expressions of one class.
struct Settler<'a> {
    pool: &'a mut Pool,
    arrived: Arrived,
    /// What the filter says of the packet as it arrived.
    facts: Facts,
    /// Numbers of records that the filter says, by their expressions as they were.
    pinned: FxHashMap<Id, u64>,
    /// Those that are bits of a number, by that number: the lowest bit and how many.
    pinned_bits: FxHashMap<Id, BTreeMap<u8, (u8, u64)>>,
    /// What the filter says of sums of several terms.
    sums: FxHashMap<Id, IntervalSet>,
    /// Bits as they were, and where they are.
    places: FxHashMap<Id, Id>,
    /// Numbers of which it is known whether they are the smaller ones, so that bits are where they are.
    lengths: BTreeSet<Id>,
    /// Whether choices are put into a form, too. It depends on all that the filter says, so that only expressions that
    /// are put into the form of one filter have it in common.
    has_choices: bool,
    known: FxHashMap<Id, Id>,
    conditions: FxHashMap<(Id, IntervalSet), Id>,
    /// Alternatives that stand beside those that are looked at, or around them: each packet passes one of each.
    around: Vec<Vec<Vec<Factor>>>,
    logs: FxHashMap<Log, Log>,
}

impl Settler<'_> {
    /// For a filter, whose conditions on the packet as it arrived become as narrow as all of them together say;
    /// `None` if no packet passes it.
    fn of<'a>(pool: &'a mut Pool, filter: &mut Filter) -> Option<Settler<'a>> {
        filter.0.extend(lengths(pool, filter));
        // What they say of the packet's length may say where the bits are that they are about.
        if filter.0.iter().any(|factor| is_on_such(pool, factor)) {
            let mut settler = Settler::as_is(pool, filter)?;
            filter.0 = settler.moved_factors(&filter.0);
            // What says where they are stays, if only together with where they were.
            let Settler { pool, facts, lengths, .. } = &settler;
            filter.0.extend(lengths.iter().map(|id| Factor::Is(*id, facts.known(pool, *id))));
        }
        Settler::as_is(pool, filter)
    }

    /// The same, with a form that depends on all that the filter says. With `thoroughly`, what it says of records is known
    /// of them where they are found in another way, too.
    fn of_all<'a>(pool: &'a mut Pool, filter: &mut Filter, thoroughly: bool) -> Option<Settler<'a>> {
        let mut settler = Settler::of(pool, filter)?;
        settler.has_choices = true;
        let required = filter.required();
        settler.pin_sums(&required);
        settler.note_sums(&required);
        if thoroughly {
            settler.pin_settled(&required);
        }
        Some(settler)
    }

    fn as_is<'a>(pool: &'a mut Pool, filter: &mut Filter) -> Option<Settler<'a>> {
        let required = filter.required();
        let all = Facts::of(pool, required.clone())?;
        // First in the filter, so that a record is created for no packet of which others are made.
        let mut arrived = Arrived::default();
        filter.0.sort_by_cached_key(|factor| !matches!(factor, Factor::Is(id, _) if arrived.has(pool, *id)));
        let mut conditions = vec![];
        for factor in &mut filter.0 {
            if let Factor::Is(id, set) = factor
                && arrived.has(pool, *id)
            {
                *set = all.known(pool, *id);
                conditions.push((*id, set.clone()));
            }
        }
        let facts = Facts::of(pool, conditions)?;
        let mut settler = Settler {
            pool,
            arrived,
            facts,
            pinned: FxHashMap::default(),
            pinned_bits: FxHashMap::default(),
            sums: FxHashMap::default(),
            places: FxHashMap::default(),
            lengths: BTreeSet::new(),
            has_choices: false,
            known: FxHashMap::default(),
            conditions: FxHashMap::default(),
            around: vec![],
            logs: FxHashMap::default(),
        };
        for (id, set) in required {
            if let Some(number) = set.only() {
                settler.pin(id, number);
            }
        }
        Some(settler)
    }

    fn make(&mut self) -> Maker<'_> {
        Maker { pool: self.pool, facts: &self.facts }
    }

    /// An end in that form.
    fn ended(&mut self, end: &PathState) -> PathState {
        let mut end = end.clone();
        self.end(&mut end);
        end
    }

    fn end(&mut self, end: &mut PathState) {
        for id in [&mut end.data, &mut end.end, &mut end.rest, &mut end.packet_type] {
            *id = self.id(*id);
        }
        for place in &mut end.places {
            if let StateLocation::At(id) = place {
                *id = self.id(*id);
            }
        }
        end.cells.values_mut().for_each(|id| *id = self.id(*id));
        // A cell that keeps its number is not written.
        end.cells.retain(|cell, id| *self.pool.node(*id) != Node::Atom(Atom::Cell(*cell)));
        let is_moved = end.bytes.iter().any(|write| self.moved_bits(write.bits) != write.bits);
        end.bytes = self.writes(&end.bytes);
        if is_moved {
            // Where no header was known to be, they were cut elsewhere.
            end.bytes = by_field(&mut self.make(), &end.bytes);
        }
        end.annos = self.writes(&end.annos);
        end.records = self.rec_writes(&end.records);
        end.finds.iter_mut().for_each(|find| *find = self.found(*find));
    }

    /// The conditions of the filter itself.
    fn filter(&mut self, filter: &Filter) -> Filter {
        let mut settled = Filter::default();
        for factor in &filter.0 {
            match factor {
                Factor::Is(id, set) if self.arrived.has(self.pool, *id) => {
                    settled.add(self.known_place(*id), set);
                }
                Factor::Is(id, set) => match self.condition(*id, set, &mut settled) {
                    Some(()) => {}
                    // What is known says that no packet passes.
                    None if self.has_choices => return Filter(vec![Factor::Any([].into())]),
                    None => settled.add(*id, set),
                },
                Factor::Any(lists) => self.any(lists, &mut settled),
            }
        }
        settled
    }

    /// Adds alternatives, without those that no packet of the filter passes.
    fn any(&mut self, lists: &[Vec<Factor>], into: &mut Filter) {
        let lists: Vec<Vec<Factor>> = lists.iter().filter_map(|list| self.list(list)).collect();
        // All packets pass an alternative without conditions.
        if lists.iter().any(Vec::is_empty) || self.around.contains(&lists) {
            return;
        }
        if lists.len() <= FEW {
            self.around.push(lists.clone());
        }
        into.0.push(Factor::Any(lists.into()));
    }

    /// Bits of the packet as it arrived where the filter says that they are.
    fn known_place(&mut self, id: Id) -> Id {
        if self.has_choices { self.moved(id) } else { id }
    }

    /// The conditions of an alternative; `None` if no packet passes it.
    fn list(&mut self, factors: &[Factor]) -> Option<Vec<Factor>> {
        let around = self.around.len();
        let settled = self.conditions_of(factors);
        self.around.truncate(around);
        settled
    }

    fn conditions_of(&mut self, factors: &[Factor]) -> Option<Vec<Factor>> {
        let mut settled = Filter::default();
        for factor in factors {
            match factor {
                Factor::Is(id, set) if self.arrived.has(self.pool, *id) => {
                    let id = self.known_place(*id);
                    let known = self.facts.known(self.pool, id);
                    if !set.covers(&known) {
                        settled.add(id, &set.intersection(&known));
                    }
                }
                // The filter says that it is another number.
                Factor::Is(id, set) if self.pinned.get(id).is_some_and(|number| !set.contains(*number)) => {
                    return None;
                }
                Factor::Is(id, set) => self.condition(*id, set, &mut settled)?,
                Factor::Any(lists) => self.any(lists, &mut settled),
            }
        }
        (!settled.is_never()).then_some(settled.0)
    }

    /// Adds a condition on what is made of the packet, unless what is known says the same; `None` if that says that it
    /// does not hold.
    fn condition(&mut self, id: Id, set: &IntervalSet, into: &mut Filter) -> Option<()> {
        let holds = match self.conditions.get(&(id, set.clone())) {
            Some(known) => *known,
            None => {
                // A number does not take the place of what says it.
                let of = if self.pinned.contains_key(&id) { self.unpinned(id) } else { self.id(id) };
                let holds = self.is_in(of, set);
                self.conditions.insert((id, set.clone()), holds);
                holds
            }
        };
        match self.pool.node(holds) {
            Node::Const(1) => {}
            Node::Const(_) => return None,
            _ => self.truth(holds, into),
        }
        Some(())
    }

    /// Adds that a truth value is 1.
    fn truth(&mut self, holds: Id, into: &mut Filter) {
        // What other conditions say of its parts may decide it.
        let parts = self.pool.connective(holds).filter(|_| self.has_choices);
        match (parts, self.pool.node(holds)) {
            (Some((BinOp::And, a, b)), _) => [a, b].into_iter().for_each(|part| self.truth(part, into)),
            (Some((_, a, b)), _) => {
                let not = self.make().not(a);
                let lists = [vec![a], vec![not, b]].map(|parts| {
                    let mut list = Filter::default();
                    parts.into_iter().for_each(|part| self.truth(part, &mut list));
                    list.0
                });
                into.0.push(Factor::Any(lists.into()));
            }
            (None, Node::In(of, set)) => into.add(*of, &set.clone()),
            _ => into.add(holds, &IntervalSet::one(1)),
        }
    }

    /// An expression as this class has it.
    fn id(&mut self, id: Id) -> Id {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        if let Some(number) = self.pinned.get(&id) {
            return self.pool.number(*number);
        }
        let settled = match self.pool.node(id) {
            Node::Const(_) => id,
            Node::Atom(_) if self.arrived.has(self.pool, id) => {
                let moved = self.moved(id);
                let known = [id, moved].into_iter().find_map(|id| self.facts.known(self.pool, id).only());
                known.map_or(moved, |number| self.pool.number(number))
            }
            _ => self.with_pinned_bits(id),
        };
        self.known.insert(id, settled);
        settled
    }

    /// Parts of a number, those that are adjacent bits of another one as one: a program may have read both halves of
    /// what another one read at once.
    fn joined(&mut self, parts: &[(u8, Id)]) -> Vec<(u8, Id)> {
        let mut joined: Vec<(u8, Id)> = vec![];
        for &(low, part) in parts {
            let Some((before, last)) = joined.last_mut() else {
                joined.push((low, part));
                continue;
            };
            match (self.pool.node(*last), self.pool.node(part)) {
                (&Node::Slice(of, first, width), &Node::Slice(same, next, more))
                    if of == same && next == first + width && low == *before + width =>
                {
                    *last = self.make().slice(of, first, width + more);
                }
                _ => joined.push((low, part)),
            }
        }
        joined
    }

    fn again(&mut self, id: Id) -> Id {
        match self.pool.node(id).clone() {
            Node::Const(_) | Node::Atom(_) => id,
            Node::Cat(parts) => {
                let parts: Vec<(u8, Id)> = parts.iter().map(|(low, part)| (*low, self.id(*part))).collect();
                let parts = self.joined(&parts);
                self.make().cat(&parts)
            }
            Node::Slice(of, low, width) => {
                let of = self.id(of);
                self.make().slice(of, low, width)
            }
            Node::Sum(constant, terms) => {
                let mut sum = self.pool.number(constant);
                for (term, by) in terms {
                    let term = self.id(term);
                    sum = self.make().add(sum, term, by);
                }
                sum
            }
            Node::Fold(sum) => {
                let sum = self.id(sum);
                match self.pool.constant(sum) {
                    Some(number) => self.pool.number((number & 0xffff) + (number >> 16)),
                    None => self.pool.add(Node::Fold(sum)),
                }
            }
            Node::Bin(op, a, b) => {
                let (a, b) = (self.id(a), self.id(b));
                let bin = self.make().bin(op, a, b);
                self.as_difference(bin)
            }
            Node::In(of, set) => {
                let of = self.id(of);
                self.is_in(of, &set)
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.id(c), self.id(a), self.id(b));
                if self.has_choices { self.choice(c, a, b) } else { self.make().select(c, a, b) }
            }
            Node::Csum(sum, old, new, bits) => {
                let (sum, old, new) = (self.id(sum), self.id(old), self.id(new));
                self.make().checksum_update(sum, old, new, bits)
            }
            Node::IpSum(log, net, end) => {
                let (log, net, end) = (self.words(log), self.id(net), self.id(end));
                self.pool.add(Node::IpSum(log, net, end))
            }
            Node::TransportSum(sum) => {
                let TransportSum { log, net, trans, end, rest, proto } = *sum;
                let [net, trans, end, rest, proto] = [net, trans, end, rest, proto].map(|id| self.id(id));
                let log = self.words(log);
                let sum = TransportSum { log, net, trans, end, rest, proto };
                self.pool.add(Node::TransportSum(Box::new(sum)))
            }
            Node::Read(log, bits) => {
                let (log, bits) = (self.log(log), self.moved_bits(bits));
                self.make().read_after(log, bits)
            }
            Node::Found(_) => self.found(id),
            Node::Record(found) => {
                let found = self.found(found);
                self.pool.add(Node::Record(found))
            }
            Node::RecLoad(log, rec, offset, bytes) => {
                let rec = self.id(rec);
                let writes = self.pool.rec_writes(log).to_vec();
                // All are of its table.
                let table = writes.first().map_or(0, |write| write.table);
                let writes = self.rec_writes(&writes);
                read_record(self.pool, &writes, RecWrite { rec, table, offset, bytes, value: rec })
            }
        }
    }

    /// A choice; by one number once and not twice, where that gives one of the same two values.
    fn choice(&mut self, c: Id, a: Id, b: Id) -> Id {
        let (c, a, b) = self.by_lowest(c, a, b);
        let Node::In(of, set) = self.pool.node(c) else { return self.make().select(c, a, b) };
        let (of, set) = (*of, set.clone());
        let inner = |id: Id| match self.pool.node(id) {
            Node::Select(c, x, y) => match self.pool.node(*c) {
                Node::In(same, set) if *same == of => Some((set.clone(), *x, *y)),
                _ => None,
            },
            _ => None,
        };
        let not = |set: &IntervalSet| set.complement(u64::MAX);
        let (set, a, b) = match (inner(a), inner(b)) {
            (Some((some, x, y)), _) if y == b => (set.intersection(&some), x, b),
            (Some((some, x, y)), _) if x == b => (set.intersection(&not(&some)), y, b),
            (_, Some((some, x, y))) if x == a => (set.union(&some), a, y),
            (_, Some((some, x, y))) if y == a => (set.union(&not(&some)), a, x),
            _ => return self.make().select(c, a, b),
        };
        let c = self.is_in(of, &set);
        self.choice(c, a, b)
    }

    /// A choice by a number, so that its condition holds for the lowest one that the number may be: programs may ask
    /// either of two questions.
    fn by_lowest(&mut self, c: Id, a: Id, b: Id) -> (Id, Id, Id) {
        let Node::In(of, set) = self.pool.node(c) else { return (c, a, b) };
        let (of, all) = (*of, self.possible(*of));
        let is_first = all.min().is_none_or(|lowest| set.contains(lowest));
        let (set, a, b) = match is_first {
            true => (set.intersection(&all), a, b),
            false => (set.complement(u64::MAX).intersection(&all), b, a),
        };
        // What it is in any case decides.
        let c = if set == all { self.pool.number(1) } else { self.pool.add(Node::In(of, set)) };
        (c, a, b)
    }

    /// The numbers that an expression may be.
    fn possible(&self, of: Id) -> IntervalSet {
        let mut known = self.facts.known(self.pool, of);
        if let Some(said) = self.sums.get(&of) {
            known = known.intersection(said);
        }
        let Node::Sum(constant, terms) = self.pool.node(of) else { return known };
        match self.facts.small_sum_around(self.pool, *constant, terms) {
            Some((low, high)) => known.intersection(&IntervalSet::range(low as u64, high as u64)),
            None => known,
        }
    }

    /// Whether a number is in a set.
    fn is_in(&mut self, of: Id, set: &IntervalSet) -> Id {
        let holds = self.make().is_in(of, set);
        self.as_difference(holds)
    }

    /// A condition on a sum of several terms as one on the sum with [`BIAS`] whose first term is added, of the numbers
    /// that it may be.
    fn as_difference(&mut self, condition: Id) -> Id {
        let Node::In(of, set) = self.pool.node(condition) else { return condition };
        let Node::Sum(constant, terms) = self.pool.node(*of) else { return condition };
        let (mut terms, mut set) = (terms.clone(), set.shifted_down(constant.wrapping_sub(BIAS)));
        let [(_, first), _, ..] = *terms else { return condition };
        if (first as i64) < 0 {
            terms.iter_mut().for_each(|(_, by)| *by = by.wrapping_neg());
            set = set.negated().shifted_down(BIAS.wrapping_mul(2).wrapping_neg());
        }
        let range = self.facts.small_sum_around(self.pool, BIAS, &terms);
        let sum = self.pool.add(Node::Sum(BIAS, terms));
        if let Some((low, high)) = range {
            set = set.intersection(&IntervalSet::range(low as u64, high as u64));
        }
        self.pool.add(Node::In(sum, set))
    }

    /// Writes that a sum is made behind.
    fn words(&mut self, log: Log) -> Log {
        let settled = self.log(log);
        let writes = self.pool.writes(settled).to_vec();
        by_word(&mut self.make(), &writes)
    }

    fn log(&mut self, log: Log) -> Log {
        if let Some(known) = self.logs.get(&log) {
            return *known;
        }
        let writes = self.pool.writes(log).to_vec();
        let writes = self.writes(&writes);
        let settled = self.pool.log(&writes);
        self.logs.insert(log, settled);
        settled
    }

    /// Writes without those of what is there.
    fn writes(&mut self, writes: &[Write]) -> Vec<Write> {
        let mut settled = vec![];
        for Write { bits, value } in writes {
            let (bits, value) = (self.moved_bits(*bits), self.id(*value));
            let before = read(&mut self.make(), &settled, bits);
            if self.id(before) != value {
                write(&mut self.make(), &mut settled, Write { bits, value });
            }
        }
        settled
    }

    /// Writes to records without those of what is there.
    fn rec_writes(&mut self, writes: &[RecWrite]) -> Vec<RecWrite> {
        let mut settled = vec![];
        for write in writes {
            let write = RecWrite { rec: self.id(write.rec), value: self.id(write.value), ..*write };
            let before = read_record(self.pool, &settled, write);
            if self.id(before) != write.value {
                write_record(&mut settled, write);
            }
        }
        settled
    }

    /// A lookup with its key and arguments as this class has them.
    fn found(&mut self, id: Id) -> Id {
        let Node::Found(find) = self.pool.node(id) else { return id };
        let mut find = find.clone();
        find.key.iter_mut().chain(find.args.iter_mut().flatten()).for_each(|id| *id = self.id(*id));
        self.pool.add(Node::Found(find))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::expr::{Bits, NO_WRITES, Root};

    fn settled(pool: &mut Pool, filter: &Filter) -> Filter {
        let mut own = filter.clone();
        Settler::of(pool, &mut own).expect("packets pass").filter(&own)
    }

    /// Writes of what is there are left out, and not where another record's may have changed it.
    #[test]
    fn writes_of_what_is_there_are_left_out() {
        let mut pool = Pool::default();
        let [one, other, new] = [0, 1, 2].map(|cell| pool.atom(Atom::Cell(cell)));
        let write = |rec: Id, offset: u16, value: Id| RecWrite { rec, table: 0, offset, bytes: 8, value };
        let own = |pool: &mut Pool, rec: Id, offset: u16| pool.add(Node::RecLoad(NO_WRITES, rec, offset, 8));
        let (at_0, at_8) = (own(&mut pool, one, 0), own(&mut pool, one, 8));
        let writes = [write(one, 0, at_0), write(other, 8, new), write(one, 8, at_8)];
        let mut settler = Settler::of(&mut pool, &mut Filter::default()).expect("all packets");
        assert_eq!(settler.rec_writes(&writes), writes[1..]);
    }

    /// Where a packet has the bytes that are stripped, bits behind them have a place of which no length is a part; and that
    /// a header is left there says that it has them.
    #[test]
    fn bits_behind_what_is_stripped_have_a_place() {
        let mut pool = Pool::default();
        let (room, head) = (pool.atom(Atom::Room), pool.atom(Atom::Head));
        let fourteen = pool.number(14);
        let stripped = pool.add(Node::Bin(BinOp::Min, head.min(fourteen), head.max(fourteen)));
        let root = pool.add(Node::Sum(0, [(room, 1), (stripped, 1)].into()));
        let bits = |root: Id, bit: i32| Atom::Bits(Bits { root: Root::At(root), bit, width: 8 });
        let behind = pool.atom(bits(root, 72));
        let left = pool.add(Node::Sum(BIAS, [(head, 1), (stripped, u64::MAX)].into()));
        let is_tcp = Factor::Is(behind, IntervalSet::one(6));
        let header_left = Factor::Is(left, IntervalSet::range(BIAS + 20, BIAS + 2240));
        let filter = settled(&mut pool, &Filter(vec![is_tcp.clone(), header_left]));
        let there = pool.atom(bits(room, 72 + 14 * 8));
        let conditions = filter.required();
        assert_eq!(conditions.get(&there), Some(&IntervalSet::one(6)));
        assert_eq!(conditions.get(&head).and_then(IntervalSet::min), Some(34));
        // Of a packet that may be shorter nothing is known.
        let short = Filter(vec![is_tcp]);
        assert_eq!(settled(&mut pool, &short), short);
    }

    /// Choices by one number are one, by the question that holds for the lowest it may be.
    #[test]
    fn choices_by_one_number_are_one() {
        let mut pool = Pool::default();
        let [number, a, b] = [0, 1, 2].map(|cell| pool.atom(Atom::Cell(cell)));
        let within = Filter(vec![Factor::Is(number, IntervalSet::range(0, 9))]);
        let is_in = |pool: &mut Pool, low, high| pool.add(Node::In(number, IntervalSet::range(low, high)));
        let (low, high, some) = (is_in(&mut pool, 0, 4), is_in(&mut pool, 5, 9), is_in(&mut pool, 0, 7));
        let plain = pool.add(Node::Select(low, a, b));
        let turned = pool.add(Node::Select(high, b, a));
        let inner = pool.add(Node::Select(low, a, b));
        let twice = pool.add(Node::Select(some, inner, b));
        let mut settler = Settler::of(&mut pool, &mut within.clone()).expect("packets pass");
        settler.has_choices = true;
        assert_eq!([turned, twice].map(|id| settler.id(id)), [settler.id(plain); 2]);
    }

    /// A choice by a difference that the filter limits to what the choice asks for is none; a checksum that the filter says
    /// is one number is that number.
    #[test]
    fn what_both_filters_say_decides() {
        let mut pool = Pool::default();
        let [long, short, a, b] = [0, 1, 2, 3].map(|cell| pool.atom(Atom::Cell(cell)));
        let less = pool.add(Node::Sum(BIAS, [(long, 1), (short, u64::MAX)].into()));
        let asked = pool.add(Node::In(less, IntervalSet::range(BIAS + 5, BIAS + 17)));
        let choice = pool.add(Node::Select(asked, a, b));
        let sum = pool.add(Node::Csum(a, b, long, 16));
        let within = Filter(vec![
            Factor::Is(less, IntervalSet::range(BIAS + 8, BIAS + 17)),
            Factor::Is(sum, IntervalSet::one(0)),
        ]);
        let mut settler = Settler::of_all(&mut pool, &mut within.clone(), false).expect("packets pass");
        assert_eq!(settler.id(choice), a);
        assert_eq!(settler.id(sum), settler.pool.number(0));
    }

    /// Alternatives in others are left out where the same stand around them, and not where they stand in the
    /// other alternative.
    #[test]
    fn alternatives_are_not_repeated() {
        let mut pool = Pool::default();
        let [a, b, c] = [0, 1, 2].map(|cell| pool.atom(Atom::Cell(cell)));
        let is = |id: Id, number: u64| Factor::Is(id, IntervalSet::one(number));
        let repeated = || Factor::Any([vec![is(a, 1)], vec![is(a, 2), is(b, 1)]].into());
        let inside = Factor::Any([vec![is(c, 1), repeated()], vec![is(c, 2), repeated()]].into());
        let alone = Filter(vec![inside.clone()]);
        assert_eq!(settled(&mut pool, &alone), alone);
        let without = Factor::Any([vec![is(c, 1)], vec![is(c, 2)]].into());
        let around = Filter(vec![repeated(), inside]);
        assert_eq!(settled(&mut pool, &around), Filter(vec![repeated(), without]));
    }

    /// Others lose what the first one says, keep what another one says, and have no packet where that contradicts it.
    #[test]
    fn others_are_put_into_the_form_of_the_first() {
        let mut pool = Pool::default();
        let [rec, a, b] = [0, 1, 2].map(|cell| pool.atom(Atom::Cell(cell)));
        let of_record = pool.add(Node::RecLoad(NO_WRITES, rec, 0, 8));
        let bits = pool.add(Node::Slice(of_record, 0, 4));
        let is = |id: Id, number: u64| Factor::Is(id, IntervalSet::one(number));
        let choice = |id: Id| Factor::Any([vec![is(id, 1)], vec![is(id, 2)]].into());
        let first = Filter(vec![is(of_record, 5), choice(a)]);
        let mut form = SettledForm::of(&mut pool, &first).expect("packets pass");
        let both = form.filter(&Filter(vec![is(of_record, 5), choice(a), choice(b)]));
        assert_eq!(both, Filter(vec![is(of_record, 5), choice(b)]));
        assert_eq!(form.filter(&Filter(vec![choice(b)])), Filter(vec![choice(b)]));
        assert!(form.filter(&Filter(vec![is(bits, 6)])).is_never());
    }
}
