//! The effects of a class, in a form that can be compared bit by bit.

use crate::blast::{Blaster, Run};
use crate::gates::{Bit, Word};
use packet::anno;
use packet::field::Base;
use std::collections::{BTreeMap, BTreeSet};
use synth::classes::expr::{Atom, Root};
use synth::classes::path_state::StateLocation;
use synth::classes::{Class, Exit};

/// The effects of a class.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    exit: Exit,
    /// The port, if it depends on the packet.
    port: Word,
    /// The observable packet; `None` if it is dropped.
    packet: Option<SeenPacket>,
    cells: BTreeMap<u16, Word>,
    /// Writes to records by lookup and offset.
    records: BTreeMap<(usize, u16), Word>,
    /// Lookups by table and byte of their records, in the order of the last write of each: of two records that are one,
    /// the later number counts.
    record_order: BTreeMap<(u16, u16), Vec<usize>>,
    /// Lookups, by table.
    finds: BTreeMap<u16, Vec<usize>>,
}

#[derive(Clone, PartialEq, Debug)]
struct SeenPacket {
    /// The offsets of the first byte, the end, other segments, the type, and the headers.
    numbers: Vec<(&'static str, Word)>,
    bytes: Vec<Run>,
    annos: BTreeMap<i32, Bit>,
}

/// A part in which two classes may differ, and the bit that is 1 if they do.
pub struct Difference {
    /// The part.
    pub what: String,
    /// Whether they differ.
    pub bit: Bit,
}

/// The annotations' byte of a bit: the last byte comes first.
fn annotation_byte(bit: i32) -> i32 {
    anno::ANNO_BYTES as i32 - 1 - bit.div_euclid(8)
}

/// Whether a bit of the annotations is 0 where packets come from a port.
fn is_unset(bit: i32) -> bool {
    usize::try_from(annotation_byte(bit)).is_ok_and(anno::is_unset)
}

/// The effects of a class, as bits.
pub fn outcome(blaster: &mut Blaster<'_>, class: &Class) -> Outcome {
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
                StateLocation::Unset => blaster.gates.number(0xffff),
                StateLocation::Entry(from) => {
                    debug_assert_eq!(*from, base);
                    blaster.part(Atom::Place(*from), 16)
                }
                StateLocation::At(id) => blaster.word(*id),
            };
            let word = blaster.gates.slice(&word, 0, 16);
            numbers.push((name, word));
        }
        let mut annos = BTreeMap::new();
        for run in blaster.runs(&end.annos) {
            annos.extend(run.1);
        }
        // Such packets enter without annotations: their bits are 0 for the solver, too. A blaster has classes of one entry.
        for bit in annos.keys().filter(|bit| class.is_from_port && is_unset(**bit)) {
            let own = blaster.packet_bit(Root::Anno, *bit);
            blaster.gates.clause(&[!own]);
        }
        annos.retain(|bit, value| blaster.packet_bit(Root::Anno, *bit) != *value);
        let mut bytes = blaster.runs(&end.bytes);
        if bytes.len() == 1 {
            let (root, bits) = &mut bytes[0];
            bits.retain(|bit, value| blaster.packet_bit(*root, *bit) != *value);
            bytes.retain(|run| !run.1.is_empty());
        }
        SeenPacket { numbers, bytes, annos }
    });
    let (exit, port) = match class.exit {
        Exit::EmitTo(port) => (class.exit, blaster.word(port)),
        exit => (exit, vec![]),
    };
    let mut cells: BTreeMap<u16, Word> =
        end.cells.iter().map(|(cell, id)| (*cell, blaster.word(*id))).collect();
    cells.retain(|cell, word| blaster.part(Atom::Cell(*cell), 64) != *word);
    let mut records = BTreeMap::new();
    let mut record_order: BTreeMap<(u16, u16), Vec<usize>> = BTreeMap::new();
    for write in &end.records {
        let lookup = blaster.lookup_of(write.rec);
        let value = blaster.word(write.value);
        for at in 0..u16::from(write.bytes) {
            let byte = blaster.gates.slice(&value, usize::from(at) * 8, 8);
            records.insert((lookup, write.offset + at), byte);
            let order = record_order.entry((write.table, write.offset + at)).or_default();
            order.retain(|other| *other != lookup);
            order.push(lookup);
        }
    }
    let mut finds: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for find in &end.finds {
        let at = blaster.ask(*find);
        let of_table = finds.entry(blaster.asked[at].table).or_default();
        if !of_table.contains(&at) {
            of_table.push(at);
        }
    }
    Outcome { exit, port, packet: seen, cells, records, record_order, finds }
}

