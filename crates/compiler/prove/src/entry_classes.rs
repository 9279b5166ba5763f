//! The classes of an entry, of both sides, and what of their comparison is left for the solver.
//!
//! Classes of both sides are put into one form first ([`settle`]). Where the program has the class as it is, no question
//! is needed; classes that share no packet by their conditions alone ([`crate::bounds`]) are not looked at.

use crate::bounds::{Bounds, Index, Known, MOST_CASES};
use crate::cover::{self, Packets};
use crate::parallel;
use ir::Verified;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use synth::classes::expr::Pool;
use synth::classes::filter::Filter;
use synth::classes::path_state::PathState;
use synth::classes::{Class, Classes, Exit, Options, settle, settled_ends, settled_for_both};
use synth::deadline::Deadline;

/// Classes of the elements for which one solver is used, one after the other: they share expressions.
const TOGETHER: usize = 32;
/// Classes without packets that are asked about at once.
const TOGETHER_EMPTY: usize = 200;
/// With more classes of the elements that are in none of the program, the program's are asked about all packets instead.
pub const FEW_OUTSIDE: usize = 64;

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
        let mut questions = vec![];
        let cases = Cell::new(MOST_CASES);
        // The classes of the elements that may not be in one of the program, with those of the program that may have some
        // of their packets.
        let (mut outside, mut count_outside) = (vec![], 0);
        let mut empty = vec![];
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
            let bounds = Bounds::of(&class.filter);
            let mut meeting = index.meeting(&bounds);
            meeting.retain(|at| !is_never[*at]);
            let mut same: Vec<usize> =
                meeting.iter().copied().filter(|at| does_same(class, &theirs[*at])).collect();
            let twin = same.iter().find(|at| theirs[**at].filter == class.filter);
            self.twins.extend(twin);
            // If all packets of the class are in one class of the program that does the same, by the same
            // expressions, the program does to them what the elements do.
            let has_all = |pool: &Pool, same: &[usize]| {
                let known = Known::of(pool, &class.filter, &bounds, &cases, deadline);
                let filters: Vec<&Filter> = same.iter().map(|at| &theirs[*at].filter).collect();
                known.is_none_or(|known| known.is_in_one(&filters))
            };
            let pool = &mut self.elements.pool;
            let is_inside = twin.is_some() || has_all(pool, &same) || {
                let others = meeting.iter().filter(|at| !same.contains(at));
                let more = same_for(pool, class, theirs, others, deadline);
                same.extend(&more);
                !more.is_empty() && has_all(pool, &more)
            };
            if is_inside {
                pairs.same += 1;
                // Of a class without packets, there need not be one.
                pairs.apart += theirs.len().saturating_sub(1);
                continue;
            }
            count_outside += 1;
            if count_outside <= FEW_OUTSIDE {
                let packets = Packets { within: class.filter.clone(), classes: meeting.clone() };
                outside.push(Part::Cover(packets));
            }
            pairs.apart += theirs.len() - meeting.len();
            pairs.same += same.len();
            let others: Vec<usize> = meeting.into_iter().filter(|at| !same.contains(at)).collect();
            if !others.is_empty() {
                questions.push(Question { class: number, others });
            }
        }
        let decided = for_both(&self.elements.pool, [mine, theirs], &questions, deadline);
        let mut decided = decided.into_iter();
        for question in &mut questions {
            question.others.retain(|_| {
                match decided.next() {
                    Some(ForBoth::Same) => pairs.same += 1,
                    Some(ForBoth::Apart) => pairs.apart += 1,
                    Some(ForBoth::Open) | None => return true,
                }
                false
            });
        }
        questions.retain(|question| !question.others.is_empty());
        self.pairs = pairs;
        if self.has_all_ways() {
            // What is in the elements' classes is in the program's where each of these is in one of those.
            self.are_inside = outside.is_empty() && self.unsorted == 0;
            if self.unsorted > 0 || count_outside > FEW_OUTSIDE {
                let with_packets = (0..theirs.len()).filter(|at| !is_never[*at]).collect();
                let all = cover::divided(&self.walked[1], with_packets, together);
                outside = all.into_iter().map(Part::Cover).collect();
            }
            self.parts.append(&mut outside);
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
    questions: &[Question],
    deadline: &Deadline,
) -> Vec<ForBoth> {
    let of = |question: &Question| question.others.iter().map(|at| (question.class, *at)).collect::<Vec<_>>();
    let pairs: Vec<(usize, usize)> = questions.iter().flat_map(of).take(MOST_FOR_BOTH).collect();
    let some: Vec<&[(usize, usize)]> = pairs.chunks(PAIRS_AT_ONCE).collect();
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
    decided.into_iter().flatten().collect()
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

/// The classes that do the same as this one for packets of its own, because its filter says more than theirs.
fn same_for<'c>(
    pool: &mut Pool,
    class: &Class,
    all: &[Class],
    others: impl Iterator<Item = &'c usize>,
    deadline: &Deadline,
) -> Vec<usize> {
    if deadline.is_over() {
        return vec![];
    }
    let others = others.copied().filter(|at| may_do_same(class, &all[*at]));
    let others: Vec<usize> = others.take(MOST_OTHERS).collect();
    let ends = settled_ends(pool, &class.filter, others.iter().map(|at| &all[*at].end));
    let same = others.into_iter().zip(&ends).filter(|(_, end)| ends_same(class.exit, [&class.end, end]));
    same.map(|(at, _)| at).collect()
}
