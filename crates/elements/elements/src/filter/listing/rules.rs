//! Steps from expressions over IP packets and from clauses of bytes.

use super::super::expr::{
    Carrier, Compare, Direction, Expr, HeaderField, PortProtocol, Relation, Test, Values,
};
use super::super::formula::floor;
use super::{Jump, Step, Steps};
use std::ops::Range;

/// Click's offsets of the headers.
const NET: u16 = 256;
const TRANS: u16 = 512;
const PROTOCOL: (u16, u32) = (NET + 8, 0x00ff_0000);
const FRAGMENT_OFFSET: (u16, u32) = (NET + 4, 0x1fff);
/// The offset and "more fragments".
const ANY_FRAGMENT: (u16, u32) = (NET + 4, 0x3fff);
/// Most steps before any is left out.
const MOST_STEPS: usize = 2_000;

/// Bytes with their masks at an offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clause {
    /// The offset of the first.
    pub at: usize,
    /// Values and masks.
    pub bytes: Vec<(u8, u8)>,
    /// Whether the clause matches where the bytes do not.
    pub negated: bool,
}

/// The list of patterns of clauses, all of which must match: one for each output.
pub fn of_clauses(patterns: &[Vec<Clause>]) -> Option<String> {
    let mut steps = Steps::default();
    let mut starts = vec![];
    for (output, clauses) in (0..).zip(patterns) {
        let first = steps.steps.len();
        starts.push(first);
        steps.all_of(clauses, |steps, clause| {
            let start = steps.steps.len();
            steps.words(clause);
            if clause.negated {
                steps.negate(start..steps.steps.len(), false);
            }
            steps.fits()
        })?;
        if steps.steps.len() == first {
            steps.add((0, 0), 0);
        }
        let here = first..steps.steps.len();
        steps.lead(here, Jump::Match, Jump::Output(output));
    }
    steps.chain(&starts, Jump::Fail);
    steps.lead(0..steps.steps.len(), Jump::Fail, Jump::Drop);
    steps.shorten(|at| at);
    Some(steps.text(false))
}

/// The list of rules over IP packets; the number of each is its output, or one that drops. None if a rule
/// tests what Click's language does not have, or if the list would be long.
pub fn of_ip(rules: &[(Expr, u32)], drops: impl Fn(u32) -> bool) -> Option<String> {
    let mut each = vec![];
    for (expr, decision) in rules {
        let mut steps = Steps::default();
        steps.expr(expr)?;
        let to = if drops(*decision) { Jump::Drop } else { Jump::Output(*decision) };
        steps.lead(0..steps.steps.len(), Jump::Match, to);
        each.push(steps);
        if each.iter().map(|steps| steps.steps.len()).sum::<usize>() > MOST_STEPS {
            return None;
        }
    }
    // The protocol stands before all other tests that may be in any order.
    let order = |at: u16| if at == PROTOCOL.0 { NET + 3 } else { at };
    // Rules are joined by pairs, then pairs of pairs, as in Click: the order of the steps depends on it.
    let alone = each.len() <= 1;
    while each.len() > 1 {
        let mut rest = each.into_iter();
        each = vec![];
        while let Some(mut first) = rest.next() {
            if let Some(second) = rest.next() {
                first.or(second);
                first.shorten(order);
            }
            each.push(first);
        }
    }
    let mut steps = each.pop().unwrap_or_default();
    if alone {
        steps.shorten(order);
    }
    steps.lead(0..steps.steps.len(), Jump::Fail, Jump::Drop);
    steps.sort(order);
    Some(steps.text(true))
}

impl Steps {
    fn add(&mut self, (at, mask): (u16, u32), value: u32) {
        let value = value & mask;
        self.steps.push(Step { at, mask, value, short: false, jumps: [Jump::Fail, Jump::Match] });
    }

    /// Lets the jumps of steps that lead to `from` lead to another.
    pub(super) fn lead(&mut self, steps: Range<usize>, from: Jump, to: Jump) {
        for step in &mut self.steps[steps] {
            step.jumps = step.jumps.map(|way| if way == from { to } else { way });
        }
        if self.all == Some(from) {
            self.all = Some(to);
        }
    }

    /// Lets the jumps of each part to `from` lead to the next part.
    fn chain(&mut self, starts: &[usize], from: Jump) {
        for pair in starts.windows(2) {
            self.lead(pair[0]..pair[1], from, Jump::Step(pair[1]));
        }
    }

    /// Adds parts of which all must match.
    fn all_of<T>(&mut self, parts: &[T], mut add: impl FnMut(&mut Steps, &T) -> Option<()>) -> Option<()> {
        let mut starts = vec![];
        for part in parts {
            starts.push(self.steps.len());
            add(self, part)?;
        }
        self.chain(&starts, Jump::Match);
        Some(())
    }

    /// Turns the meaning of steps around, and (with `short`) that for packets that are too short.
    fn negate(&mut self, steps: Range<usize>, short: bool) {
        for step in &mut self.steps[steps] {
            step.jumps = step.jumps.map(|way| match way {
                Jump::Match => Jump::Fail,
                Jump::Fail => Jump::Match,
                other => other,
            });
            step.short ^= short;
        }
    }