/// How the bytes of two packets are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytes {
    /// By what is written, where that is in the same order: [`Blaster::differences`].
    InOrder,
    /// By what is read behind all writes: [`Blaster::differences_as_read`].
    AsRead,
}

/// All parts in which two outcomes may differ: if none of the bits can be 1, they are equal.
pub fn differences(blaster: &mut Blaster<'_>, a: &Outcome, b: &Outcome, bytes: Bytes) -> Vec<Difference> {
    let mut all = vec![];
    let yes = blaster.gates.yes();
    let mut note = |what: &str, bit: Bit| all.push(Difference { what: what.into(), bit });
    match (a.exit, b.exit) {
        (Exit::Emit(port), Exit::EmitTo(_)) | (Exit::EmitTo(_), Exit::Emit(port)) => {
            let port = blaster.gates.number(port.into());
            let own = if matches!(b.exit, Exit::EmitTo(_)) { &b.port } else { &a.port };
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
            let byte = annotation_byte(bit);
            note(&format!("annotation byte {byte}"), blaster.gates.xor(value(&a.annos), value(&b.annos)));
        }
        let bytes = match bytes {
            Bytes::InOrder => blaster.differences(&a.bytes, &b.bytes),
            Bytes::AsRead => blaster.differences_as_read(&a.bytes, &b.bytes),
        };
        for (place, bit) in bytes.bits.into_iter().filter(|(_, bit)| blaster.gates.known(*bit) != Some(false))
        {
            note(&blaster.field(place), bit);
        }
        bytes.overlaps.into_iter().for_each(|bit| note("whether two headers overlap", bit));
    }
    let cells: BTreeSet<u16> = a.cells.keys().chain(b.cells.keys()).copied().collect();
    for cell in cells {
        let own = blaster.part(Atom::Cell(cell), 64);
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

/// Records: lookups of both sides correspond by their index in the order. Different keys are reported as a
/// difference of their own.
fn records(blaster: &mut Blaster<'_>, a: &Outcome, b: &Outcome, note: &mut impl FnMut(&str, Bit)) {
    if a.records == b.records && a.record_order == b.record_order {
        return;
    }
    let pairs = a.finds.iter().filter_map(|(table, a)| Some((a, b.finds.get(table)?)));
    let twins: BTreeMap<usize, usize> =
        pairs.flat_map(|(a, b)| b.iter().copied().zip(a.iter().copied())).collect();
    let twin = |lookup: usize| twins.get(&lookup).copied().unwrap_or(lookup);
    let of_b: BTreeMap<(usize, u16), &Word> =
        b.records.iter().map(|((lookup, offset), word)| ((twin(*lookup), *offset), word)).collect();
    let order = b.record_order.iter();
    let order: BTreeMap<(u16, u16), Vec<usize>> =
        order.map(|(byte, lookups)| (*byte, lookups.iter().map(|of| twin(*of)).collect())).collect();
    let places: BTreeSet<(usize, u16)> = a.records.keys().chain(of_b.keys()).copied().collect();
    for place @ (lookup, offset) in &places {
        let own = blaster.record_byte(*lookup, *offset);
        let (mine, theirs) = (a.records.get(place).unwrap_or(&own), of_b.get(place).copied().unwrap_or(&own));
        let what = format!("a record of table {}", blaster.asked[*lookup].table);
        note(&what, !blaster.gates.equal(mine, theirs));
    }
    if order == a.record_order {
        return;
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
