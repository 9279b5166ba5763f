//! The conditions for a packet to take a path, in the order in which they are evaluated.
//!
//! The order matters where a condition creates a record: it may only be evaluated if those before it
//! hold.

use super::expr::Id;
use ir::analysis::interval::IntervalSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often alternatives are ruled out by what others say that were left alone.
const PROPAGATIONS: usize = 4;

/// A condition: an expression's value is in a set.
pub type Condition = (Id, IntervalSet);

/// A part of a filter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Factor {
    /// A condition holds.
    Is(Id, IntervalSet),
    /// All conditions of one of the lists hold. No packet satisfies two of the lists. Filters of paths that were one
    /// share them.
    Any(Arc<[Vec<Factor>]>),
}

/// A filter: all parts must hold.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Filter(pub Vec<Factor>);

impl Filter {
    /// Adds a condition, as a narrower set where the expression has one.
    pub fn add(&mut self, id: Id, set: &IntervalSet) {
        for factor in &mut self.0 {
            if let Factor::Is(known, own) = factor
                && *known == id
            {
                *own = own.intersection(set);
                return;
            }
        }
        self.0.push(Factor::Is(id, set.clone()));
    }

    /// The conditions that all packets satisfy.
    pub fn conditions(&self) -> impl Iterator<Item = (Id, &IntervalSet)> {
        self.0.iter().filter_map(|factor| match factor {
            Factor::Is(id, set) => Some((*id, set)),
            Factor::Any(_) => None,
        })
    }

    /// The numbers that expressions have for every packet that passes. More packets may have them.
    pub fn required(&self) -> BTreeMap<Id, IntervalSet> {
        required(&self.0)
    }

    /// Whether it says itself that no packet passes: none of no alternatives holds.
    pub fn is_never(&self) -> bool {
        self.0.iter().any(|factor| match factor {
            Factor::Is(_, set) => set.is_empty(),
            Factor::Any(lists) => lists.is_empty(),
        })
    }

    /// Whether conditions of both show that no packet passes both. Less work than [`Filter::propagated`] of both together,
    /// which shows more.
    pub fn rules_out(&self, other: &Filter) -> bool {
        let mut said = Said::default();
        let mut open: Vec<&[Vec<Factor>]> = vec![];
        said.add(self.0.iter().chain(&other.0), &mut open);
        for _ in 0..PROPAGATIONS {
            if said.is_contradiction() {
                return true;
            }
            let (mut left, mut alone) = (vec![], vec![]);
            let count = open.len();
            for lists in std::mem::take(&mut open) {
                let mut possible = lists.iter().filter(|list| said.allows(list, &[]));
                match (possible.next(), possible.next()) {
                    (None, _) => return true,
                    (Some(only), None) => alone.push(only),
                    _ => left.push(lists),
                }
            }
            if left.len() == count {
                return false;
            }
            open = left;
            said.add(alone.into_iter().flatten(), &mut open);
        }
        false
    }

    /// Without alternatives that what is said around them rules out; `None` if no packet passes. An alternative that is
    /// left alone says more, which may rule out others.
    pub fn propagated(&self) -> Option<Filter> {
        let mut now = self.clone();
        for _ in 0..PROPAGATIONS {
            let mut has_changed = false;
            now.0 = possible(&now.0, &BTreeMap::new(), &mut has_changed)?;
            if !has_changed {
                break;
            }
        }
        Some(now)
    }

    /// The one expression in whose sets the filters differ, as its place among the conditions; `Some(None)` if they are
    /// equal, `None` if they differ in more.
    fn difference(&self, other: &Filter) -> Option<Option<usize>> {
        if self.0.len() != other.0.len() {
            return None;
        }
        let pairs = self.0.iter().zip(&other.0).enumerate();
        let mut differing = pairs.filter(|(_, (mine, theirs))| mine != theirs);
        match (differing.next(), differing.next()) {
            (None, _) => Some(None),
            (Some((at, (Factor::Is(id, _), Factor::Is(same, _)))), None) if id == same => Some(Some(at)),
            _ => None,
        }
    }

    /// The union of both filters, if they differ in the set of one expression only.
    pub fn joined(&self, other: &Filter) -> Option<Filter> {
        let at = self.difference(other)?;
        let mut joined = self.clone();
        if let Some(at) = at
            && let (Factor::Is(_, set), Factor::Is(_, other)) = (&mut joined.0[at], &other.0[at])
        {
            *set = set.union(other);
        }
        Some(joined)
    }

    /// The one expression in whose sets the filters differ, as its place among the conditions, if no packet passes both.
    pub fn parted_by(&self, other: &Filter) -> Option<usize> {
        let at = self.difference(other)??;
        let (Factor::Is(_, mine), Factor::Is(_, theirs)) = (&self.0[at], &other.0[at]) else { return None };
        (!mine.meets(theirs)).then_some(at)
    }

