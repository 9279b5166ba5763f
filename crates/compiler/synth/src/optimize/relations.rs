//! What the parameters of a join add up to, modulo 0xffff.
//!
//! Each path to a join may have decremented the TTL and translated addresses as often as it likes, and passes the new
//! contents of the header's words to the block that writes them. Each parameter alone is congruent to something else on
//! each edge; but on all edges the same sum of them, of what the packet has, and of a number is congruent to 0, because
//! the checksum was updated by what the other words changed by. Such sums are affine equalities (Karr, Acta Informatica
//! 1976), here modulo 0xffff: [`Relations`] finds them by elimination. With them the header is known to be right behind
//! the writes, however its words came about.

use super::forward::{Edge, Forward};
use super::linear::{Linear, is_short, linear, settled, without, zero_sums};
use super::optimizer_state::{IsSet, RightSum};
use super::value::{Expr, Facts, Version, Vn};
use ir::BinOp;
use ir::analysis::ones_complement::{MODULUS, Residue};
use packet::field::{Base, Field, IP_DST, IP_ID, IP_LEN, IP_OFF, IP_PROTO, IP_SRC, IP_SUM, IP_TOS, IP_TTL};

/// Beyond this number of edges nothing is looked for: the work per block stays bounded.
const MOST_EDGES: usize = 32;
/// Beyond this number of parameters, likewise.
const MOST_PARAMS: usize = 32;
/// Beyond this number of values that all edges have, likewise.
const MOST_ON_ALL: usize = 64;
/// The fields of the header that are written, but its first byte, behind whose writes nothing is known of the sum.
const FIELDS: [Field; 9] = [IP_TOS, IP_LEN, IP_ID, IP_OFF, IP_TTL, IP_PROTO, IP_SUM, IP_SRC, IP_DST];

/// A value of a join by what it is congruent to on each edge.
type OnEdges = Residue<(usize, Vn)>;

/// Sums of values of a join, none of which is congruent to a sum of others.
///
/// The modulus is the product of 3, 5, 17 and 257, so that a sum may be one of others by some of these primes only. The
/// 256th power of a number is 1 by each that does not divide it, and 0 by the others: times that, a sum is what it is by
/// those primes, and nothing by the others.
#[derive(Default)]
struct Relations {
    rows: Vec<Row>,
}

/// A sum of values at a join, by some of the primes.
struct Row {
    /// A term that no later row has by these primes. This one has it once.
    pivot: (usize, Vn),
    on_edges: OnEdges,
    sum: Linear,
}

impl Relations {
    /// Adds a sum. Returns a sum of it and of others that is congruent to 0 by some primes, times the power that is 1 by
    /// these and 0 by the others; and that power, which is 1 where it is congruent to 0 altogether.
    fn add(&mut self, on_edges: OnEdges, sum: Linear) -> (Linear, u64) {
        let (on_edges, sum) = self.less(on_edges, sum);
        // 1 by the primes for which no row was added.
        let mut primes = 1;
        loop {
            let times = |all: u64| all * primes % MODULUS;
            let Some((pivot, all)) = on_edges.terms().find(|(_, all)| times(*all) != 0) else { break };
            // The 255th power.
            let inverse = (0..8).fold(1, |power, _| power * power % MODULUS * times(all) % MODULUS);
            let of_pivot = inverse * times(all) % MODULUS;
            let row = Row { pivot, on_edges: scaled(&on_edges, inverse), sum: scaled(&sum, inverse) };
            self.rows.push(row);
            primes = (primes + MODULUS - of_pivot) % MODULUS;
        }
        (scaled(&sum, primes), primes)
    }

    /// A sum less as much of the others as can be taken from it.
    fn less(&self, mut on_edges: OnEdges, mut sum: Linear) -> (OnEdges, Linear) {
        for row in &self.rows {
            let times = MODULUS - on_edges.times(row.pivot);
            on_edges.add(&row.on_edges, times);
            sum.add(&row.sum, times);
        }
        (on_edges, sum)
    }
}

/// A multiple of a sum.
fn scaled<T: Copy + Ord>(sum: &Residue<T>, times: u64) -> Residue<T> {
    Residue::default().plus(sum, times)
}

/// What values at a join are congruent to on each edge.
#[derive(Default)]
struct AtJoin {
    /// Contents of the header's fields, parameters, and the first halves of wide ones, as an address is of a pair.
    values: Vec<(Vn, OnEdges)>,
    /// Further parts of wide parameters.
    parts: Vec<(Vn, OnEdges)>,
    /// The sum of the header, if it is not known yet.
    header: Option<OnEdges>,
}

