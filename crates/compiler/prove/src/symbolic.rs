//! The comparison class by class.
//!
//! For each class of the elements, it asks whether a packet of it can be in a class of the fused program with
//! a different outcome. Most classes are settled without a question ([`crate::entry_classes`]). Identical expressions
//! and bits need none either; the solver decides all others. It also checks that the classes of each side cover all
//! packets, some packets at a time ([`crate::cover`]): so a packet that is in no class with another outcome is in one
//! with the same.

use crate::blast::Blaster;
use crate::conditions::sets_by_expression;
use crate::cover::Packets;
use crate::entry_classes::{Covering, EntryClasses, Pairs, Part, Question};
use crate::gates::{Answer, Bit};
use crate::outcome::{Bytes, Outcome, differences, outcome};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use synth::classes::expr::Pool;
use synth::classes::filter::Filter;
use synth::classes::{Classes, Exit};
use synth::deadline::Deadline;

/// The time limit for one question.
const QUESTION: Duration = Duration::from_secs(10);

/// With so many clauses, the next class gets a solver of its own: each question costs what all clauses cost.
const MANY_CLAUSES: usize = 500_000;

/// The result of the comparison.
#[derive(Clone, Default, Debug)]
pub struct Comparison {
    /// Pairs of classes.
    pub pairs: Pairs,
    /// Entries whose classes cover all packets, according to the solver: of the elements, and of the program if those do.
    pub covered: [usize; 2],
    /// The time for comparing each class of the elements.
    pub times: BTreeMap<usize, Duration>,
    /// Classes whose outcomes or filters were not compared for lack of time, or not decided; and why.
    pub open: Vec<String>,
}

/// A class's filter and outcome.
struct Filtered {
    /// Its number.
    class: usize,
    /// Whether a packet passes its filter.
    filter: Bit,
    /// Its effects.
    outcome: Outcome,
}

/// What a part of the comparison came to.
#[derive(Default)]
pub struct Answered {
    pairs: Pairs,
    /// Whether a packet is in no class, for a [`Covering`] and a [`Part::Cover`], or in one of a [`Part::Empty`].
    outside: Option<Answer>,
    times: BTreeMap<usize, Duration>,
    open: Vec<String>,
    /// Questions to the solver.
    pub questions: usize,
    /// Their clauses.
    pub clauses: usize,
}

/// Decides a part of an entry's comparison. `suspect` is called with the classes, of the elements and of the
/// program, of a packet that the solver found; it returns whether to continue.
pub fn answer(
    entry: &EntryClasses,
    part: &Part,
    deadline: &Deadline,
    suspect: &mut dyn FnMut(usize, usize) -> bool,
) -> Answered {
    let mut into = Answered::default();
    let pool = &entry.elements.pool;
    match part {
        Part::Cover(packets) => ask_cover(packets, (pool, &entry.walked[1]), deadline, &mut into),
        Part::Empty(classes) => {
            into.ask_any(pool, deadline, |blaster| {
                let filters: Vec<Bit> =
                    classes.iter().map(|class| blaster.filter(&entry.walked[0][*class])).collect();
                blaster.gates.any_if_asked(&filters)
            });
        }
        Part::Classes(questions) => {
            let mut blaster = Blaster::new(pool, deadline);
            let mut theirs = HashMap::new();
            for (at, question) in questions.iter().enumerate() {
                if blaster.gates.clauses() > MANY_CLAUSES || blaster.gates.is_over() {
                    into.asked(&blaster);
                    blaster = Blaster::new(pool, deadline);
                    theirs.clear();
                }
                if blaster.gates.is_over() {
                    let left = &questions[at..];
                    into.pairs.open += left.iter().map(|question| question.others.len()).sum::<usize>();
                    into.open.push(format!(
                        "entry {}: {} classes of the elements, for lack of time or memory",
                        entry.number,
                        left.len()
                    ));
                    break;
                }
                if !one(&mut blaster, entry, question, &mut theirs, &mut into, suspect) {
                    break;
                }
            }
            into.asked(&blaster);
        }
    }
    into
}

/// Asks whether one of a covering's packets is in none of the elements' classes.
pub fn answer_covering(covering: &Covering, deadline: &Deadline) -> Answered {
    let mut into = Answered::default();
    ask_cover(&covering.packets, (&covering.walked.pool, &covering.walked.filters), deadline, &mut into);
    into
}

