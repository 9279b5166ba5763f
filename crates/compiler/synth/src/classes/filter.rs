//! The conditions for a packet to take a path, in the order in which they are evaluated.
//!
//! The order matters where a condition creates a record: it may only be evaluated if those before it
//! hold.

use super::expr::Id;
use ir::analysis::interval::IntervalSet;
use std::collections::BTreeMap;
use std::sync::Arc;

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
