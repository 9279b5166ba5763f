//! The classes of an entry, of both sides, and what of their comparison is left for the solver.
//!
//! Classes of both sides are put into one form first ([`settle`]). Where the program has the class as it is, no question
//! is needed; classes that share no packet by their conditions alone ([`crate::bounds`]) are not looked at.

use crate::bounds::{Bounds, Index, Known, MOST_CASES, MOST_OF_ONE};
use crate::cover::{self, Packets};
use crate::parallel;
use ir::Verified;
use ir::analysis::interval::IntervalSet;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use synth::classes::expr::{Id, Node, Pool};
use synth::classes::facts::Facts;
use synth::classes::filter::Filter;
use synth::classes::path_state::PathState;
use synth::classes::{Class, Classes, Exit, Options, SettledForm, settle, settled_for_both};
use synth::deadline::Deadline;

/// Classes of the elements for which one solver is used, one after the other: they share expressions.
const TOGETHER: usize = 32;
/// Classes without packets that are asked about at once.
const TOGETHER_EMPTY: usize = 200;
/// With more classes of the elements that are in none of the program, the program's are asked about all packets instead.
pub const FEW_OUTSIDE: usize = 8;

/// The results for pairs of classes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pairs {
    /// All pairs of one entry.
    pub all: usize,
    /// Pairs whose outcomes have identical expressions or bits.
    pub same: usize,
    /// Pairs with no packet in both, or all packets of the first one are in others that do the same.
    pub apart: usize,
    /// Pairs that are equal for the packets in both, according to the solver.
    pub equal: usize,
    /// Pairs that were not decided.
    pub open: usize,
}

/// A class of the elements, and those of the program that may have packets of it.
pub struct Question {
    /// The class.
    pub class: usize,
    /// Those of the program.
    pub others: Vec<usize>,
}

/// A part of the question whether the elements' classes are all packets. It needs nothing but their filters as the walk
/// found them, so that it can be asked while the program is walked.
pub struct Covering {
    /// The classes.
    pub walked: Arc<Walked>,
    /// The packets that are asked about.
    pub packets: Packets,
}

/// Filters of classes, with their expressions.
pub struct Walked {
    /// Their expressions.
    pub pool: Pool,
    /// Their filters.
    pub filters: Arc<[Filter]>,
}

/// A part of the comparison, which can be done by itself.
pub enum Part {
    /// Whether the classes of the program have all of these packets.
    Cover(Packets),
    /// Whether these classes of the elements, of which their form says that they have no packets, have none.
    Empty(Vec<usize>),
    /// These classes.
    Classes(Vec<Question>),
}

/// The classes of one entry, of both sides, over one pool.
pub struct EntryClasses {
    /// Its number.
    pub number: usize,
    /// The numbers of its first classes among those of all entries.
    pub first: [usize; 2],
    /// The filters of both sides' classes, as the walks found them: they have more conditions in common.
    pub walked: [Arc<[Filter]>; 2],
    /// The elements' classes. Their pool has the expressions of both sides.
    pub elements: Classes,
    /// The program's classes.
    pub program: Classes,
    /// The program's classes that the elements have as they are.
    pub twins: BTreeSet<usize>,
    /// What is known of pairs without the solver.
    pub pairs: Pairs,
    /// The elements' classes for which there was no time to find that.
    pub unsorted: usize,
    /// Whether each packet of an element's class is in one of the program.
    pub are_inside: bool,
    /// What is left.
    pub parts: Vec<Part>,
}