    /// A filter for packets of any of them: the common conditions, and the different ones as
    /// alternatives. `early` returns whether an expression may be evaluated at any time.
    pub fn alternatives(filters: Vec<Filter>, mut early: impl FnMut(Id) -> bool) -> Filter {
        let Some(first) = filters.first() else { return Filter::default() };
        let mut common = first.0.len();
        for filter in &filters {
            let same = first.0.iter().zip(&filter.0).take_while(|(a, b)| a == b).count();
            common = common.min(same);
        }
        let mut all = first.0[..common].to_vec();
        let shared: Vec<Factor> = first.0[common..]
            .iter()
            .filter(|factor| filters.iter().all(|filter| filter.0[common..].contains(factor)))
            .filter(|factor| matches!(factor, Factor::Is(id, _) if early(*id)))
            .cloned()
            .collect();
        let rests = filters.into_iter().map(|filter| {
            let rest = filter.0.into_iter().skip(common);
            rest.filter(|factor| !shared.contains(factor)).collect::<Vec<Factor>>()
        });
        let rests: Vec<Vec<Factor>> = rests.collect();
        all.extend(shared);
        // If one of them has no further condition, all packets satisfy the alternatives.
        if rests.iter().all(|rest| !rest.is_empty()) {
            all.push(Factor::Any(rests.into()));
        }
        Filter(all)
    }
}

/// Visits every condition, also those of alternatives, in their order.
pub fn each_condition<'f>(factors: &'f [Factor], visit: &mut impl FnMut(Id, &'f IntervalSet)) {
    for factor in factors {
        match factor {
            Factor::Is(id, set) => visit(*id, set),
            Factor::Any(lists) => lists.iter().for_each(|list| each_condition(list, visit)),
        }
    }
}

/// The numbers that expressions have for every packet that passes these conditions. More packets may have them.
fn required(factors: &[Factor]) -> BTreeMap<Id, IntervalSet> {
    let mut all = BTreeMap::new();
    require(factors, &mut all);
    all
}

/// Conditions that all packets satisfy.
#[derive(Default)]
struct Said<'f> {
    /// In the order of the expressions.
    conditions: Vec<(Id, &'f IntervalSet)>,
}

impl<'f> Said<'f> {
    /// Adds conditions; alternatives go to `open`.
    fn add(&mut self, factors: impl Iterator<Item = &'f Factor>, open: &mut Vec<&'f [Vec<Factor>]>) {
        for factor in factors {
            match factor {
                Factor::Is(id, set) => self.conditions.push((*id, set)),
                Factor::Any(lists) => open.push(lists),
            }
        }
        self.conditions.sort_unstable_by_key(|(id, _)| *id);
    }

    fn is_contradiction(&self) -> bool {
        let by_id = self.conditions.chunk_by(|one, other| one.0 == other.0);
        let mut many = by_id.filter(|same| same.len() > 1);
        many.any(|same| {
            same.iter()
                .enumerate()
                .any(|(at, (_, set))| !same[at + 1..].iter().all(|(_, other)| set.meets(other)))
        })
    }

    /// Whether conditions do not contradict these, nor those of lists around them.
    fn allows(&self, list: &[Factor], around: &[&[Factor]]) -> bool {
        list.iter().all(|factor| match factor {
            Factor::Is(id, set) => {
                let from = self.conditions.partition_point(|known| known.0 < *id);
                let mut same = self.conditions[from..].iter().take_while(|known| known.0 == *id);
                let of_lists = around.iter().flat_map(|list| list.iter());
                same.all(|(_, known)| known.meets(set))
                    && of_lists.into_iter().all(
                        |known| !matches!(known, Factor::Is(same, known) if same == id && !known.meets(set)),
                    )
            }
            Factor::Any(lists) => {
                let around = [around, &[list]].concat();
                lists.iter().any(|inner| self.allows(inner, &around))
            }
        })
    }
}

/// Conditions without the alternatives that these and the ones around them rule out; `None` if no packet passes.
fn possible(
    factors: &[Factor],
    around: &BTreeMap<Id, IntervalSet>,
    has_changed: &mut bool,
) -> Option<Vec<Factor>> {
    let mut all = around.clone();
    require(factors, &mut all);
    if all.values().any(IntervalSet::is_empty) {
        return None;
    }
    let mut left = vec![];
    for factor in factors {
        let Factor::Any(lists) = factor else {
            left.push(factor.clone());
            continue;
        };
        let mut kept: Vec<Vec<Factor>> =
            lists.iter().filter_map(|list| possible(list, &all, has_changed)).collect();
        *has_changed |= kept.len() < lists.len();
        match kept.len() {
            0 => return None,
            1 => left.append(&mut kept[0]),
            _ => left.push(Factor::Any(kept.into())),
        }
    }
    Some(left)
}

/// Narrows the numbers of expressions to those that they have for every packet that passes these conditions, too.
pub fn require(factors: &[Factor], all: &mut BTreeMap<Id, IntervalSet>) {
    let mut narrow = |id: Id, set: &IntervalSet| {
        all.entry(id).and_modify(|own| *own = own.intersection(set)).or_insert_with(|| set.clone());
    };
    for factor in factors {
        match factor {
            Factor::Is(id, set) => narrow(*id, set),
            // What each of the alternatives requires.
            Factor::Any(lists) => {
                let each = lists.iter().map(|list| required(list)).reduce(|mut all, other| {
                    all.retain(|id, set| match other.get(id) {
                        Some(other) => {
                            *set = set.union(other);
                            true
                        }
                        None => false,
                    });
                    all
                });
                each.iter().flatten().for_each(|(id, set)| narrow(*id, set));
            }
        }
    }
}