    /// Puts other steps behind these, where these fail.
    fn or(&mut self, next: Steps) {
        match self.all {
            Some(Jump::Fail) => *self = next,
            Some(_) => {}
            None => {
                let end = self.steps.len();
                self.lead(0..end, Jump::Fail, next.all.unwrap_or(Jump::Step(end)));
                let moved = |way| if let Jump::Step(step) = way { Jump::Step(step + end) } else { way };
                self.steps
                    .extend(next.steps.iter().map(|step| Step { jumps: step.jumps.map(moved), ..*step }));
            }
        }
    }

    fn fits(&self) -> Option<()> {
        (self.steps.len() <= MOST_STEPS).then_some(())
    }

    /// The words of a clause.
    fn words(&mut self, clause: &Clause) {
        let start = self.steps.len();
        let mut starts = vec![];
        for (at, (value, mask)) in (clause.at..).zip(&clause.bytes) {
            if self.steps.len() == start || at % 4 == 0 {
                starts.push(self.steps.len());
                self.add(((at - at % 4) as u16, 0), 0);
            }
            if let Some(step) = self.steps.last_mut() {
                let shift = 24 - 8 * (at % 4);
                step.mask |= u32::from(*mask) << shift;
                step.value |= u32::from(value & mask) << shift;
            }
        }
        self.chain(&starts, Jump::Match);
    }

