//! Classes in readable form.

use super::expr::{Atom, BIAS, Id, Log, Node, Pool, Write, sum_range};
use super::filter::{Factor, Filter};
pub use super::names::value as value_text;
use super::names::{self, Context};
use super::path_state::{PathState, StateLocation};
use super::{Class, Classes, Exit, Left, Step, Wasted};
use ir::BinOp;
use ir::analysis::interval::{IntervalSet, ones};
use ir::program::Program;
use packet::field::Base;
use serde::Serialize;
use std::fmt;

/// The depth of nested expressions that are printed.
const DEPTH: usize = 7;
/// The intervals of one set that are printed.
const MAX_INTERVALS: usize = 12;

/// A class, and the names for its parts.
#[derive(Clone, Copy, Debug)]
pub struct Show<'a> {
    /// The class's program.
    pub program: &'a Program,
    /// Names of the program's elements; if empty, elements are not named.
    pub names: &'a [String],
    /// Its expressions.
    pub pool: &'a Pool,
    start: &'a PathState,
    /// Lookups of the class: records are named by their index in this list.
    finds: &'a [Id],
    filter: &'a Filter,
    context: Context,
}

/// A condition as plain data.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
#[serde(untagged)]
pub enum Asked {
    /// A value is in one of the intervals.
    Is {
        /// The value.
        of: String,
        /// The intervals.
        intervals: Vec<(u64, u64)>,
        /// The condition in words.
        text: String,
    },
    /// One of the lists holds.
    Any {
        /// The lists.
        any: Vec<Vec<Asked>>,
    },
}