/// Whether nothing is left but what the entry's parts say of classes that are all packets, or have none: with what its
/// coverings came to, no class of the elements is left for the solver, and no way or class was left out.
pub fn is_nearly_shown(entry: &EntryClasses, coverings: &[Answered]) -> bool {
    entry.has_all_ways()
        && entry.unsorted == 0
        && coverings.iter().all(|answered| answered.outside == Some(Answer::Never))
        && !entry.parts.iter().any(|part| matches!(part, Part::Classes(_)))
}

/// Asks whether one of these packets is in no class with these filters.
fn ask_cover(
    packets: &Packets,
    (pool, filters): (&Pool, &[Filter]),
    deadline: &Deadline,
    into: &mut Answered,
) {
    let mut ask = |classes: &[usize]| {
        into.ask_any(pool, deadline, |blaster| {
            let asked = classes.iter().map(|at| &filters[*at]);
            for (id, sets) in sets_by_expression(asked) {
                blaster.tell_apart(id, &sets);
            }
            let mut alternatives = HashMap::new();
            classes.iter().for_each(|at| blaster.exclude(&filters[*at], &mut alternatives));
            blaster.filter(&packets.within)
        })
    };
    let is_less = !packets.likely.is_empty() && packets.likely.len() < packets.classes.len();
    if !is_less || ask(&packets.likely) != Answer::Never {
        ask(&packets.classes);
    }
}

