//! The classes of an entry, of both sides, and what of their comparison is left for the solver.
//!
//! Classes of both sides are put into one form first ([`settle`]). Where the program has the class as it is, no question
//! is needed; classes that share no packet by their conditions alone ([`crate::bounds`]) are not looked at.

use crate::containment::{self, Outside, Sorted, sorted};
use crate::cover::{self, Packets};
use ir::Verified;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use synth::classes::expr::Pool;
use synth::classes::filter::Filter;
use synth::classes::{Classes, Options, settle};
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
        let all = theirs.len();
        let mut pairs = Pairs { all: mine.len() * all, ..Pairs::default() };
        let (mut outside, mut empty) = (vec![], vec![]);
        for (number, sorted) in sorted(&self.elements.pool, [mine, theirs], deadline).into_iter().enumerate()
        {
            match sorted {
                Sorted::Late => {
                    pairs.open += all;
                    self.unsorted += 1;
                }
                Sorted::Empty => {
                    pairs.apart += all;
                    empty.push(number);
                }
                Sorted::Inside { twin } => {
                    self.twins.extend(twin);
                    pairs.same += 1;
                    // Of a class without packets, there need not be one.
                    pairs.apart += all.saturating_sub(1);
                }
                Sorted::Outside(one) => outside.push(one),
            }
        }
        containment::decide(&self.elements.pool, [mine, theirs], &mut outside, deadline);
        for one in &outside {
            pairs.same += one.same.len();
            pairs.apart += all - one.same.len() - one.others.len();
        }
        self.pairs = pairs;
        let questions = outside.iter().filter(|one| !one.others.is_empty());
        let mut questions: Vec<Question> =
            questions.map(|one| Question { class: one.class, others: one.others.clone() }).collect();
        if self.has_all_ways() {
            outside.retain(|one| !one.is_covered);
            // What is in the elements' classes is in the program's where each of these is in one of those.
            self.are_inside = outside.is_empty() && self.unsorted == 0;
            let packets: Vec<Packets> = match self.unsorted > 0 || outside.len() > FEW_OUTSIDE {
                true => {
                    let with_packets = (0..all).filter(|at| !theirs[*at].filter.is_never()).collect();
                    cover::divided(&self.walked[1], with_packets, together)
                }
                false => {
                    let packets = |one: Outside| Packets {
                        within: mine[one.class].filter.clone(),
                        classes: one.meeting,
                        likely: [one.same, one.others].concat(),
                    };
                    outside.into_iter().map(packets).collect()
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