impl Forward<'_> {
    /// Finds the parameters of a join that are congruent to sums of others and of what the packet has there, and what the
    /// header's sum is congruent to.
    ///
    /// What holds on a join's edges holds wherever a value is that is there because of the join: an own value since
    /// `start`, when the block began, or the content of a packet as no edge has it.
    pub(super) fn relate_params(&mut self, start: Version, params: &[Vn], edges: &mut [Edge]) {
        let net = Base::Net as usize;
        let has_sum = |edge: &Edge| edge.state.set[net] == IsSet::Yes && edge.state.header_sum().is_some();
        if !(2..=MOST_EDGES).contains(&edges.len()) || !edges.iter().all(has_sum) {
            return;
        }
        let differs = |at: &usize| edges.iter().any(|edge| edge.args[*at] != params[*at]);
        let differing: Vec<usize> = (0..params.len()).filter(differs).collect();
        if differing.len() > MOST_PARAMS || differing.is_empty() && self.state.right.is_some() {
            return;
        }
        for edge in edges.iter_mut() {
            edge.zeros = zero_sums(&mut self.values, &edge.state.facts);
        }
        let version = self.state.versions[0];
        let is_written = edges.iter().all(|edge| edge.state.versions[0] != version);
        let AtJoin { values, parts, header } = self.at_join(params, differing, edges);
        let mut relations = Relations::default();
        let sums = values.iter().map(|(_, on_edges)| on_edges).chain(&header);
        for value in self.on_all_edges(sums, edges) {
            let on_edges = self.on_edges(edges, |_, _| value);
            let _ = relations.add(on_edges, linear(&mut self.values, value, &Facts::default()));
        }
        for (part, on_edges) in parts {
            let (on_edges, zero) = relations.less(on_edges, Linear::only(part));
            let other = Linear::only(part).plus(&zero, MODULUS - 1);
            // Of four words, perhaps one was written on the way, and the others are what they were.
            if on_edges.is_zero() && other.len() == 1 && other.rest() == 0 {
                self.values.residues.insert(part, other);
            }
        }
        for (value, on_edges) in values {
            let known = linear(&mut self.values, value, &Facts::default());
            let is_of_join = match self.values.expr(value) {
                Expr::Own(number) => number > start,
                Expr::Load(of, ..) => is_written && of == version,
                _ => false,
            };
            let is_open = is_of_join && known == Linear::only(value);
            let (zero, _) = relations.add(on_edges, known);
            let residue = Linear::only(value).plus(&zero, MODULUS - 1);
            // A content that is a parameter comes twice.
            if is_open && !zero.is_zero() && is_short(&residue) {
                self.values.residues.insert(value, residue);
            }
        }
        if let Some((less, 1)) = header.map(|header| relations.add(header, Linear::default())) {
            self.header_adds_up_to(scaled(&less, MODULUS - 1), edges);
        }
    }

    /// What values at a join are congruent to, of parameters those at some indices.
    fn at_join(&mut self, params: &[Vn], indices: Vec<usize>, edges: &mut [Edge]) -> AtJoin {
        let mut join = AtJoin::default();
        for field in FIELDS {
            let Some((number, contents)) = self.content_on_edges(field, edges) else { continue };
            join.values.push((number, self.on_edges(edges, |at, _| contents[at])));
        }
        let is_wide = |at: &usize| self.values.bits(params[*at]) >> 32 != 0;
        let (wide, narrow): (Vec<usize>, Vec<usize>) = indices.into_iter().partition(is_wide);
        for at in wide {
            join.values.push((params[at], self.on_edges(edges, |_, edge| edge.args[at])));
            for by in [16, 32, 48] {
                let part =
                    |walk: &mut Self, value| walk.values.bin_const(BinOp::Shr, value, by, &Facts::default());
                let contents: Vec<Vn> = edges.iter().map(|edge| part(self, edge.args[at])).collect();
                let on_edges = self.on_edges(edges, |at, _| contents[at]);
                let parts = if by == 32 { &mut join.values } else { &mut join.parts };
                parts.push((part(self, params[at]), on_edges));
            }
        }
        for at in narrow {
            join.values.push((params[at], self.on_edges(edges, |_, edge| edge.args[at])));
        }
        join.header = self.state.right.is_none().then(|| self.header_on_edges(edges));
        join
    }

    /// The content of a field that is known on an edge: at the join, and on each edge.
    fn content_on_edges(&mut self, field: Field, edges: &mut [Edge]) -> Option<(Vn, Vec<Vn>)> {
        let held = |edge: &Edge| edge.state.held(edge.state.place(field), &mut self.values, &self.anchors);
        edges.iter().find_map(held)?;
        let content = |walk: &mut Self| walk.content_anywhere(walk.place(field));
        let on_edges = edges.iter_mut().map(|edge| self.on_edge(edge, content)).collect();
        Some((content(self), on_edges))
    }

    /// What the sum of the header is congruent to on each edge.
    fn header_on_edges(&mut self, edges: &[Edge]) -> OnEdges {
        let mut all = OnEdges::default();
        for (at, edge) in edges.iter().enumerate() {
            if let Some(right) = edge.state.header_sum() {
                let sum = settled(&right.sum, &mut self.values, &edge.state.facts);
                self.add_on_edge(&mut all, (at, edge), sum);
            }
        }
        all
    }

    /// The sum of the header is congruent to another one at a join.
    fn header_adds_up_to(&mut self, sum: Linear, edges: &[Edge]) {
        if !is_short(&sum) {
            return;
        }
        let at = self.state.at[Base::Net as usize];
        let length = |edge: &Edge| edge.state.header_sum().and_then(|right| right.length);
        let length = length(&edges[0]).filter(|first| edges.iter().all(|edge| length(edge) == Some(*first)));
        self.state.right = Some(RightSum { at, length, sum, changes: None });
    }

    /// What a value is congruent to on each edge.
    fn on_edges(&mut self, edges: &[Edge], value: impl Fn(usize, &Edge) -> Vn) -> OnEdges {
        let mut all = OnEdges::default();
        for (at, edge) in edges.iter().enumerate() {
            let residue = linear(&mut self.values, value(at, edge), &edge.state.facts);
            self.add_on_edge(&mut all, (at, edge), residue);
        }
        all
    }

    /// Adds what a value is congruent to on one edge.
    fn add_on_edge(&mut self, all: &mut OnEdges, (at, edge): (usize, &Edge), residue: Linear) {
        let residue = without(residue, &edge.zeros);
        let one = self.values.constant(1);
        residue.terms().for_each(|(value, times)| all.add_term((at, value), times));
        all.add_term((at, one), residue.rest());
    }

    /// The values that those of a join are congruent to multiples of on every edge, or would be if it were not known more
    /// of them there.
    fn on_all_edges<'b>(&mut self, all: impl Iterator<Item = &'b OnEdges>, edges: &[Edge]) -> Vec<Vn> {
        let mut terms: Vec<(Vn, usize)> =
            all.flat_map(|on_edges| on_edges.terms().map(|((at, value), _)| (value, at))).collect();
        for (at, edge) in edges.iter().enumerate() {
            terms.extend(edge.zeros.iter().map(|(value, _)| (*value, at)));
        }
        terms.sort_unstable();
        terms.dedup();
        let mut on_all = vec![self.values.constant(1)];
        for on_edges in terms.chunk_by(|one, other| one.0 == other.0) {
            let value = on_edges[0].0;
            let only = Linear::only(value);
            let is_on = |(at, edge): (usize, &Edge)| {
                let mut here = || without(settled(&only, &mut self.values, &edge.state.facts), &edge.zeros);
                on_edges.binary_search(&(value, at)).is_ok() || here() != only
            };
            if on_all.len() < MOST_ON_ALL && edges.iter().enumerate().all(is_on) {
                on_all.push(value);
            }
        }
        on_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EDGES: usize = 3;
    const ATOMS: Vn = 4;

    /// What a value is on each edge: multiples that primes of the modulus divide, and others.
    fn on_edges() -> impl Strategy<Value = OnEdges> {
        let times = prop_oneof![Just(1u64), Just(MODULUS - 1), Just(256), Just(768), Just(21845), 0..MODULUS];
        prop::collection::vec((0..EDGES, 0..ATOMS, times), 0..6).prop_map(|terms| {
            let mut all = OnEdges::default();
            terms.into_iter().for_each(|(edge, atom, times)| all.add_term((edge, atom), times));
            all
        })
    }

    proptest! {
        /// What is said to be congruent to 0 is, on each edge; and by which primes it is said to be.
        #[test]
        fn sums_that_are_found_are_zero(values in prop::collection::vec(on_edges(), 1..8)) {
            let mut relations = Relations::default();
            for at in 0..values.len() {
                let number = at as Vn;
                let (zero, primes) = relations.add(values[at].clone(), Linear::only(number));
                prop_assert_eq!(primes * primes % MODULUS, primes);
                let mut sum = OnEdges::default();
                zero.terms().for_each(|(value, times)| sum.add(&values[value as usize], times));
                prop_assert!(sum.is_zero(), "{zero:?}: {sum:?}");
                prop_assert_eq!(zero.times(number), primes);
            }
        }

        /// A sum of values that are there is found, whatever divides its multiples.
        #[test]
        fn a_sum_of_others_is_found(
            values in prop::collection::vec((on_edges(), 0..MODULUS), 1..8),
            number in 0..MODULUS,
        ) {
            let mut relations = Relations::default();
            let mut sum = OnEdges::default();
            for (at, (on_edges, times)) in values.iter().enumerate() {
                let _ = relations.add(on_edges.clone(), Linear::only(at as Vn));
                sum.add(on_edges, *times);
            }
            let (zero, primes) = relations.add(scaled(&sum, number), Linear::only(values.len() as Vn));
            prop_assert_eq!(primes, 1, "{:?}", zero);
        }
    }
}
