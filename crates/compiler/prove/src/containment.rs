//! Where the packets of the elements' classes are: which classes of the program have them, and whether those do the same.
//!
//! Most classes are in one of the program that does the same, by the same expressions ([`sorted`]). Of the others, the
//! program treats packets apart that are one class of the elements, because it knows more of each. If each packet is in
//! one of several that do the same ([`decide`]), the program does to it what the elements do, and the classes that do
//! something else need not be looked at: they are most of those whose conditions alone do not tell them apart.

use crate::bounds::{Bounds, Index, Known, MOST_CASES, MOST_OF_ONE, Meeting};
use crate::parallel;
use ir::analysis::interval::IntervalSet;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use synth::classes::expr::{Id, Node, Pool};
use synth::classes::facts::Facts;
use synth::classes::filter::{Factor, Filter};
use synth::classes::path_state::PathState;
use synth::classes::{Class, Exit, SettledForm, settled_for_both};
use synth::deadline::Deadline;

/// Classes whose ends are put into another one's form: each makes expressions.
const MOST_OTHERS: usize = 64;
/// Alternatives by which packets are divided, each in a form of its own.
const MOST_PARTS: usize = 8;
/// How often the packets of a class are divided, to find them in classes of the program.
const DIVISIONS: usize = 3;
/// Pairs of an entry's classes that are put into one form, of those that would be questions for the solver.
const MOST_FOR_BOTH: usize = 100_000;

/// Where the packets of a class of the elements are.
pub enum Sorted {
    /// There was no time to find that.
    Late,
    /// By its form, it has no packets.
    Empty,
    /// In classes of the program that do the same: one that is the same, if there is one.
    Inside {
        /// That one.
        twin: Option<usize>,
    },
    /// Not in one alone, as far as is known.
    Outside(Outside),
}

/// A class of the elements that may not be in one class of the program that does the same.
pub struct Outside {
    /// Its number.
    pub class: usize,
    /// The classes of the program that may have some of its packets.
    pub meeting: Vec<usize>,
    /// Those of them that do the same for these.
    pub same: Vec<usize>,
    /// Those of which it is open whether they have any, and what they do.
    pub others: Vec<usize>,
    /// Whether each of its packets is in one of these.
    pub is_covered: bool,
}

/// Both sides' classes, the elements' first.
type Sides<'c> = [&'c [Class]; 2];

/// Where the packets of each class of the elements are, until a deadline.
pub fn sorted(pool: &Pool, [mine, theirs]: Sides<'_>, deadline: &Deadline) -> Vec<Sorted> {
    let bounds: Vec<Bounds> = theirs.iter().map(|class| Bounds::of(&class.filter)).collect();
    let index = Index::of(&bounds);
    let cases = Cases(AtomicUsize::new(MOST_CASES));
    parallel::each(
        parallel::threads(),
        &vec![1; mine.len()],
        // The forms that classes are put into are not needed later: each thread has a pool of its own.
        || (pool.clone(), Meeting::among(&index)),
        |(pool, meeting), at| {
            cases.of_one(|cases| sort(pool, (at, &mine[at]), theirs, meeting, cases, deadline))
        },
    )
}

fn sort(
    pool: &mut Pool,
    (number, class): (usize, &Class),
    theirs: &[Class],
    meeting: &mut Meeting<'_>,
    cases: &Cell<usize>,
    deadline: &Deadline,
) -> Sorted {
    if deadline.is_over() {
        return Sorted::Late;
    }
    if class.filter.is_never() {
        return Sorted::Empty;
    }
    let bounds = Bounds::of(&class.filter);
    let mut meeting = meeting.with(&bounds);
    meeting.retain(|at| !theirs[*at].filter.is_never());
    let mut same: Vec<usize> = meeting.iter().copied().filter(|at| does_same(class, &theirs[*at])).collect();
    let twin = same.iter().copied().find(|at| theirs[*at].filter == class.filter);
    // If all packets of the class are in one class of the program that does the same, by the same expressions, the
    // program does to them what the elements do.
    let has_all = |pool: &Pool| {
        let known = Known::of(pool, &class.filter, &bounds, cases, deadline);
        known.is_none_or(|known| same.iter().any(|at| known.implies(&theirs[*at].filter.0)))
    };
    let is_inside = twin.is_some() || has_all(pool) || {
        let (form, more) = in_form_of(pool, class, theirs, (&same, &meeting), deadline);
        same = more;
        form.is_none_or(|form| is_in_one(pool, &form, cases, deadline))
    };
    if is_inside {
        return Sorted::Inside { twin };
    }
    let others = meeting.iter().copied().filter(|at| !same.contains(at)).collect();
    Sorted::Outside(Outside { class: number, meeting, same, others, is_covered: false })
}

