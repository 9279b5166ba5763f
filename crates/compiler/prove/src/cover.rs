//! Whether classes are all packets, asked for some packets at a time.
//!
//! The time that the solver takes grows faster than the number of classes. So where there are many, packets are
//! divided by an expression that many classes have a condition on: those whose value is in a set, and all others.
//! Each half needs the classes only that may have some of its packets.

use crate::bounds::Bounds;
use ir::analysis::interval::IntervalSet;
use std::collections::{BTreeMap, HashMap};
use synth::classes::expr::Id;
use synth::classes::filter::Filter;

/// Some of all packets, and the classes that may have some of them.
#[derive(Clone, Default, Debug)]
pub struct Packets {
    /// The conditions by which they were divided from others.
    pub within: Filter,
    /// The classes, by number.
    pub classes: Vec<usize>,
    /// Those of them that probably have all of these packets, if that is known: they are asked about first.
    pub likely: Vec<usize>,
}

/// So many classes are asked about at once.
pub const TOGETHER: usize = 500;
/// How often packets are divided, at most.
const DEPTH: usize = 12;
/// The sets of an expression that are tried.
const SETS: usize = 4;

/// All packets, in parts that no more than `together` of these classes have packets of, if they can be divided so.
pub fn divided(filters: &[Filter], classes: Vec<usize>, together: usize) -> Vec<Packets> {
    let all = Packets { classes, ..Packets::default() };
    if all.classes.len() <= together {
        return vec![all];
    }
    let bounds: Vec<Bounds> = filters.iter().map(Bounds::of).collect();
    let mut done = vec![];
    let mut open = vec![(all, 0)];
    while let Some((packets, depth)) = open.pop() {
        let halves =
            (packets.classes.len() > together && depth < DEPTH).then(|| halves(&bounds, &packets)).flatten();
        match halves {
            Some(halves) => open.extend(halves.map(|half| (half, depth + 1))),
            None => done.push(packets),
        }
    }
    done
}

/// The packets in two parts, if that leaves fewer classes for each.
fn halves(bounds: &[Bounds], packets: &Packets) -> Option<[Packets; 2]> {
    let mut sets: BTreeMap<Id, HashMap<&IntervalSet, usize>> = BTreeMap::new();
    for &class in &packets.classes {
        for (id, set) in bounds[class].sets() {
            *sets.entry(id).or_default().entry(set).or_default() += 1;
        }
    }
    let all = packets.classes.len();
    let mut best: Option<(usize, Id, [IntervalSet; 2])> = None;
    for (id, sets) in sets {
        let any = all - sets.values().sum::<usize>();
        let mut most: Vec<_> = sets.iter().map(|(set, count)| (*count, *set)).collect();
        most.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.intervals().cmp(b.1.intervals())));
        for (_, set) in most.into_iter().take(SETS) {
            let parts = [set.clone(), set.complement(u64::MAX)];
            let counts = parts.each_ref().map(|part| {
                let meeting = sets.iter().filter(|(set, _)| set.meets(part));
                any + meeting.map(|(_, count)| count).sum::<usize>()
            });
            // A half with nearly all of the classes is as hard as the whole.
            let cost: usize = counts.iter().map(|count| count.pow(2)).sum();
            let is_better = best.as_ref().is_none_or(|(least, ..)| cost < *least);
            if cost * 4 < all.pow(2) * 3 && is_better {
                best = Some((cost, id, parts));
            }
        }
    }
    let (_, id, parts) = best?;
    Some(parts.map(|part| {
        let mut within = packets.within.clone();
        within.add(id, &part);
        let has_some = |class: &usize| bounds[*class].set(id).is_none_or(|set| set.meets(&part));
        let classes = packets.classes.iter().copied().filter(has_some).collect();
        Packets { within, classes, likely: vec![] }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::Blaster;
    use crate::gates::Answer;
    use crate::test_programs::by_three_bytes;
    use std::time::Duration;
    use synth::classes::{Classes, Options};
    use synth::deadline::Deadline;

    /// Each packet is in one of the parts, and a class that a part leaves out has none of its packets.
    #[test]
    fn parts_are_all_packets_and_leave_out_no_class_that_has_some() {
        let program = by_three_bytes();
        let classes = Classes::of(&program, &Options::default());
        let filters: Vec<Filter> = classes.classes.iter().map(|class| class.filter.clone()).collect();
        let parts = divided(&filters, (0..filters.len()).collect(), 1);
        assert!(parts.len() > 2, "{parts:?}");
        let deadline = Deadline::default();
        let blaster = || Blaster::new(&classes.pool, &deadline);
        let ask = |mut blaster: Blaster<'_>, both: &[&Filter]| {
            let bits: Vec<_> = both.iter().map(|filter| blaster.filter(filter)).collect();
            blaster.ask_packet(&bits, Duration::from_secs(10))
        };
        let mut outside = blaster();
        let mut known = HashMap::new();
        parts.iter().for_each(|part| outside.exclude(&part.within, &mut known));
        assert_eq!(ask(outside, &[]), Answer::Never);
        for part in &parts {
            for (at, filter) in filters.iter().enumerate() {
                let has_some = ask(blaster(), &[filter, &part.within]) == Answer::Found;
                assert!(!has_some || part.classes.contains(&at), "class {at} and {part:?}");
            }
        }
    }
}