impl Answered {
    /// Asks whether there is a packet for which a bit is 1.
    fn ask_any(&mut self, pool: &Pool, deadline: &Deadline, bit: impl Fn(&mut Blaster<'_>) -> Bit) -> Answer {
        let mut answer = Answer::Unknown;
        // With ever more that a real packet has: lookups that agree, then sums of its bytes.
        for new in [Blaster::free, Blaster::new, Blaster::exact] {
            let mut blaster = new(pool, deadline);
            let bit = bit(&mut blaster);
            answer = blaster.ask_packet(&[bit], QUESTION);
            self.asked(&blaster);
            if answer != Answer::Found {
                break;
            }
        }
        self.outside = Some(answer);
        answer
    }

    fn asked(&mut self, blaster: &Blaster<'_>) {
        self.questions += blaster.gates.questions;
        self.clauses += blaster.gates.clauses();
    }
}

fn filtered(blaster: &mut Blaster<'_>, classes: &Classes, number: usize) -> Filtered {
    let class = &classes.classes[number];
    Filtered { class: number, filter: blaster.filter(&class.filter), outcome: outcome(blaster, class) }
}

/// Compares one class of the elements; false if nothing more is to be compared.
fn one(
    blaster: &mut Blaster<'_>,
    of: &EntryClasses,
    question: &Question,
    theirs: &mut HashMap<usize, Filtered>,
    into: &mut Answered,
    suspect: &mut dyn FnMut(usize, usize) -> bool,
) -> bool {
    let start = Instant::now();
    let mine = filtered(blaster, &of.elements, question.class);
    let open = unsettled(blaster, of, question, &mine, theirs, into);
    for other in &open {
        theirs.entry(*other).or_insert_with(|| filtered(blaster, &of.program, *other));
    }
    let go_on = if blaster.gates.is_over() {
        // Bits that were made since then mean nothing.
        into.pairs.open += open.len();
        let name = name_of(of, question.class);
        into.open.push(format!("entry {}: {name}, for lack of time or memory", of.number));
        true
    } else {
        let open = open.iter().map(|other| &theirs[other]).collect();
        each_met(blaster, of, &mine, open, into, suspect)
    };
    into.times.insert(question.class, start.elapsed());
    go_on
}

fn name_of(of: &EntryClasses, class: usize) -> String {
    format!("class {} of the elements", of.first[0] + class + 1)
}

/// The classes of the program about which two questions for all of them at once do not say enough. Most often
/// there are none: no packet is in this class and in one that leaves by another exit, and none for which one
/// that leaves by the same exit does something else. Which classes have packets of both need not be known.
fn unsettled(
    blaster: &mut Blaster<'_>,
    of: &EntryClasses,
    question: &Question,
    mine: &Filtered,
    theirs: &mut HashMap<usize, Filtered>,
    into: &mut Answered,
) -> Vec<usize> {
    let exit = of.elements.classes[question.class].exit;
    let (alike, unlike): (Vec<usize>, Vec<usize>) =
        question.others.iter().partition(|other| may_be_one(exit, of.program.classes[**other].exit));
    let mut open = vec![];
    let others: Vec<Bit> =
        unlike.iter().map(|other| blaster.filter(&of.program.classes[*other].filter)).collect();
    match ask_any(blaster, mine, &others, QUESTION) {
        Answer::Never => into.pairs.apart += unlike.len(),
        _ => open.extend(unlike),
    }
    let (mut unequal, mut differ) = (vec![], vec![]);
    for other in alike {
        let theirs = theirs.entry(other).or_insert_with(|| filtered(blaster, &of.program, other));
        if theirs.outcome == mine.outcome {
            into.pairs.same += 1;
            continue;
        }
        let different = differences(blaster, &mine.outcome, &theirs.outcome, Bytes::InOrder);
        let bits: Vec<Bit> = different.iter().map(|different| different.bit).collect();
        let any = blaster.gates.any(&bits);
        differ.push(blaster.gates.and(theirs.filter, any));
        unequal.push(other);
    }
    match ask_any(blaster, mine, &differ, AT_ONCE) {
        Answer::Never => into.pairs.equal += unequal.len(),
        _ => open.extend(unequal),
    }
    open
}

/// Whether any of the bits can be 1 for a packet of a class.
fn ask_any(blaster: &mut Blaster<'_>, mine: &Filtered, bits: &[Bit], time: Duration) -> Answer {
    if bits.is_empty() {
        return Answer::Never;
    }
    let any = blaster.gates.any_if_asked(bits);
    blaster.ask_packet(&[mine.filter, any], time)
}

/// Compares a class of the elements with each of these that the solver finds a packet of both for; false if
/// nothing more is to be compared.
fn each_met(
    blaster: &mut Blaster<'_>,
    of: &EntryClasses,
    mine: &Filtered,
    mut open: Vec<&Filtered>,
    into: &mut Answered,
    suspect: &mut dyn FnMut(usize, usize) -> bool,
) -> bool {
    let (entry, name) = (of.number, name_of(of, mine.class));
    while !open.is_empty() {
        let others: Vec<Bit> = open.iter().map(|theirs| theirs.filter).collect();
        let any = blaster.gates.any_if_asked(&others);
        match blaster.ask_packet(&[mine.filter, any], QUESTION) {
            Answer::Never => {
                into.pairs.apart += open.len();
                break;
            }
            Answer::Unknown => {
                into.pairs.open += open.len();
                let count = open.len();
                into.open.push(format!(
                    "entry {entry}: which of {count} classes of the fused program packets of {name} are in"
                ));
                break;
            }
            Answer::Found => {}
        }
        let met = open.iter().position(|theirs| blaster.gates.bit(theirs.filter));
        let Some(met) = met else { break };
        let theirs = open.swap_remove(met);
        match decide(blaster, [mine, theirs]) {
            Decided::Equal => into.pairs.equal += 1,
            Decided::Not { is_found, parts } => {
                into.pairs.open += 1;
                into.open.push(format!(
                    "entry {entry}: {name} and class {} of the fused program: {}",
                    of.first[1] + theirs.class + 1,
                    parts.join(", ")
                ));
                if is_found && !suspect(mine.class, theirs.class) {
                    return false;
                }
            }
        }
    }
    true
}

/// Whether packets may leave by both exits.
fn may_be_one(a: Exit, b: Exit) -> bool {
    match (a, b) {
        (Exit::EmitTo(_), Exit::Emit(_) | Exit::EmitTo(_)) | (Exit::Emit(_), Exit::EmitTo(_)) => true,
        (a, b) => a == b,
    }
}

impl Comparison {
    /// Adds an entry, with what its coverings and its parts came to, in their order.
    pub fn add(&mut self, entry: &EntryClasses, coverings: &[Answered], answers: Vec<Answered>) {
        let parts = std::iter::once(entry.pairs).chain(answers.iter().map(|answered| answered.pairs));
        for Pairs { all, same, apart, equal, open } in parts {
            self.pairs.all += all;
            self.pairs.same += same;
            self.pairs.apart += apart;
            self.pairs.equal += equal;
            self.pairs.open += open;
        }
        if entry.unsorted > 0 {
            let (number, unsorted) = (entry.number, entry.unsorted);
            self.open.push(format!("entry {number}: {unsorted} classes of the elements, for lack of time"));
        }
        if entry.has_all_ways() {
            let of_elements: Vec<_> = coverings.iter().map(|answered| answered.outside).collect();
            let of_parts = |is_kind: fn(&Part) -> bool| -> Vec<Option<Answer>> {
                let parts = entry.parts.iter().enumerate().filter(|(_, part)| is_kind(part));
                parts.map(|(at, _)| answers.get(at).and_then(|answered| answered.outside)).collect()
            };
            let of_program = of_parts(|part| matches!(part, Part::Cover(_)));
            let of_empty = of_parts(|part| matches!(part, Part::Empty(_)));
            self.add_cover(entry, &of_elements, &of_empty, &of_program);
        }
        for answered in answers {
            let times = answered.times.into_iter();
            self.times.extend(times.map(|(class, time)| (entry.first[0] + class, time)));
            self.open.extend(answered.open);
        }
    }