impl EntryClasses {
    /// Walks both programs from an entry. The walks of each entry have a pool and names of headers of their
    /// own: conditions are cut where headers begin, and a header that only packets of another entry have
    /// would cut those of one side, which then look different from the other's.
    ///
    /// Once the elements are walked, what is to be asked about their classes alone is handed to `leave`, of `together`
    /// classes at once.
    pub fn walk(
        [elements, program]: [&Verified; 2],
        number: usize,
        options: &Options<'_>,
        (together, leave): (usize, &mut dyn FnMut(Covering)),
    ) -> EntryClasses {
        let entries = [number];
        let options = Options { entries: Some(&entries), ..*options };
        let filters = |classes: &Classes| -> Arc<[Filter]> {
            classes.classes.iter().map(|class| class.filter.clone()).collect()
        };
        let mut elements = Classes::of(elements, &options);
        let of_elements = filters(&elements);
        // Without the ways that were left out, they are not all.
        if elements.left.is_empty() {
            let walked = Walked { pool: elements.pool.clone(), filters: Arc::clone(&of_elements) };
            let (walked, all) = (Arc::new(walked), (0..elements.classes.len()).collect());
            let parts = cover::divided(&walked.filters, all, together);
            parts.into_iter().for_each(|packets| leave(Covering { walked: Arc::clone(&walked), packets }));
        }
        let pool = std::mem::take(&mut elements.pool);
        let mut program = Classes::among(pool, program, &options);
        elements.pool = std::mem::take(&mut program.pool);
        for class in elements.classes.iter_mut().chain(&mut program.classes) {
            class.entry = number;
        }
        let walked = [of_elements, filters(&program)];
        // Many classes of the program are the elements' as they are: these are put into that form once.
        let of_elements = elements.classes.iter().enumerate();
        let known: HashMap<_, _> = of_elements.map(|(at, class)| ((&class.filter, &class.end), at)).collect();
        let same = program.classes.iter().map(|class| known.get(&(&class.filter, &class.end)).copied());
        let same: Vec<Option<usize>> = same.collect();
        for class in &mut elements.classes {
            if options.is_over() {
                break;
            }
            settle(&mut elements.pool, class);
        }
        for (class, same) in program.classes.iter_mut().zip(same) {
            match same.map(|at| &elements.classes[at]) {
                Some(same) => (class.filter, class.end) = (same.filter.clone(), same.end.clone()),
                None if options.is_over() => {}
                None => settle(&mut elements.pool, class),
            }
        }
        EntryClasses {
            number,
            first: [0, 0],
            walked,
            elements,
            program,
            twins: BTreeSet::new(),
            pairs: Pairs::default(),
            unsorted: 0,
            are_inside: false,
            parts: vec![],
        }
    }

