//! Rules of a large list as boxes.
//!
//! A *box* is an interval for each of five dimensions, and a few bits. A rule over addresses, protocol and
//! ports becomes one or more boxes. Up to [`MAX_BITS`] other tests of a list (`syn`, `ip frag`, …) become
//! bits, which the program computes before the lookup. A rule that would need more than [`MAX_BOXES`] boxes
//! becomes none.
//!
//! Packets without ports have a source port value of their own: rules that do not test ports match them, and
//! rules that do never match.

use super::expr::{Compare, Direction, Expr, PortProtocol, Test};
use super::formula::{set_of, values};
use ir::analysis::interval::IntervalSet;

/// Most tests of other kinds in one list.
pub const MAX_BITS: usize = 3;
/// Sides of a box: five dimensions, then the bits.
pub const SIDES: usize = 5 + MAX_BITS;
/// The largest value of each side: source and destination address, source port ([`NO_PORTS`] where there
/// is none), destination port, protocol; bits.
pub const LARGEST: [u64; SIDES] = [0xffff_ffff, 0xffff_ffff, 0x1_ffff, 0xffff, 0xff, 1, 1, 1];
/// Source port of packets without ports.
pub const NO_PORTS: u64 = 0x1_0000;
/// Most boxes of a rule.
pub const MAX_BOXES: usize = 64;

const SRC: usize = 0;
const DST: usize = 1;
/// The source port's side.
pub const SPORT: usize = 2;
/// The destination port's side.
pub const DPORT: usize = 3;
const PROTO: usize = 4;
const BITS: usize = 5;

/// A box: first and last value of each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cuboid(pub [(u64, u64); SIDES]);

impl Cuboid {
    fn whole() -> Cuboid {
        Cuboid(LARGEST.map(|largest| (0, largest)))
    }

    /// All packets within an interval of one side.
    fn slab(side: usize, interval: (u64, u64)) -> Option<Cuboid> {
        let mut cuboid = Cuboid::whole();
        *cuboid.0.get_mut(side)? = interval;
        Some(cuboid)
    }

    fn intersection(&self, other: &Cuboid) -> Option<Cuboid> {
        let mut both = *self;
        for (mine, theirs) in both.0.iter_mut().zip(&other.0) {
            *mine = (mine.0.max(theirs.0), mine.1.min(theirs.1));
        }
        both.0.iter().all(|(first, last)| first <= last).then_some(both)
    }

    fn covers(&self, other: &Cuboid) -> bool {
        self.intersection(other) == Some(*other)
    }

    /// Cuts another box out of this one; adds the boxes that are left.
    fn without(&self, other: &Cuboid, left: &mut Vec<Cuboid>) {
        let Some(hole) = self.intersection(other) else { return left.push(*self) };
        let mut rest = *self;
        for (at, &(first, last)) in hole.0.iter().enumerate() {
            let (low, high) = rest.0[at];
            if low < first {
                left.push(rest.with(at, (low, first - 1)));
            }
            if last < high {
                left.push(rest.with(at, (last + 1, high)));
            }
            rest = rest.with(at, (first, last));
        }
    }

    fn with(mut self, side: usize, interval: (u64, u64)) -> Cuboid {
        self.0[side] = interval;
        self
    }
}

/// Makes the boxes of rules, and collects the tests behind their bits.
#[derive(Default, Debug)]
pub struct Boxer {
    /// The tests, by bit.
    pub tests: Vec<Test>,
}

type Cuboids = Option<Vec<Cuboid>>;

fn bounded(boxes: Vec<Cuboid>) -> Cuboids {
    (boxes.len() <= MAX_BOXES).then_some(boxes)
}

fn complement(boxes: &[Cuboid]) -> Cuboids {
    let mut left = vec![Cuboid::whole()];
    for hole in boxes {
        let mut next = vec![];
        left.iter().for_each(|part| part.without(hole, &mut next));
        left = bounded(next)?;
    }
    Some(left)
}

fn intersection(a: &[Cuboid], b: &[Cuboid]) -> Cuboids {
    bounded(a.iter().flat_map(|a| b.iter().filter_map(|b| a.intersection(b))).collect())
}