/// Finds which of their others do the same, or have none of their packets, until a deadline; and whether each packet is in
/// one that does the same, or is left.
pub fn decide(pool: &Pool, sides: Sides<'_>, outside: &mut [Outside], deadline: &Deadline) {
    let cases = MOST_OF_ONE.min(MOST_CASES / outside.len().max(1));
    let deciding = Deciding { sides, cases, deadline };
    deciding.among_alike(pool, outside);
    deciding.among_unlike(pool, outside);
    deciding.with_what_is_left(pool, outside);
}

/// What the form that the filters of two classes give both says of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForBoth {
    /// They do the same for packets of both.
    Same,
    /// There is no packet of both.
    Apart,
    /// Neither.
    Open,
}

/// What it takes to decide about classes.
struct Deciding<'a> {
    sides: Sides<'a>,
    /// Alternatives that are looked at one by one, each time.
    cases: usize,
    deadline: &'a Deadline,
}

impl Deciding<'_> {
    /// Does something for each of these on all threads, with a pool for each thread.
    fn each<T: Sync, R: Send>(
        &self,
        pool: &Pool,
        all: &[T],
        job: impl Fn(&mut Pool, &T) -> R + Sync,
    ) -> Vec<R> {
        let weights = vec![1; all.len()];
        parallel::each(parallel::threads(), &weights, || pool.clone(), |pool, at| job(pool, &all[at]))
    }

    /// Compares each with those that may do the same. As a rule these are few, and if they have all packets of a class, no
    /// other one has any.
    fn among_alike(&self, pool: &Pool, outside: &mut [Outside]) {
        let about = |pool: &mut Pool, one: &Outside| {
            let (mut same, mut others) = (one.same.clone(), vec![]);
            for at in &one.others {
                match self.may_do_same(one.class, *at).then(|| self.for_both(pool, (one.class, *at))) {
                    Some(ForBoth::Same) => same.push(*at),
                    Some(ForBoth::Apart) => {}
                    Some(ForBoth::Open) | None => others.push(*at),
                }
            }
            let is_covered = self.is_covered(pool, one.class, &same);
            (same, if is_covered { vec![] } else { others }, is_covered)
        };
        let found = self.each(pool, outside, about);
        for (one, found) in outside.iter_mut().zip(found) {
            (one.same, one.others, one.is_covered) = found;
        }
    }

    /// Finds which of the others that cannot do the same have none of their packets.
    fn among_unlike(&self, pool: &Pool, outside: &mut [Outside]) {
        let pairs = |one: &Outside| {
            let class = one.class;
            let unlike = one.others.iter().filter(|at| !self.may_do_same(class, **at));
            unlike.map(|at| (class, *at)).collect::<Vec<_>>()
        };
        let all: Vec<(usize, usize)> = outside.iter().flat_map(pairs).take(MOST_FOR_BOTH).collect();
        let found = self.each(pool, &all, |pool, pair| self.for_both(pool, *pair));
        let apart = all.iter().zip(found).filter(|(_, found)| *found == ForBoth::Apart);
        let apart: BTreeSet<&(usize, usize)> = apart.map(|(pair, _)| pair).collect();
        for one in outside {
            one.others.retain(|at| !apart.contains(&(one.class, *at)));
        }
    }

    /// Whether each packet is in one that does the same, or in one of which it is open what it does.
    fn with_what_is_left(&self, pool: &Pool, outside: &mut [Outside]) {
        let mut left: Vec<&mut Outside> =
            outside.iter_mut().filter(|one| !one.is_covered && !one.others.is_empty()).collect();
        let covered = self.each(pool, &left, |pool, one| {
            self.is_covered(pool, one.class, &[&one.same[..], &one.others].concat())
        });
        left.iter_mut().zip(covered).for_each(|(one, is_covered)| one.is_covered = is_covered);
    }

    /// Whether two classes may do the same in some form: no form makes more or fewer lookups.
    fn may_do_same(&self, class: usize, other: usize) -> bool {
        may_do_same(&self.sides[0][class], &self.sides[1][other])
    }

    fn for_both(&self, pool: &mut Pool, (class, other): (usize, usize)) -> ForBoth {
        let (class, other) = (&self.sides[0][class], &self.sides[1][other]);
        if self.deadline.is_over() {
            return ForBoth::Open;
        }
        // Less work than a form, and often enough; the solver would have more.
        if class.filter.rules_out(&other.filter) {
            return ForBoth::Apart;
        }
        let mut in_form = |thoroughly: bool| {
            let ends = may_do_same(class, other).then_some([&class.end, &other.end]);
            let filters = [&class.filter, &other.filter];
            match settled_for_both(pool, filters, ends.into_iter().flatten(), thoroughly).as_deref() {
                None => ForBoth::Apart,
                Some([mine, theirs]) if ends_same(class.exit, [mine, theirs]) => ForBoth::Same,
                Some(_) => ForBoth::Open,
            }
        };
        match in_form(false) {
            ForBoth::Open => in_form(true),
            decided => decided,
        }
    }

    /// Whether each packet of a class is in one of these.
    fn is_covered(&self, pool: &mut Pool, class: usize, others: &[usize]) -> bool {
        if self.deadline.is_over() || others.is_empty() || others.len() > MOST_OTHERS {
            return false;
        }
        let [mine, theirs] = self.sides;
        let others: Vec<&Filter> = others.iter().map(|at| &theirs[*at].filter).collect();
        let cases = Cell::new(self.cases);
        is_in_some(pool, &mine[class].filter, &others, (&cases, self.deadline), DIVISIONS)
    }
}

