//! The solver's solution, as a packet and tables.

use crate::blast::{Asked, Blaster};
use crate::tables::TestTables;
use ir::Tables;
use ir::program::TableDecl;
use packet::field::Base;
use rand::Rng;
use rand_pcg::Pcg64;
use shm::descriptor::{BUF_BYTES, NO_HEADER, Packet};
use std::collections::BTreeMap;
use synth::classes::expr::{Atom, Root};
use synth::classes::packets::{CreatedPacket, World};
use synth::classes::{Class, Classes};

/// A solution for packets of a class.
pub struct Solution {
    /// The packet as it was found.
    pub packet: CreatedPacket,
    /// The tables with their records.
    pub tables: TestTables,
    /// The packet with values adjusted that are free only for the solver, if it is of the class then.
    pub mended: Option<CreatedPacket>,
}

/// The solution for a packet of this class.
pub fn solution(
    blaster: &Blaster<'_>,
    classes: &Classes,
    class: &Class,
    (decls, cells): (&[TableDecl], &[u64]),
    rng: &mut Pcg64,
) -> Solution {
    let (made, tables) = (packet(blaster, cells, class.is_from_port, rng), tables(blaster, decls));
    let keys = |table: u16| tables.0.get(usize::from(table)).map_or(vec![], |table| table.keys());
    let mut fresh = || -> Box<dyn Tables> { Box::new(tables.clone()) };
    let mut world = World { tables: &mut fresh, keys: &keys };
    let mended = class.mended(classes, made.clone(), &mut world, rng);
    Solution { packet: made, tables, mended }
}

/// Gives the cells that programs do not write the values of the configuration, for which programs are compiled.
pub fn configure(cells: &mut [u64], configured: &[u64], written: &[bool]) {
    for ((cell, value), is_written) in cells.iter_mut().zip(configured).zip(written) {
        if !is_written {
            *cell = *value;
        }
    }
}

/// The packet of the solution; values that are in no question are arbitrary.
fn packet<R: Rng>(blaster: &Blaster<'_>, cells: &[u64], is_from_port: bool, rng: &mut R) -> CreatedPacket {
    let value = |atom: Atom, width: usize, other: u64| blaster.atom_value(atom, width).unwrap_or(other);
    let data = value(Atom::Room, 12, 128).min(BUF_BYTES as u64) as u16;
    let most = BUF_BYTES as u64 - u64::from(data);
    let len = value(Atom::Head, 12, 80).min(most) as u32;
    let rest = value(Atom::Rest, 32, 0) as u32;
    let place = |base: Base, other: u16| value(Atom::Place(base), 16, other.into()) as u16;
    // Both ends were limited to the buffer.
    let mut packet = Packet::detached(data, len).unwrap_or(Packet::EMPTY);
    let _ = packet.set_rest(rest.min(u32::MAX - BUF_BYTES as u32));
    packet.mac = place(Base::Mac, data);
    packet.net = place(Base::Net, data + 14);
    packet.trans = place(Base::Trans, data + 34);
    packet.timestamp_ns = value(Atom::Timestamp, 64, 5);
    packet.flow_hash = value(Atom::FlowHash, 32, 0) as u32;
    packet.origin = value(Atom::Origin, 16, 0) as u16;
    packet.packet_type = value(Atom::PacketType, 8, 0) as u8;
    let mut buffer = vec![0; BUF_BYTES];
    rng.fill(buffer.as_mut_slice());
    if is_from_port {
        (packet.mac, packet.net, packet.trans) = (data, NO_HEADER, NO_HEADER);
        // IPv4, unless the class is of other frames: only such flows have entries.
        buffer.iter_mut().skip(usize::from(data) + 12).zip([8, 0]).for_each(|(byte, of)| *byte = of);
    }
    // Bits counted from a later header are last: bits of the same bytes from an earlier one were not used.
    let mut bits: Vec<_> = blaster.packet_bits().collect();
    bits.sort_unstable_by_key(|(place, _)| **place);
    for (&(root, bit), &of) in bits {
        let one = blaster.gates.bit(of);
        let set = |byte: Option<&mut u8>, bit: i64| {
            let mask = 0x80 >> bit.rem_euclid(8);
            if let Some(byte) = byte {
                *byte = if one { *byte | mask } else { *byte & !mask };
            }
        };
        match root {
            Root::Anno if bit < 0 => {}
            // In this numbering the last byte is first.
            Root::Anno => {
                let last = packet.anno.len() as i64 - 1;
                let at = last - i64::from(bit).div_euclid(8);
                set(usize::try_from(at).ok().and_then(|at| packet.anno.get_mut(at)), bit.into());
            }
            Root::At(at) => {
                let start = blaster.known(at).map_or(0, |word| blaster.gates.value(word));
                let bit = (start as i64).wrapping_mul(8).wrapping_add(bit.into());
                set(usize::try_from(bit.div_euclid(8)).ok().and_then(|at| buffer.get_mut(at)), bit);
            }
        }
    }
    let cells = cells.iter().enumerate().map(|(at, cell)| value(Atom::Cell(at as u16), 64, *cell));
    let cells = cells.collect();
    CreatedPacket { packet, buffer, cells, now_ns: value(Atom::Now, 64, 1_000_000_000) }
}

/// The tables of the solution.
fn tables(blaster: &Blaster<'_>, decls: &[TableDecl]) -> TestTables {
    let mut tables = TestTables::new(decls);
    let mut made: BTreeMap<(u16, u64, Option<Vec<u64>>), usize> = BTreeMap::new();
    let gates = &blaster.gates;
    for Asked { table, key, args, found, record, .. } in &blaster.asked {
        let key: Vec<u64> = key.iter().map(|word| gates.value(word)).collect();
        let record = gates.value(record);
        let Some(target) = tables.0.get_mut(usize::from(*table)) else { continue };
        if !gates.bit(*found) {
            if args.is_some() {
                target.refused.insert(key);
            }
            continue;
        }
        // What a record has of checksums follows from its key, so that each key has a record of its own.
        let own = (!decls[usize::from(*table)].deltas.is_empty()).then(|| key.clone());
        let at = *made.entry((*table, record, own)).or_insert_with(|| {
            // All lookups that found this record contribute to its content.
            let same = blaster.asked.iter().filter(|other| {
                other.table == *table && gates.bit(other.found) && gates.value(&other.record) == record
            });
            let bytes = same.flat_map(|other| &other.bytes);
            target.record(bytes.map(|(offset, word)| (*offset, gates.value(word) as u8)).collect::<Vec<_>>())
        });
        target.keep_deltas(at, &key);
        let records = if args.is_some() { &mut target.waiting } else { &mut target.by_key };
        records.insert(key, at);
    }
    tables
}