fn side(side: usize, set: &IntervalSet) -> Vec<Cuboid> {
    set.intervals().iter().filter_map(|interval| Cuboid::slab(side, *interval)).collect()
}

/// The region of one or both of two dimensions, by direction; `negated` complements all of it.
fn pair(direction: Direction, src: usize, dst: usize, set: &IntervalSet, negated: bool) -> Cuboids {
    let (src, dst) = (side(src, set), side(dst, set));
    let region = match direction {
        Direction::Src => src,
        Direction::Dst => dst,
        Direction::Either => src.into_iter().chain(dst).collect(),
        Direction::Both => intersection(&src, &dst)?,
    };
    if negated { complement(&region) } else { Some(region) }
}

fn protocols(numbers: &[u8]) -> Vec<Cuboid> {
    side(PROTO, &set_of(numbers.iter().copied().map(u64::from)))
}

impl Boxer {
    /// The boxes of a rule; `None` if there would be too many.
    pub fn boxes(&mut self, expr: &Expr) -> Cuboids {
        let known = self.tests.len();
        let region = self.region(expr);
        if region.is_none() {
            self.tests.truncate(known);
        }
        let region = region?;
        let covered = |(at, part): &(usize, &Cuboid)| {
            let larger = |(other, cover): (usize, &Cuboid)| {
                other != *at && cover.covers(part) && !(part.covers(cover) && other > *at)
            };
            region.iter().enumerate().any(larger)
        };
        Some(region.iter().enumerate().filter(|part| !covered(part)).map(|(_, part)| *part).collect())
    }

    fn region(&mut self, expr: &Expr) -> Cuboids {
        match expr {
            Expr::True => Some(vec![Cuboid::whole()]),
            Expr::False => Some(vec![]),
            Expr::Test(test) => self.test(*test),
            Expr::Not(inner) => complement(&self.region(inner)?),
            Expr::All(parts) => parts
                .iter()
                .try_fold(vec![Cuboid::whole()], |all, part| intersection(&all, &self.region(part)?)),
            Expr::Any(parts) => parts.iter().try_fold(vec![], |mut any, part| {
                any.extend(self.region(part)?);
                bounded(any)
            }),
            Expr::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                let condition = self.region(condition)?;
                let mut region = intersection(&condition, &self.region(yes)?)?;
                region.extend(intersection(&complement(&condition)?, &self.region(no)?)?);
                bounded(region)
            }
        }
    }

    fn test(&mut self, test: Test) -> Cuboids {
        match test {
            Test::Host { direction, address, mask, negated }
                if mask.leading_ones() + mask.trailing_zeros() >= 32 =>
            {
                let set = IntervalSet::range(address.into(), (address | !mask).into());
                pair(direction, SRC, DST, &set, negated)
            }
            Test::Proto(compare) => {
                Some(side(PROTO, &set_of((0..=LARGEST[PROTO]).filter(|number| compare.holds(*number)))))
            }
            Test::TcpUdp => Some(protocols(&[6, 17])),
            Test::Port { direction, protocol, compare: compare @ Compare { mask: None, .. } } => {
                let protocols = match protocol {
                    PortProtocol::TcpUdp => protocols(&[6, 17]),
                    PortProtocol::One(protocol) => protocols(&[protocol]),
                };
                let (positive, negated) = compare.split();
                let ports = pair(direction, SPORT, DPORT, &values(positive, 0xffff), negated)?;
                let there = side(SPORT, &IntervalSet::range(0, NO_PORTS - 1));
                intersection(&intersection(&protocols, &there)?, &ports)
            }
            other => self.bit(other),
        }
    }

    /// A test that becomes a bit.
    fn bit(&mut self, test: Test) -> Cuboids {
        let at = self.tests.iter().position(|known| *known == test).unwrap_or_else(|| {
            self.tests.push(test);
            self.tests.len() - 1
        });
        Some(vec![Cuboid::slab(BITS + at, (1, 1))?])
    }
}

#[cfg(test)]
impl Cuboid {
    /// Whether a packet's values lie inside.
    pub fn contains(&self, values: [u64; SIDES]) -> bool {
        self.covers(&Cuboid(values.map(|value| (value, value))))
    }
}