    /// Finds what the solver has to decide, until a deadline. Whether classes are all packets is asked about
    /// `together` of them at once.
    pub fn sort(&mut self, deadline: &Deadline, together: usize) {
        let (mine, theirs) = (&self.elements.classes, &self.program.classes);
        let bounds: Vec<Bounds> = theirs.iter().map(|class| Bounds::of(&class.filter)).collect();
        let is_never: Vec<bool> = theirs.iter().map(|class| class.filter.is_never()).collect();
        let mut index = Index::of(&bounds);
        let mut pairs = Pairs::default();
        let mut cases = Cases::default();
        let (mut outside, mut empty) = (vec![], vec![]);
        for (number, class) in mine.iter().enumerate() {
            pairs.all += theirs.len();
            if deadline.is_over() {
                pairs.open += theirs.len();
                self.unsorted += 1;
                continue;
            }
            if class.filter.is_never() {
                pairs.apart += theirs.len();
                empty.push(number);
                continue;
            }
            let cases = cases.of_next();
            let bounds = Bounds::of(&class.filter);
            let mut meeting = index.meeting(&bounds);
            meeting.retain(|at| !is_never[*at]);
            let mut same: Vec<usize> =
                meeting.iter().copied().filter(|at| does_same(class, &theirs[*at])).collect();
            let twin = same.iter().find(|at| theirs[**at].filter == class.filter);
            self.twins.extend(twin);
            // If all packets of the class are in one class of the program that does the same, by the same
            // expressions, the program does to them what the elements do.
            let pool = &mut self.elements.pool;
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
                pairs.same += 1;
                // Of a class without packets, there need not be one.
                pairs.apart += theirs.len().saturating_sub(1);
                continue;
            }
            pairs.apart += theirs.len() - meeting.len();
            pairs.same += same.len();
            let others = meeting.iter().copied().filter(|at| !same.contains(at)).collect();
            outside.push(Outside { class: number, meeting, same, others });
        }
        for_both(&self.elements.pool, [mine, theirs], &mut outside, deadline, &mut pairs);
        self.pairs = pairs;
        let questions = outside.iter().filter(|one| !one.others.is_empty());
        let mut questions: Vec<Question> =
            questions.map(|one| Question { class: one.class, others: one.others.clone() }).collect();
        if self.has_all_ways() {
            let pool = &mut self.elements.pool;
            outside.retain(|one| !one.is_covered(pool, [mine, theirs], cases.of_next(), deadline));
            // What is in the elements' classes is in the program's where each of these is in one of those.
            self.are_inside = outside.is_empty() && self.unsorted == 0;
            let packets: Vec<Packets> = match self.unsorted > 0 || outside.len() > FEW_OUTSIDE {
                true => {
                    let with_packets = (0..theirs.len()).filter(|at| !is_never[*at]).collect();
                    cover::divided(&self.walked[1], with_packets, together)
                }
                false => {
                    let within = |one: &Outside| mine[one.class].filter.clone();
                    outside
                        .into_iter()
                        .map(|one| Packets { within: within(&one), classes: one.meeting })
                        .collect()
                }
            };
            self.parts.extend(packets.into_iter().map(Part::Cover));
            // Their form is not trusted with that: they are compared with none of the program's classes.
            self.parts.extend(empty.chunks(TOGETHER_EMPTY).map(|some| Part::Empty(some.to_vec())));
        }
        while !questions.is_empty() {
            let rest = questions.split_off(questions.len().min(TOGETHER));
            self.parts.push(Part::Classes(std::mem::replace(&mut questions, rest)));
        }
    }

    /// Whether no way was left out on either side: without these, the classes are not all.
    pub fn has_all_ways(&self) -> bool {
        [&self.elements, &self.program].iter().all(|side| side.left.is_empty())
    }

    /// How hard a part probably is, to be compared with other parts.
    pub fn weight(&self, part: &Part) -> usize {
        match part {
            Part::Cover(packets) => packets.classes.len().pow(2),
            Part::Empty(classes) => classes.len(),
            Part::Classes(questions) => questions.iter().map(|question| 1 + question.others.len()).sum(),
        }
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

/// Classes whose ends are put into another one's form: each makes expressions.
const MOST_OTHERS: usize = 64;
/// Numbers by which the packets of a class are divided, to find them in classes of the program.
const NUMBERS: usize = 2;
/// Pairs of an entry's classes that are put into one form, of those that would be questions for the solver.
const MOST_FOR_BOTH: usize = 100_000;
/// So many by one thread, one after the other.
const PAIRS_AT_ONCE: usize = 500;

/// What the form that the filters of two classes give both says of them.
enum ForBoth {
    /// They do the same for packets of both.
    Same,
    /// There is no packet of both.
    Apart,
    /// Neither.
    Open,
}

/// Compares pairs of classes in that form, as many as there is time for: the program may treat packets apart that are one
/// class of the elements, and knows more of each.
fn for_both(
    pool: &Pool,
    [mine, theirs]: [&[Class]; 2],
    outside: &mut [Outside],
    deadline: &Deadline,
    pairs: &mut Pairs,
) {
    let of = |one: &Outside| one.others.iter().map(|at| (one.class, *at)).collect::<Vec<_>>();
    let all: Vec<(usize, usize)> = outside.iter().flat_map(of).take(MOST_FOR_BOTH).collect();
    let some: Vec<&[(usize, usize)]> = all.chunks(PAIRS_AT_ONCE).collect();
    let weights: Vec<usize> = some.iter().map(|pairs| pairs.len()).collect();
    // The forms themselves are not needed later: each thread has a pool of its own.
    let decided = parallel::each(
        parallel::threads(),
        &weights,
        || pool.clone(),
        |pool, at| {
            let compare = |&(class, other): &(usize, usize)| match deadline.is_over() {
                true => ForBoth::Open,
                false => compared(pool, &mine[class], &theirs[other]),
            };
            some[at].iter().map(compare).collect::<Vec<_>>()
        },
    );
    let mut decided = decided.into_iter().flatten();
    for one in outside {
        one.others.retain(|at| {
            match decided.next() {
                Some(ForBoth::Same) => {
                    pairs.same += 1;
                    one.same.push(*at);
                }
                Some(ForBoth::Apart) => pairs.apart += 1,
                Some(ForBoth::Open) | None => return true,
            }
            false
        });
    }
}

/// Compares a class of the elements with one of the program in that form.
fn compared(pool: &mut Pool, class: &Class, other: &Class) -> ForBoth {
    let mut compare = |thoroughly: bool| {
        let ends = may_do_same(class, other).then_some([&class.end, &other.end]);
        let filters = [&class.filter, &other.filter];
        match settled_for_both(pool, filters, ends.into_iter().flatten(), thoroughly).as_deref() {
            None => ForBoth::Apart,
            Some([mine, theirs]) if ends_same(class.exit, [mine, theirs]) => ForBoth::Same,
            Some(_) => ForBoth::Open,
        }
    };
    // Less work than a form, and often enough; the solver would have more.
    if class.filter.rules_out(&other.filter) {
        return ForBoth::Apart;
    }
    match compare(false) {
        ForBoth::Open => compare(true),
        decided => decided,
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

/// A class of the elements that may not be in one class of the program that does the same.
struct Outside {
    class: usize,
    /// The classes of the program that may have some of its packets.
    meeting: Vec<usize>,
    /// Those of them that do the same for these, and those of which it is open whether they have any, and what they do.
    same: Vec<usize>,
    others: Vec<usize>,
}

impl Outside {
    /// Whether each of its packets is in one of these.
    fn is_covered(
        &self,
        pool: &mut Pool,
        [mine, theirs]: [&[Class]; 2],
        cases: &Cell<usize>,
        deadline: &Deadline,
    ) -> bool {
        if deadline.is_over() || self.same.len() + self.others.len() > MOST_OTHERS {
            return false;
        }
        let others = self.same.iter().chain(&self.others).map(|at| &theirs[*at].filter);
        let (filter, others) = (&mine[self.class].filter, others.collect::<Vec<_>>());
        is_in_some(pool, filter, &others, (cases, deadline), NUMBERS)
    }
}

/// Whether each packet of a filter is in one of the others: if need be those of one number that one of these asks for, and
/// all others, each in a form of their own. What is looked up by that number is another expression then.
fn is_in_some(
    pool: &mut Pool,
    filter: &Filter,
    others: &[&Filter],
    (cases, deadline): (&Cell<usize>, &Deadline),
    numbers: usize,
) -> bool {
    let Some(mut form) = SettledForm::of(pool, filter) else { return true };
    let settled = others.iter().map(|other| form.filter(other)).collect();
    let in_form = (form.own().clone(), settled);
    if is_in_one(pool, &in_form, cases, deadline) {
        return true;
    }
    let Some(facts) = Facts::of(pool, filter.required()) else { return true };
    let is_asked = |(id, set): &(Id, &IntervalSet)| {
        let known = facts.known(pool, *id);
        matches!(pool.node(*id), Node::Atom(_)) && set.only().is_some() && !set.covers(&known)
    };
    let mut asked = others.iter().flat_map(|other| other.conditions()).filter(is_asked);
    let Some((id, set)) = asked.next().filter(|_| numbers > 0) else { return false };
    [set.clone(), set.complement(u64::MAX)].iter().all(|set| {
        let mut some = filter.clone();
        some.add(id, set);
        is_in_some(pool, &some, others, (cases, deadline), numbers - 1)
    })
}

/// The alternatives that may be looked at one by one.
struct Cases {
    left: usize,
    of_one: Cell<usize>,
}

impl Default for Cases {
    fn default() -> Cases {
        Cases { left: MOST_CASES, of_one: Cell::new(0) }
    }
}

impl Cases {
    /// For the next class; what the one before it has left stays for others.
    fn of_next(&mut self) -> &Cell<usize> {
        self.left += self.of_one.get();
        self.of_one.set(MOST_OF_ONE.min(self.left));
        self.left -= self.of_one.get();
        &self.of_one
    }
}
