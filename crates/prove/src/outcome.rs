//! What a class does, in a form that can be compared bit by bit.

use crate::blast::Blaster;
use crate::gates::{Bit, Word};
use packet::field::Base;
use std::collections::{BTreeMap, BTreeSet};
use synth::classes::expr::{Atom, Node, Pool, Root, Write};
use synth::classes::state::Place;
use synth::classes::{Class, Exit};

/// Bits written from a root, without another root's in between.
type Run = (Root, BTreeMap<i32, Bit>);

/// What a class does.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    exit: Exit,
    /// The port, where only the packet says.
    port: Word,
    /// What somebody sees of the packet; not of one that is dropped.
    packet: Option<Seen>,
    cells: BTreeMap<u16, Word>,
    /// Writes to records by lookup and offset.
    records: BTreeMap<(usize, u16), Word>,
    /// Lookups that were written to, in order, by table.
    record_order: Vec<(u16, usize)>,
    /// Lookups, by table.
    finds: BTreeMap<u16, Vec<usize>>,
}

#[derive(Clone, PartialEq, Debug)]
struct Seen {
    /// The first byte, the end, other segments, the type, and the headers.
    numbers: Vec<(&'static str, Word)>,
    bytes: Vec<Run>,
    annos: BTreeMap<i32, Bit>,
}

/// A thing in which two classes may differ, and the bit that says that they do.
pub struct Difference {
    /// What it is.
    pub what: String,
    /// Whether they differ.
    pub bit: Bit,
}

/// What a class does, as bits.
pub fn outcome(pool: &Pool, blaster: &mut Blaster<'_>, class: &Class) -> Outcome {
    let end = &class.end;
    let seen = (!matches!(class.exit, Exit::Drop(_))).then(|| {
        let mut numbers: Vec<(&'static str, Word)> = [
            ("the first byte's place", end.data),
            ("the first segment's end", end.end),
            ("the other segments' length", end.rest),
            ("the packet type", end.packet_type),
        ]
        .map(|(name, id)| (name, blaster.word(id)))
        .into();
        let names = ["the MAC header's place", "the network header's place", "the transport header's place"];
        for ((place, base), name) in end.places.iter().zip([Base::Mac, Base::Net, Base::Trans]).zip(names) {
            let word = match place {
                Place::Unset => blaster.gates.number(0xffff),
                Place::Entry(from) => {
                    debug_assert_eq!(*from, base);
                    blaster.free_atom(Atom::Place(*from), 16)
                }
                Place::At(id) => blaster.word(*id),
            };
            let word = blaster.gates.slice(&word, 0, 16);
            numbers.push((name, word));
        }
        let mut annos = BTreeMap::new();
        for run in runs(blaster, &end.annos) {
            annos.extend(run.1);
        }
        annos.retain(|bit, value| blaster.packet_bit(Root::Anno, *bit) != *value);
        let mut bytes = runs(blaster, &end.bytes);
        if bytes.len() == 1 {
            let (root, bits) = &mut bytes[0];
            bits.retain(|bit, value| blaster.packet_bit(*root, *bit) != *value);
            bytes.retain(|run| !run.1.is_empty());
        }
        Seen { numbers, bytes, annos }
    });
    let (exit, port) = match class.exit {
        Exit::EmitTo(port) => (class.exit, blaster.word(port)),
        exit => (exit, vec![]),
    };
    let mut cells: BTreeMap<u16, Word> =
        end.cells.iter().map(|(cell, id)| (*cell, blaster.word(*id))).collect();
    cells.retain(|cell, word| blaster.free_atom(Atom::Cell(*cell), 64) != *word);
    let (mut records, mut record_order) = (BTreeMap::new(), vec![]);
    for write in &end.records {
        let lookup = blaster.lookup_of(write.rec);
        let value = blaster.word(write.value);
        for at in 0..u16::from(write.bytes) {
            let byte = blaster.gates.slice(&value, usize::from(at) * 8, 8);
            records.insert((lookup, write.offset + at), byte);
        }
        record_order.push((write.table, lookup));
    }
    // Of one record alone, order tells nothing.
    record_order.sort_by_key(|(table, _)| *table);
    record_order.dedup();
    let mut finds: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for find in &end.finds {
        if let Node::Found(of) = pool.node(*find) {
            let at = blaster.ask(*find);
            let of_table = finds.entry(of.table).or_default();
            if !of_table.contains(&at) {
                of_table.push(at);
            }
        }
    }
    Outcome { exit, port, packet: seen, cells, records, record_order, finds }
}

/// Writes as runs from one root each; what is covered by later ones of the run is left out.
fn runs(blaster: &mut Blaster<'_>, writes: &[Write]) -> Vec<Run> {
    let mut runs: Vec<Run> = vec![];
    for Write { bits, value } in writes {
        if runs.last().is_none_or(|(root, _)| *root != bits.root) {
            runs.push((bits.root, BTreeMap::new()));
        }
        let value = blaster.word(*value);
        if let Some((_, run)) = runs.last_mut() {
            for low in 0..bits.width {
                let bit = blaster.gates.at(&value, low.into());
                run.insert(bits.end() - 1 - i32::from(low), bit);
            }
        }
    }
    runs
}

/// All in which two outcomes may differ: where none of the bits can be 1, they are equal.
pub fn differences(blaster: &mut Blaster<'_>, a: &Outcome, b: &Outcome) -> Vec<Difference> {
    let mut all = vec![];
    let yes = blaster.gates.yes();
    let mut note = |what: &str, bit: Bit| all.push(Difference { what: what.into(), bit });
    match (a.exit, b.exit) {
        (Exit::Emit(port), Exit::EmitTo(_)) | (Exit::EmitTo(_), Exit::Emit(port)) => {
            let port = blaster.gates.number(port.into());
            let own = if a.port.is_empty() { &b.port } else { &a.port };
            note("the exit", !blaster.gates.equal(&port, own));
        }
        (Exit::EmitTo(_), Exit::EmitTo(_)) => note("the exit", !blaster.gates.equal(&a.port, &b.port)),
        (a, b) if a == b => {}
        _ => note("the exit", yes),
    }
    if let (Some(a), Some(b)) = (&a.packet, &b.packet) {
        for ((name, a), (_, b)) in a.numbers.iter().zip(&b.numbers) {
            note(name, !blaster.gates.equal(a, b));
        }
        let bits: BTreeSet<i32> = a.annos.keys().chain(b.annos.keys()).copied().collect();
        for bit in bits {
            let own = blaster.packet_bit(Root::Anno, bit);
            let value = |of: &BTreeMap<i32, Bit>| of.get(&bit).copied().unwrap_or(own);
            let byte = (packet::anno::ANNO_BYTES as i32) - 1 - bit.div_euclid(8);
            note(&format!("annotation byte {byte}"), blaster.gates.xor(value(&a.annos), value(&b.annos)));
        }
        packet_bytes(blaster, &a.bytes, &b.bytes, &mut note);
    }
    let cells: BTreeSet<u16> = a.cells.keys().chain(b.cells.keys()).copied().collect();
    for cell in cells {
        let own = blaster.free_atom(Atom::Cell(cell), 64);
        let value = |of: &BTreeMap<u16, Word>| of.get(&cell).cloned().unwrap_or_else(|| own.clone());
        note(&format!("cell {cell}"), !blaster.gates.equal(&value(&a.cells), &value(&b.cells)));
    }
    records(blaster, a, b, &mut note);
    let tables: BTreeSet<u16> = a.finds.keys().chain(b.finds.keys()).copied().collect();
    for table in tables {
        let none = vec![];
        let (a, b) = (a.finds.get(&table).unwrap_or(&none), b.finds.get(&table).unwrap_or(&none));
        let what = format!("lookups in table {table}");
        if a.len() != b.len() {
            note(&what, yes);
            continue;
        }
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
            let (a, b) = (blaster.asked[*a].clone(), blaster.asked[*b].clone());
            if a.args.is_some() != b.args.is_some() {
                note(&what, yes);
                continue;
            }
            let args = a.args.iter().flatten().zip(b.args.iter().flatten());
            for (a, b) in a.key.iter().zip(&b.key).chain(args) {
                note(&what, !blaster.gates.equal(a, b));
            }
        }
    }
    all
}