/// Whether two classes do the same by the same expressions.
fn does_same(a: &Class, b: &Class) -> bool {
    a.exit == b.exit && ends_same(a.exit, [&a.end, &b.end])
}

/// Whether packets end the same by the same expressions. Of a packet that is dropped, nothing is seen.
fn ends_same(exit: Exit, [a, b]: [&PathState; 2]) -> bool {
    match exit {
        Exit::Drop(_) => (&a.records, &a.cells, &a.finds) == (&b.records, &b.cells, &b.finds),
        _ => a == b,
    }
}

/// Whether two classes may do the same in some form: no form makes more or fewer lookups.
fn may_do_same(a: &Class, b: &Class) -> bool {
    (a.exit, a.end.finds.len()) == (b.exit, b.end.finds.len())
}

/// A class's filter, and those of other classes, in the form that it gives them, without those that have none.
type InForm = (Filter, Vec<Filter>);

/// That of the classes that do the same for packets of a class, if it has any; and which ones these are.
fn in_form_of(
    pool: &mut Pool,
    class: &Class,
    all: &[Class],
    (same, meeting): (&[usize], &[usize]),
    deadline: &Deadline,
) -> (Option<InForm>, Vec<usize>) {
    if deadline.is_over() {
        return (Some((class.filter.clone(), vec![])), same.to_vec());
    }
    let more = meeting.iter().filter(|at| !same.contains(at) && may_do_same(class, &all[**at]));
    let others: Vec<usize> = same.iter().chain(more.take(MOST_OTHERS)).copied().collect();
    let Some(mut form) = SettledForm::of(pool, &class.filter) else { return (None, vec![]) };
    let end = form.end(&class.end);
    let does_same = |at: &usize| ends_same(class.exit, [&end, &form.end(&all[*at].end)]);
    let same: Vec<usize> = others.into_iter().filter(does_same).collect();
    let filters = same.iter().map(|at| form.filter(&all[*at].filter)).collect();
    (Some((form.own().clone(), filters)), same)
}

/// Whether each packet of a class is in one of the others.
fn is_in_one(pool: &Pool, (own, others): &InForm, cases: &Cell<usize>, deadline: &Deadline) -> bool {
    let known = Known::of(pool, own, &Bounds::of(own), cases, deadline);
    known.is_none_or(|known| known.is_in_one(&others.iter().collect::<Vec<_>>()))
}

/// Whether each packet of a filter is in one of the others: if need be in parts, each in a form of its own. Those are the
/// packets with one number that one of the others asks for, and those without: what is looked up by that number is another
/// expression then. Where none asks for one, they are the packets of each alternative.
fn is_in_some(
    pool: &mut Pool,
    filter: &Filter,
    others: &[&Filter],
    (cases, deadline): (&Cell<usize>, &Deadline),
    divisions: usize,
) -> bool {
    let Some(mut form) = SettledForm::of(pool, filter) else { return true };
    let settled = others.iter().map(|other| form.filter(other)).collect();
    let in_form = (form.own().clone(), settled);
    if is_in_one(pool, &in_form, cases, deadline) {
        return true;
    }
    if divisions == 0 || deadline.is_over() {
        return false;
    }
    let Some(facts) = Facts::of(pool, filter.required()) else { return true };
    let is_asked = |(id, set): &(Id, &IntervalSet)| {
        let known = facts.known(pool, *id);
        matches!(pool.node(*id), Node::Atom(_))
            && set.only().is_some()
            && set.meets(&known)
            && !set.covers(&known)
    };
    let mut asked = others.iter().flat_map(|other| other.conditions()).filter(is_asked);
    let parts: Vec<Filter> = match asked.next() {
        Some((id, set)) => {
            let with = |set: &IntervalSet| {
                let mut some = filter.clone();
                some.add(id, set);
                some
            };
            [set.clone(), set.complement(u64::MAX)].iter().map(with).collect()
        }
        None => by_alternative(filter),
    };
    let is_inside = |part: &Filter| is_in_some(pool, part, others, (cases, deadline), divisions - 1);
    !parts.is_empty() && parts.iter().all(is_inside)
}