impl<'a> Show<'a> {
    /// For expressions of classes with that filter.
    pub fn new(
        program: &'a Program,
        names: &'a [String],
        classes: &'a Classes,
        filter: &'a Filter,
    ) -> Show<'a> {
        let Classes { pool, start, .. } = classes;
        Show { program, names, pool, start, finds: &[], filter, context: Context::of(pool, filter) }
    }

    /// For a class.
    pub fn of_class(
        program: &'a Program,
        names: &'a [String],
        classes: &'a Classes,
        class: &'a Class,
    ) -> Show<'a> {
        Show { finds: &class.end.finds, ..Show::new(program, names, classes, &class.filter) }
    }

    /// An expression.
    pub fn expr(&self, id: Id) -> String {
        self.at_depth(id, DEPTH)
    }

    fn at_depth(&self, id: Id, depth: usize) -> String {
        let Some(next) = depth.checked_sub(1) else { return format!("#{}", id.index()) };
        let part = |id: Id| self.at_depth(id, next);
        let tight = |id: Id| match self.pool.node(id) {
            Node::Cat(_) | Node::Sum(..) | Node::Bin(..) | Node::Select(..) | Node::In(..) => {
                format!("({})", self.at_depth(id, next))
            }
            _ => self.at_depth(id, next),
        };
        match self.pool.node(id) {
            Node::Const(number) => number_text(*number),
            Node::Atom(atom) => self.atom(*atom),
            Node::Cat(parts) => {
                let parts = parts.iter().rev().map(|(low, id)| match low {
                    0 => tight(*id),
                    _ => format!("{} << {low}", tight(*id)),
                });
                parts.collect::<Vec<_>>().join(" | ")
            }
            Node::Slice(of, low, width) => format!("{}[{low}..{}]", tight(*of), low + width),
            Node::Fold(sum) => format!("fold({})", part(*sum)),
            Node::Sum(constant, terms) => self.sum(*constant as i64, terms, next),
            Node::Bin(BinOp::Min, a, b) => format!("min({}, {})", part(*a), part(*b)),
            Node::Bin(op, a, b) => format!("{} {} {}", tight(*a), op.sign(), tight(*b)),
            Node::In(of, set) => self.asked(*of, set, next),
            Node::Select(c, a, b) => format!("if {} then {} else {}", part(*c), tight(*a), tight(*b)),
            Node::Csum(sum, old, new, _) => {
                format!("mend({}, {} to {})", part(*sum), part(*old), part(*new))
            }
            Node::IpSum(log, ..) => format!("ip header sum{}", self.after(*log)),
            Node::TransportSum(sum) => format!("transport sum{}", self.after(sum.log)),
            Node::Read(log, bits) => {
                format!("{}{}", names::bits(self.pool, *bits, &self.context), self.after(*log))
            }
            Node::Found(_) if depth < DEPTH && self.record(id).is_some() => {
                self.record(id).unwrap_or_default()
            }
            Node::Found(find) => {
                let key: Vec<String> = find.key.iter().map(|word| part(*word)).collect();
                let table = self.program.tables.get(usize::from(find.table));
                let table = table.map_or_else(|| find.table.to_string(), |table| table.name.clone());
                let make = if find.args.is_some() { "+" } else { "" };
                format!("{table}{}{make}[{}]", self.number_of(find.table), key.join(", "))
            }
            Node::Record(found) => self.record(*found).unwrap_or_else(|| part(*found)),
            Node::RecLoad(log, rec, offset, bytes) => {
                let after = if self.pool.rec_writes(*log).is_empty() { "" } else { " rewritten" };
                format!("{}@{offset}:{bytes}{after}", part(*rec))
            }
        }
    }

    /// The name of a lookup's record.
    fn record(&self, found: Id) -> Option<String> {
        self.finds.iter().position(|known| *known == found).map(|at| format!("r{at}"))
    }

    /// Tables of the same name are distinguished by their numbers.
    fn number_of(&self, table: u16) -> String {
        let name = self.program.tables.get(usize::from(table)).map(|table| &table.name);
        let same = self.program.tables.iter().filter(|other| Some(&other.name) == name).count();
        if same > 1 { format!("#{table}") } else { String::new() }
    }

    fn after(&self, log: Log) -> String {
        match self.pool.writes(log).len() {
            0 => String::new(),
            1 => " after a write".into(),
            count => format!(" after {count} writes"),
        }
    }

    fn atom(&self, atom: Atom) -> String {
        match atom {
            Atom::Bits(bits) => names::bits(self.pool, bits, &self.context),
            Atom::Room => "headroom".into(),
            Atom::Head => "first segment".into(),
            Atom::Rest => "other segments".into(),
            Atom::Place(base) => format!("{} header", base.name()),
            Atom::Reach(base) => format!("bytes from {} header", base.name()),
            Atom::Cell(cell) => self.cell(cell),
            Atom::Now => "now".into(),
            Atom::Timestamp => "timestamp".into(),
            Atom::PacketType => "packet type".into(),
            Atom::FlowHash => "flow hash".into(),
            Atom::Origin => "entry port".into(),
        }
    }

    fn cell(&self, cell: u16) -> String {
        let found = self.program.cells.get(usize::from(cell));
        let name = found.map_or_else(String::new, |cell| cell.name.clone());
        let same = self.program.cells.iter().filter(|other| other.name == name).count();
        if same > 1 { format!("cell {name}#{cell}") } else { format!("cell {name}") }
    }

    fn sum(&self, constant: i64, terms: &[(Id, u64)], depth: usize) -> String {
        let mut text = String::new();
        let by_of = |atom: Atom| {
            let id = self.pool.find(&Node::Atom(atom));
            terms.iter().find(|(term, _)| Some(*term) == id).map(|(_, by)| *by)
        };
        // The bytes of the first segment and of the others together are those of the packet.
        let whole = by_of(Atom::Head).is_some() && by_of(Atom::Head) == by_of(Atom::Rest);
        let rest = |term: Id| *self.pool.node(term) == Node::Atom(Atom::Rest);
        for (at, (term, by)) in terms.iter().filter(|(term, _)| !whole || !rest(*term)).enumerate() {
            let by = *by as i64;
            let name = match self.pool.node(*term) {
                Node::Atom(Atom::Head) if whole => "packet length".into(),
                Node::Atom(_)
                | Node::RecLoad(..)
                | Node::Slice(..)
                | Node::Csum(..)
                | Node::Fold(_)
                | Node::Bin(BinOp::Min, ..) => self.at_depth(*term, depth),
                _ => format!("({})", self.at_depth(*term, depth)),
            };
            let times =
                if by.unsigned_abs() == 1 { String::new() } else { format!("{}*", by.unsigned_abs()) };
            let sign = match (at, by < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            text += &format!("{sign}{times}{name}");
        }
        match constant {
            0 => text,
            1.. => format!("{text} + {}", number_text(constant as u64)),
            _ => format!("{text} - {}", number_text(constant.unsigned_abs())),
        }
    }

    /// A condition.
    pub fn condition(&self, of: Id, set: &IntervalSet) -> String {
        self.asked(of, set, DEPTH)
    }

    fn asked(&self, of: Id, set: &IntervalSet, depth: usize) -> String {
        if let Node::Sum(BIAS, terms) = self.pool.node(of)
            && let Some(text) = self.compared(terms, set, depth)
        {
            return text;
        }
        // The first bits of a field are a prefix.
        if let Node::Atom(Atom::Bits(bits)) = self.pool.node(of)
            && let Some((name, width)) = names::field_of_first(self.pool, *bits, &self.context)
        {
            return self.in_words(&name, &set.widen((width - bits.width).into()), ones(width));
        }
        let text = self.at_depth(of, depth);
        let max = self.pool.max(of);
        match self.pool.node(of) {
            Node::Found(_) if !set.contains(1) => return format!("{text} missing"),
            Node::Found(_) => {
                let name = self.record(of).map(|name| format!(" as {name}"));
                return format!("{text} found{}", name.unwrap_or_default());
            }
            Node::IpSum(..) | Node::TransportSum(_) if set.only() == Some(0xffff) => {
                return format!("{text} right");
            }
            Node::IpSum(..) | Node::TransportSum(_) if set.complement(max).only() == Some(0xffff) => {
                return format!("{text} wrong");
            }
            _ if max == 1 && set.only().is_some() && !matches!(self.pool.node(of), Node::Atom(_)) => {
                return if set.contains(1) { text } else { format!("not ({text})") };
            }
            _ => {}
        }
        self.in_words(&text, set, max)
    }

    /// The condition that a value is in a set, as text.
    fn in_words(&self, text: &str, set: &IntervalSet, max: u64) -> String {
        let others = set.complement(max);
        let plain = |n: u64| names::value(text, n);
        match (set.intervals(), others.intervals()) {
            ([(0, last)], _) if !plain(*last).contains(['.', ':']) && *last > 0 => {
                format!("{text} < {}", plain(last + 1))
            }
            ([(first, last)], _) if *last >= max && first < last && !plain(*first).contains(['.', ':']) => {
                match first {
                    1 => format!("{text} > 0"),
                    _ => format!("{text} > {}", plain(first - 1)),
                }
            }
            (few, many) if few.len() <= many.len() => format!("{text} {}", list(text, set)),
            _ => format!("{text} not {}", list(text, &others)),
        }
    }

    /// A condition on a difference, as a comparison of its two sides.
    fn compared(&self, terms: &[(Id, u64)], set: &IntervalSet, depth: usize) -> Option<String> {
        let (minus, plus): (Vec<_>, Vec<_>) = terms.iter().copied().partition(|(_, by)| (*by as i64) < 0);
        let minus: Vec<(Id, u64)> = minus.into_iter().map(|(id, by)| (id, by.wrapping_neg())).collect();
        let [(first, last)] = *set.intervals() else { return None };
        let side = |terms: &[(Id, u64)], more: i64| match (terms.is_empty(), more) {
            (true, more) => more.to_string(),
            _ => self.sum(more, terms, depth),
        };
        let both = |sign: &str, by: u64| {
            let by = by.wrapping_sub(BIAS) as i64;
            let (left, right) = if by < 0 { (-by, 0) } else { (0, by) };
            format!("{} {sign} {}", side(&plus, left), side(&minus, right))
        };
        // Bounds that the terms cannot reach, given the filter, are left out.
        let (least, most) = sum_range(BIAS, terms, |term| {
            let asked = self.filter.conditions().find(|(id, _)| *id == term).map(|(_, set)| set);
            let first = asked.and_then(IntervalSet::min).unwrap_or(0);
            (first, asked.and_then(IntervalSet::max).unwrap_or_else(|| self.pool.max(term)))
        });
        match (i128::from(first) <= least, i128::from(last) >= most) {
            (false, false) if first == last => Some(both("=", first)),
            (false, true) => Some(both(">=", first)),
            (true, false) => Some(both("<=", last)),
            (false, false) => Some(format!("{}, {}", both(">=", first), both("<=", last))),
            (true, true) => None,
        }
    }

    /// A filter's conditions.
    pub fn filter(&self, filter: &Filter) -> String {
        if filter.0.is_empty() {
            return "all packets".into();
        }
        self.factors(&filter.0)
    }

    fn factors(&self, factors: &[Factor]) -> String {
        let parts = factors.iter().map(|factor| match factor {
            Factor::Is(of, set) => self.condition(*of, set),
            Factor::Any(lists) => {
                let lists: Vec<String> = lists.iter().map(|list| self.factors(list)).collect();
                format!("({})", lists.join(" | "))
            }
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// A filter's conditions as plain data.
    pub fn conditions(&self, filter: &Filter) -> Vec<Asked> {
        self.asked_data(&filter.0)
    }

    fn asked_data(&self, factors: &[Factor]) -> Vec<Asked> {
        let data = factors.iter().map(|factor| match factor {
            Factor::Is(of, set) => Asked::Is {
                of: self.expr(*of),
                intervals: set.intervals().to_vec(),
                text: self.condition(*of, set),
            },
            Factor::Any(lists) => {
                Asked::Any { any: lists.iter().map(|list| self.asked_data(list)).collect() }
            }
        });
        data.collect()
    }

    /// An exit.
    pub fn exit(&self, exit: Exit) -> String {
        let name = |names: &[String], at: u16| names.get(usize::from(at)).cloned().unwrap_or_default();
        match exit {
            Exit::Emit(port) => format!("out {port}"),
            Exit::EmitTo(port) => format!("out by {}", self.expr(port)),
            Exit::Drop(reason) => format!("drop {}", name(&self.program.reasons, reason)),
            Exit::Slow(slow) => format!("slow path {}", name(&self.program.slow, slow)),
        }
    }

    fn write(&self, write: &Write) -> (String, String) {
        let name = names::bits(self.pool, write.bits, &self.context);
        let value = match self.pool.constant(write.value) {
            Some(number) => names::value(&name, number),
            None => self.expr(write.value),
        };
        (name, value)
    }

    /// All writes of a class to the packet, its annotations and its header offsets.
    pub fn writes(&self, class: &Class) -> Vec<(String, String)> {
        let end = &class.end;
        let mut all: Vec<(String, String)> =
            end.bytes.iter().chain(&end.annos).map(|write| self.write(write)).collect();
        let start = self.start;
        let others = [
            ("first byte", end.data, start.data),
            ("end", end.end, start.end),
            ("other segments", end.rest, start.rest),
            ("packet type", end.packet_type, start.packet_type),
        ];
        let changed = others.into_iter().filter(|(_, now, came)| now != came);
        all.extend(changed.map(|(name, now, _)| (name.to_string(), self.expr(now))));
        let bases = [Base::Mac, Base::Net, Base::Trans];
        for ((place, came), base) in end.places.iter().zip(&start.places).zip(bases) {
            let name = format!("{} header", base.name());
            match place {
                _ if place == came => {}
                StateLocation::Unset => all.push((name, "none".into())),
                StateLocation::Entry(_) => all.push((name, "as it came".into())),
                StateLocation::At(place) => all.push((name, self.expr(*place))),
            }
        }
        all
    }

    /// Writes of a class to cells and records.
    pub fn effects(&self, class: &Class) -> Vec<String> {
        let cells = class.end.cells.iter().map(|(cell, value)| {
            let name = self.cell(*cell);
            let own = self.pool.find(&Node::Atom(Atom::Cell(*cell)));
            match self.pool.node(*value) {
                Node::Sum(by, terms) if matches!(**terms, [(term, 1)] if Some(term) == own) => {
                    format!("{name} += {}", number_text(*by))
                }
                _ => format!("{name} = {}", self.expr(*value)),
            }
        });
        let records = class.end.records.iter().map(|write| {
            format!("{}@{}:{} = {}", self.expr(write.rec), write.offset, write.bytes, self.expr(write.value))
        });
        cells.chain(records).collect()
    }

    fn of_element(&self, origin: usize, what: String) -> String {
        match self.names.get(origin) {
            None => what,
            Some(name) => format!("{name}: {what}"),
        }
    }

    /// Each decision of a class, with its element.
    pub fn steps(&self, class: &Class) -> Vec<String> {
        let shown = |step: &Step| self.of_element(step.origin, self.condition(step.of, &step.set));
        class.steps.iter().map(shown).collect()
    }

    /// Unnecessary writes of a class, each with its element: the packets are dropped.
    pub fn wasted(&self, class: &Class) -> Vec<String> {
        let shown = |write: &Wasted| self.of_element(write.origin, ir::text::field_name(write.field));
        class.wasted.iter().map(shown).collect()
    }
}

fn number_text(number: u64) -> String {
    if number < 0x1_0000 { number.to_string() } else { format!("{number:#x}") }
}

fn list(name: &str, set: &IntervalSet) -> String {
    let shown = set.intervals().iter().take(MAX_INTERVALS);
    let mut text: Vec<String> = shown.map(|(first, last)| names::interval(name, *first, *last)).collect();
    if set.intervals().len() > MAX_INTERVALS {
        text.push(format!("... {} more", set.intervals().len() - MAX_INTERVALS));
    }
    text.join(",")
}

/// All classes of a program as text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The classes.
    pub classes: &'a Classes,
    /// Their program.
    pub program: &'a Program,
    /// Names of its elements.
    pub names: &'a [String],
}

impl Text<'_> {
    fn left(&self, left: &Left) -> String {
        let show = Show::new(self.program, self.names, self.classes, &left.filter);
        format!("not covered from b{} on: {}", left.block.0, show.filter(&left.filter))
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, class) in self.classes.classes.iter().enumerate() {
            let show = Show::of_class(self.program, self.names, self.classes, class);
            let input =
                if self.program.entries.len() > 1 { format!("in {}: ", class.entry) } else { String::new() };
            writeln!(f, "{at}: {input}{} -> {}", show.filter(&class.filter), show.exit(class.exit))?;
            if !matches!(class.exit, Exit::Drop(_)) {
                for (name, value) in show.writes(class) {
                    writeln!(f, "    {name} = {value}")?;
                }
            }
            for effect in show.effects(class) {
                writeln!(f, "    {effect}")?;
            }
            if !class.wasted.is_empty() {
                writeln!(f, "    written for nothing: {}", show.wasted(class).join(", "))?;
            }
        }
        self.classes.left.iter().try_for_each(|left| writeln!(f, "{}", self.left(left)))
    }
}