    fn expr(&mut self, expr: &Expr) -> Option<()> {
        let first = self.steps.len();
        match expr {
            Expr::True => self.add((0, 0), 0),
            Expr::False => {
                self.add((0, 0), 0);
                self.negate(first..first + 1, false);
            }
            Expr::Test(test) => self.test(*test)?,
            Expr::Not(inner) => {
                self.expr(inner)?;
                self.negate(first..self.steps.len(), false);
            }
            Expr::All(parts) => self.all_of(parts, Steps::expr)?,
            Expr::Any(parts) => {
                let mut starts = vec![];
                for part in parts {
                    starts.push(self.steps.len());
                    self.expr(part)?;
                }
                self.chain(&starts, Jump::Fail);
            }
            Expr::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                self.expr(condition)?;
                let second = self.steps.len();
                self.expr(yes)?;
                let third = self.steps.len();
                self.expr(no)?;
                self.lead(first..second, Jump::Match, Jump::Step(second));
                self.lead(first..second, Jump::Fail, Jump::Step(third));
            }
        }
        self.fits()
    }

    fn test(&mut self, test: Test) -> Option<()> {
        match test {
            Test::Host { direction, address, mask, negated } => {
                self.ends(direction, negated, |steps, is_src| {
                    steps.add((NET + if is_src { 12 } else { 16 }, mask), address);
                    Some(())
                })
            }
            Test::Ether { direction, address, mask, negated } => {
                self.ends(direction, negated, |steps, is_src| {
                    let bytes = |number: u64| number.to_be_bytes().into_iter().skip(2);
                    let bytes = bytes(address).zip(bytes(mask)).map(|(value, mask)| (value & mask, mask));
                    // The header starts two bytes into Click's first word.
                    let at = if is_src { 8 } else { 2 };
                    steps.words(&Clause { at, bytes: bytes.collect(), negated: false });
                    Some(())
                })
            }
            Test::Proto(wanted) => {
                let alone = matches!(wanted, Compare { mask: None, relation: Relation::Equal, .. });
                self.all_of(&[alone, false], |steps, first| {
                    if let (true, Values::One(protocol)) = (*first, wanted.values) {
                        steps.protocol(protocol as u8);
                        return Some(());
                    }
                    if *first { Some(()) } else { steps.compare((PROTOCOL.0, 16, 0xff), wanted) }
                })
            }
            Test::TcpUdp => {
                self.tcp_udp();
                Some(())
            }
            Test::Fragment(wanted) => {
                let first = self.steps.len();
                self.add(ANY_FRAGMENT, 0);
                if wanted {
                    self.negate(first..first + 1, true);
                }
                Some(())
            }
            Test::Port { direction, protocol, compare } => {
                let (positive, negated) = compare.split();
                let carrier = match protocol {
                    PortProtocol::TcpUdp => Carrier::TcpUdp,
                    PortProtocol::One(protocol) => Carrier::Protocol(protocol),
                };
                self.in_transport(carrier, |steps| {
                    steps.ends(direction, negated, |steps, is_src| {
                        steps.compare((TRANS, if is_src { 16 } else { 0 }, 0xffff), positive)
                    })
                })
            }
            Test::TcpFlags(flags) => {
                let flags = u32::from(flags) << 16;
                self.in_transport(Carrier::Protocol(6), |steps| {
                    steps.add((TRANS + 12, flags), flags);
                    Some(())
                })
            }
            Test::Field(field @ HeaderField { carrier: Carrier::Ip, .. }, wanted) => {
                self.field(NET, field, wanted)
            }
            Test::Field(field, wanted) => {
                self.in_transport(field.carrier, |steps| steps.field(TRANS, field, wanted))
            }
            Test::Layer(..) | Test::Six(_) => None,
        }
    }

    fn protocol(&mut self, protocol: u8) {
        self.add(PROTOCOL, u32::from(protocol) << 16);
    }

    fn tcp_udp(&mut self) {
        let first = self.steps.len();
        self.protocol(6);
        self.protocol(17);
        self.chain(&[first, first + 1], Jump::Fail);
    }

    /// A test of the transport header of a first fragment.
    fn in_transport(&mut self, of: Carrier, add: impl FnOnce(&mut Steps) -> Option<()>) -> Option<()> {
        let mut starts = vec![self.steps.len()];
        match of {
            Carrier::Protocol(protocol) => self.protocol(protocol),
            Carrier::TcpUdp => self.tcp_udp(),
            Carrier::Transport | Carrier::Ip => {
                starts.clear();
            }
        }
        starts.push(self.steps.len());
        self.add(FRAGMENT_OFFSET, 0);
        starts.push(self.steps.len());
        add(self)?;
        self.chain(&starts, Jump::Match);
        Some(())
    }

    /// A test of the source, the destination or both.
    fn ends(
        &mut self,
        direction: Direction,
        negated: bool,
        mut add: impl FnMut(&mut Steps, bool) -> Option<()>,
    ) -> Option<()> {
        let first = self.steps.len();
        let (ends, joined): (&[bool], _) = match direction {
            Direction::Src => (&[true], Jump::Match),
            Direction::Dst => (&[false], Jump::Match),
            Direction::Either => (&[true, false], Jump::Fail),
            Direction::Both => (&[true, false], Jump::Match),
        };
        let mut starts = vec![];
        for is_src in ends {
            starts.push(self.steps.len());
            add(self, *is_src)?;
        }
        self.chain(&starts, joined);
        if negated {
            self.negate(first..self.steps.len(), true);
        }
        Some(())
    }

    fn field(&mut self, header: u16, field: HeaderField, wanted: Compare) -> Option<()> {
        let bit = field.bit % 32;
        let shift = 32u16.checked_sub(bit + u16::from(field.width))?;
        let at = header.checked_add(field.bit / 8 / 4 * 4)?;
        self.compare((at, shift.into(), field.max_value() as u32), wanted)
    }

    /// A comparison of the bits `full`, which end `shift` bits before the end of a word.
    fn compare(&mut self, place: (u16, u32, u32), wanted: Compare) -> Option<()> {
        let (at, shift, full) = place;
        let mask = wanted.mask.map_or(full, |mask| mask as u32 & full);
        let first = self.steps.len();
        let (positive, negated) = wanted.split();
        match (positive.relation, positive.values) {
            (_, Values::Range(low, high)) => {
                let bounds = [(Relation::GreaterEqual, low), (Relation::LessEqual, high)];
                self.all_of(&bounds, |steps, (relation, value)| {
                    let bound = Compare { relation: *relation, values: Values::One(*value), ..positive };
                    steps.compare(place, bound)
                })?;
            }
            (Relation::Greater, Values::One(value)) => self.above(at, shift, mask, Some(value)),
            (Relation::GreaterEqual, Values::One(value)) => self.above(at, shift, mask, value.checked_sub(1)),
            (_, Values::One(value)) => self.add((at, mask << shift), (value as u32) << shift),
        }
        if negated {
            self.negate(first..self.steps.len(), true);
        }
        self.fits()
    }

    /// Bits under a mask that are more than a number; None is less than any.
    fn above(&mut self, at: u16, shift: u32, mask: u32, number: Option<u64>) {
        let first = self.steps.len();
        match number {
            None => self.add((at, 0), 0),
            Some(number) if number >= u64::from(mask) => {
                self.add((at, 0), 0);
                self.negate(first..first + 1, true);
            }
            Some(number) => self.above_bits(at, shift, mask, floor(number, mask.into()) as u32),
        }
    }

    /// The highest bits decide, or the others do: where the number's are 0, any bit of them is more; where
    /// they are 1 up to the last, all must be there.
    fn above_bits(&mut self, at: u16, shift: u32, mask: u32, number: u32) {
        let ones = number > mask >> 1;
        let differs = if ones { !number.wrapping_add(1) & mask } else { number };
        let low = match 32 - differs.leading_zeros() {
            0 => 0,
            bits => ((1u64 << bits) - 1) as u32,
        };
        let high = mask & !low;
        let first = self.steps.len();
        self.add((at, high << shift), if ones { high << shift } else { 0 });
        if !ones {
            self.negate(first..first + 1, true);
        }
        let (mask, number) = (mask & !high, number & !high);
        if number < mask {
            let rest = self.steps.len();
            self.above_bits(at, shift, mask, number & mask);
            self.chain(&[first, rest], if ones { Jump::Match } else { Jump::Fail });
        }
    }
}