/// Bytes: where they are counted from one place, bit by bit; else in the same order, or apart for certain.
fn packet_bytes(blaster: &mut Blaster<'_>, a: &[Run], b: &[Run], note: &mut impl FnMut(&str, Bit)) {
    if a == b {
        return;
    }
    let merged = |of: &[Run]| {
        let mut all: BTreeMap<(Root, i32), Bit> = BTreeMap::new();
        for (root, bits) in of {
            all.extend(bits.iter().map(|(bit, value)| ((*root, *bit), *value)));
        }
        all
    };
    let (all_a, all_b) = (merged(a), merged(b));
    let places: BTreeSet<(Root, i32)> = all_a.keys().chain(all_b.keys()).copied().collect();
    for place in &places {
        let own = blaster.packet_bit(place.0, place.1);
        let value = |of: &BTreeMap<(Root, i32), Bit>| of.get(place).copied().unwrap_or(own);
        note("a byte of the packet", blaster.gates.xor(value(&all_a), value(&all_b)));
    }
    // With several roots, what was said holds where nothing that is written lies in two places.
    let mut hulls: BTreeMap<Root, (i32, i32)> = BTreeMap::new();
    for (root, bit) in &places {
        let hull = hulls.entry(*root).or_insert((*bit, *bit));
        *hull = (hull.0.min(*bit), hull.1.max(*bit));
    }
    let hulls: Vec<(Root, (i32, i32))> = hulls.into_iter().collect();
    for (at, (root, hull)) in hulls.iter().enumerate() {
        for (other, other_hull) in &hulls[at + 1..] {
            let (Root::At(root), Root::At(other)) = (root, other) else { continue };
            let (root, other) = (blaster.word(*root), blaster.word(*other));
            let ends = |blaster: &mut Blaster<'_>, root: &[Bit], hull: (i32, i32)| {
                // Counted from far in front, so that nothing is below 0.
                let at = |bit: i32| (0x1_0000 + i64::from(bit.div_euclid(8))) as u64;
                let (first, last) = (blaster.gates.number(at(hull.0)), blaster.gates.number(at(hull.1)));
                (blaster.gates.add(root, &first), blaster.gates.add(root, &last))
            };
            let (first, last) = ends(blaster, &root, *hull);
            let (other_first, other_last) = ends(blaster, &other, *other_hull);
            let meets_front = blaster.gates.at_most(&first, &other_last);
            let meets_back = blaster.gates.at_most(&other_first, &last);
            note("whether two headers overlap", blaster.gates.and(meets_front, meets_back));
        }
    }
}

fn records(blaster: &mut Blaster<'_>, a: &Outcome, b: &Outcome, note: &mut impl FnMut(&str, Bit)) {
    if a.records == b.records && a.record_order == b.record_order {
        return;
    }
    let places: BTreeSet<(usize, u16)> = a.records.keys().chain(b.records.keys()).copied().collect();
    for (lookup, offset) in &places {
        let own = blaster.record_byte(*lookup, *offset);
        let value =
            |of: &Outcome| of.records.get(&(*lookup, *offset)).cloned().unwrap_or_else(|| own.clone());
        let what = format!("a record of table {}", blaster.asked[*lookup].table);
        note(&what, !blaster.gates.equal(&value(a), &value(b)));
    }
    let lookups: BTreeSet<usize> = places.iter().map(|(lookup, _)| *lookup).collect();
    for one in &lookups {
        for other in lookups.range(one + 1..) {
            if blaster.asked[*one].table == blaster.asked[*other].table {
                let (a, b) = (blaster.asked[*one].record.clone(), blaster.asked[*other].record.clone());
                note("whether two records are one", blaster.gates.equal(&a, &b));
            }
        }
    }
}