    /// Adds whether the classes of an entry are all packets: if that is so for each part. The elements' are without those
    /// that have no packets; of the program's it is asked for the elements' classes.
    fn add_cover(
        &mut self,
        entry: &EntryClasses,
        of_elements: &[Option<Answer>],
        of_empty: &[Option<Answer>],
        of_program: &[Option<Answer>],
    ) {
        let is_shown =
            |answers: &[Option<Answer>]| answers.iter().all(|answer| *answer == Some(Answer::Never));
        let are_all = !of_elements.is_empty() && is_shown(of_elements) && is_shown(of_empty);
        let is_inside = if of_program.is_empty() { entry.are_inside } else { is_shown(of_program) };
        self.covered[0] += usize::from(are_all);
        self.covered[1] += usize::from(are_all && is_inside);
        let (elements, program) = (entry.elements.classes.len(), entry.program.classes.len());
        let asked = [
            (format!("whether the {elements} classes of the elements are all packets"), of_elements),
            ("whether classes of the elements that seem to have no packets have none".into(), of_empty),
            (format!("whether the {program} classes of the fused program are all packets"), of_program),
        ];
        for (asked, answers) in asked {
            let (number, all) = (entry.number, answers.len());
            for (answer, told) in [(Answer::Found, "not so"), (Answer::Unknown, "not decided")] {
                let parts = answers.iter().filter(|it| **it == Some(answer)).count();
                let which = if all > 1 { format!(", for {parts} of {all} parts") } else { String::new() };
                if parts > 0 {
                    self.open.push(format!("entry {number}: {asked} is {told}{which}"));
                }
            }
        }
    }
}

/// What was decided about the outcomes of two classes for packets that are in both.
enum Decided {
    /// They are equal.
    Equal,
    /// The solver found a packet for which these parts differ, or could not decide about these.
    Not { is_found: bool, parts: Vec<String> },
}

/// The time in which all parts of two outcomes are compared at once, before each is compared by itself.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Decides whether two classes do the same for packets that are in both.
fn decide(blaster: &mut Blaster<'_>, both: [&Filtered; 2]) -> Decided {
    match decide_by(blaster, both, Bytes::InOrder) {
        // Perhaps for headers that overlap, or for bytes that later ones cover.
        Decided::Not { is_found: true, .. } => decide_by(blaster, both, Bytes::AsRead),
        decided => decided,
    }
}

fn decide_by(blaster: &mut Blaster<'_>, [mine, theirs]: [&Filtered; 2], bytes: Bytes) -> Decided {
    let different = differences(blaster, &mine.outcome, &theirs.outcome, bytes);
    let bits: Vec<Bit> = different.iter().map(|different| different.bit).collect();
    let any = blaster.gates.any(&bits);
    match blaster.ask_packet(&[mine.filter, theirs.filter, any], AT_ONCE) {
        Answer::Never => return Decided::Equal,
        Answer::Found => {
            let named = different.iter().filter(|different| blaster.gates.bit(different.bit));
            let mut parts: Vec<String> = named.map(|different| different.what.clone()).collect();
            parts.dedup();
            return Decided::Not { is_found: true, parts };
        }
        Answer::Unknown => {}
    }
    // Part by part. What is decided about one is a clause that helps with the next.
    let until = Instant::now() + QUESTION;
    let mut parts = vec![];
    for same in different.chunk_by(|a, b| a.what == b.what) {
        let bits: Vec<Bit> = same.iter().map(|different| different.bit).collect();
        let any = blaster.gates.any(&bits);
        let left = until.saturating_duration_since(Instant::now());
        match blaster.ask_packet(&[mine.filter, theirs.filter, any], left) {
            Answer::Never => blaster.gates.clause(&[!mine.filter, !theirs.filter, !any]),
            Answer::Found => return Decided::Not { is_found: true, parts: vec![same[0].what.clone()] },
            Answer::Unknown => parts.push(same[0].what.clone()),
        }
    }
    if parts.is_empty() { Decided::Equal } else { Decided::Not { is_found: false, parts } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cover;
    use crate::entry_classes::FEW_OUTSIDE;
    use ir::expr::load;
    use ir::{Builder, Value, Verified};
    use packet::field::{self, Base};
    use synth::classes::Options;
    use synth::classes::filter::Factor;

    /// A mistake about a class.
    #[derive(Clone, Copy)]
    enum Mistake {
        /// One of the elements is left out, or one of the program.
        LeftOut(usize),
        /// One of the elements is said to have no packets.
        SaidEmpty,
    }

    /// The sides whose classes are all packets, and what is left open, once there is a mistake about a class.
    fn covered(mistake: Option<(Mistake, Exit)>, together: usize) -> (Vec<usize>, usize) {
        let program = crate::test_programs::by_protocol();
        let mut coverings = vec![];
        let options = Options::default();
        let leave: &mut dyn FnMut(Covering) = &mut |covering| coverings.push(covering);
        let mut entry = EntryClasses::walk([&program, &program], 0, &options, (together, leave));
        if let Some((mistake, exit)) = mistake {
            let of_program = matches!(mistake, Mistake::LeftOut(1));
            let classes = &mut if of_program { &mut entry.program } else { &mut entry.elements }.classes;
            let at = classes.iter().position(|class| class.exit == exit).expect("a class");
            match mistake {
                Mistake::SaidEmpty => classes[at].filter.0.push(Factor::Any([].into())),
                Mistake::LeftOut(0) => {
                    let of_parts = coverings.iter_mut().map(|covering| &mut covering.packets.classes);
                    of_parts.for_each(|classes| classes.retain(|class| *class != at));
                }
                Mistake::LeftOut(_) => {
                    classes.remove(at);
                    let mut filters = entry.walked[1].to_vec();
                    filters.remove(at);
                    entry.walked[1] = filters.into();
                }
            }
        }
        let deadline = Deadline::default();
        entry.sort(&deadline, together);
        let mut all = Comparison::default();
        let answers = entry.parts.iter().map(|part| answer(&entry, part, &deadline, &mut |_, _| true));
        let coverings: Vec<_> =
            coverings.iter().map(|covering| answer_covering(covering, &deadline)).collect();
        all.add(&entry, &coverings, answers.collect());
        (all.covered.into(), all.open.len())
    }

    /// A program that creates two records of one table, which may be one, and does something with them.
    fn with_records(what: impl FnOnce(&mut Builder, [Value; 2])) -> Verified {
        let mut f = Builder::new("P", 1);
        let short = f.drop_block("short");
        f.need(Base::Net, 20, short);
        let table = f.table("t", 1, 8);
        let refused = f.drop_block("refused");
        let keys = [field::IP_SRC, field::IP_DST].map(|field| f.eval(load(field)));
        let records = keys.map(|key| f.create(table, &[key], &[], refused));
        what(&mut f, records);
        f.emit(0);
        f.finish().expect("a program")
    }

    /// Whether two programs are shown to be equal.
    fn are_equal(programs: [&Verified; 2]) -> bool {
        let options = Options {
            max_paths_apart: 1,
            stores_by_condition: true,
            drops_alike: true,
            ..Options::default()
        };
        let deadline = Deadline::default();
        let mut coverings = vec![];
        let leave: &mut dyn FnMut(Covering) =
            &mut |covering| coverings.push(answer_covering(&covering, &deadline));
        let mut entry = EntryClasses::walk(programs, 0, &options, (cover::TOGETHER, leave));
        entry.sort(&deadline, cover::TOGETHER);
        let (mut all, mut is_found) = (Comparison::default(), false);
        let parts = entry.parts.iter();
        let answers: Vec<Answered> = parts
            .map(|part| {
                answer(&entry, part, &deadline, &mut |_, _| {
                    is_found = true;
                    false
                })
            })
            .collect();
        all.add(&entry, &coverings, answers);
        !is_found && all.covered == [1, 1] && all.open.is_empty() && all.pairs.open == 0
    }

    /// Of two records that may be one, the later number counts, byte by byte.
    #[test]
    fn the_order_of_writes_to_records_that_may_be_one_matters() {
        let writes = |order: [(usize, u16, u64); 3]| {
            with_records(|f, records| {
                for (record, at, number) in order {
                    f.store_record(records[record], at, 2, number);
                }
            })
        };
        let a = writes([(0, 0, 1), (1, 2, 2), (0, 2, 3)]);
        assert!(are_equal([&a, &a]));
        // Writes to other bytes of the records may come in any order.
        assert!(are_equal([&a, &writes([(1, 2, 2), (0, 2, 3), (0, 0, 1)])]));
        assert!(!are_equal([&a, &writes([(0, 2, 3), (1, 2, 2), (0, 0, 1)])]));
    }

    /// What is stored by a condition is compared: its limit, what either way stores, and that it stores.
    #[test]
    fn what_is_stored_by_a_condition_matters() {
        let stores = |limit: u64, less: u64, more: Option<u64>, swapped: bool| {
            with_records(|f, [a, b]| {
                for (record, at) in [(a, 1), (b, 2)] {
                    let after = f.block();
                    let ttl = f.eval(load(field::IP_TTL));
                    let (yes, no) = match swapped {
                        true => {
                            let (no, yes) = f.branch(ttl.at_least(limit));
                            (yes, no)
                        }
                        false => f.branch(ttl.less_than(limit)),
                    };
                    f.at(yes);
                    f.store_record(record, at, 2, less);
                    f.jump(after);
                    f.at(no);
                    if let Some(more) = more {
                        f.store_record(record, at, 1, more);
                    }
                    f.jump(after);
                    f.at(after);
                }
            })
        };
        let a = stores(9, 5, Some(6), false);
        assert!(are_equal([&a, &stores(9, 5, Some(6), true)]));
        for other in [(10, 5, Some(6)), (9, 7, Some(6)), (9, 5, Some(7)), (9, 5, None)] {
            assert!(!are_equal([&a, &stores(other.0, other.1, other.2, false)]), "{other:?}");
        }
    }

    /// Classes of which none is in one that does the same by the same expressions: whether the program's have all packets
    /// is asked for each of them, and for all packets where they are many.
    #[test]
    fn classes_that_are_in_none_are_compared_by_the_solver() {
        let by_ttl = |count: u64, is_obscure: bool| {
            let mut f = Builder::new("P", 1);
            let short = f.drop_block("short");
            f.need(Base::Net, 20, short);
            let (ttl, tos) = (f.eval(load(field::IP_TTL)), f.eval(load(field::IP_TOS)));
            let blocks: Vec<_> = (0..count).map(|_| f.block()).collect();
            f.switch(ttl, (0..).zip(blocks.iter().copied()).collect(), short);
            for (number, block) in (0..).zip(blocks) {
                f.at(block);
                let five = f.eval(if is_obscure { (tos ^ 5) ^ tos } else { 5.into() });
                f.store(field::IP_PROTO, five + number);
                f.emit(0);
            }
            f.finish().expect("a program")
        };
        for count in [3, FEW_OUTSIDE as u64 + 9] {
            assert!(are_equal([&by_ttl(count, false), &by_ttl(count, true)]), "{count}");
            assert!(!are_equal([&by_ttl(count, false), &by_ttl(count - 1, true)]), "{count}");
        }
    }

    /// A class that a walk lost is noticed, although no class of the elements meets another one.
    #[test]
    fn mistakes_about_classes_are_noticed() {
        for together in [cover::TOGETHER, 1] {
            assert_eq!(covered(None, together), (vec![1, 1], 0));
            for exit in [Exit::Emit(0), Exit::Emit(1), Exit::Drop(0)] {
                assert_eq!(covered(Some((Mistake::LeftOut(1), exit)), together), (vec![1, 0], 1));
                assert_eq!(covered(Some((Mistake::LeftOut(0), exit)), together), (vec![0, 0], 1));
                assert_eq!(covered(Some((Mistake::SaidEmpty, exit)), together), (vec![0, 0], 1));
            }
        }
    }
}