/// The packets of a filter in parts, by the one of its alternatives that says most, if these are few.
fn by_alternative(filter: &Filter) -> Vec<Filter> {
    let alternatives = filter.0.iter().enumerate().filter_map(|(at, factor)| match factor {
        Factor::Any(lists) if (2..=MOST_PARTS).contains(&lists.len()) => Some((at, lists)),
        _ => None,
    });
    let Some((at, lists)) = alternatives.max_by_key(|(_, lists)| lists.iter().map(Vec::len).sum::<usize>())
    else {
        return vec![];
    };
    let with = |list: &Vec<Factor>| {
        let (before, behind) = (&filter.0[..at], &filter.0[at + 1..]);
        Filter(before.iter().chain(list).chain(behind).cloned().collect())
    };
    lists.iter().map(with).collect()
}

/// The alternatives that may still be looked at one by one, of all classes of an entry together. Which classes have the last
/// ones depends on the threads.
struct Cases(AtomicUsize);

impl Cases {
    /// Does something for one class with as many as it may have; those that it leaves are for others.
    fn of_one<T>(&self, with: impl FnOnce(&Cell<usize>) -> T) -> T {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - MOST_OF_ONE.min(left)));
        let cases = Cell::new(MOST_OF_ONE.min(taken.unwrap_or(0)));
        let result = with(&cases);
        self.0.fetch_add(cases.get(), Ordering::Relaxed);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_programs::by_protocol;
    use synth::classes::{Classes, Options};

    /// The parts of a filter by alternatives are all of its packets, each with what else the filter says.
    #[test]
    fn parts_by_alternative_keep_the_rest() {
        let classes = Classes::of(&by_protocol(), &Options::default());
        let ids: Vec<Id> =
            classes.classes.iter().flat_map(|class| class.filter.0.iter()).filter_map(first).collect();
        let is = |at: usize, number| Factor::Is(ids[at], IntervalSet::one(number));
        let few = Factor::Any([vec![is(0, 1)], vec![is(0, 2)]].into());
        let more = Factor::Any([vec![is(0, 3), is(1, 1)], vec![is(0, 4), is(1, 2)], vec![is(0, 5)]].into());
        let filter = Filter(vec![is(1, 7), few.clone(), more, is(0, 8)]);
        let part = |own: Vec<Factor>| Filter([vec![is(1, 7), few.clone()], own, vec![is(0, 8)]].concat());
        let parts = [vec![is(0, 3), is(1, 1)], vec![is(0, 4), is(1, 2)], vec![is(0, 5)]].map(part);
        assert_eq!(by_alternative(&filter), parts);
        assert_eq!(by_alternative(&Filter(vec![is(1, 7)])), vec![]);
    }

    fn first(factor: &Factor) -> Option<Id> {
        match factor {
            Factor::Is(id, _) => Some(*id),
            Factor::Any(_) => None,
        }
    }

    /// A class that the program has in two parts is in both together and in neither alone; without the time for it, it is
    /// in none.
    #[test]
    fn a_class_is_in_the_parts_that_a_program_has_of_it() {
        let mut classes = Classes::of(&by_protocol(), &Options::default());
        let whole = Filter::default();
        let id =
            classes.classes.iter().flat_map(|class| &class.filter.0).find_map(first).expect("a condition");
        let set = IntervalSet::one(6);
        let parts = [set.clone(), set.complement(u64::MAX)].map(|set| Filter(vec![Factor::Is(id, set)]));
        let deadline = Deadline::default();
        let mut is_in = |others: &[&Filter], cases: usize| {
            is_in_some(&mut classes.pool, &whole, others, (&Cell::new(cases), &deadline), DIVISIONS)
        };
        assert!(is_in(&[&parts[0], &parts[1]], MOST_OF_ONE));
        assert!(!is_in(&[&parts[0]], MOST_OF_ONE));
        assert!(!is_in(&[&parts[1]], MOST_OF_ONE));
        assert!(!is_in(&[], MOST_OF_ONE));
    }
}
