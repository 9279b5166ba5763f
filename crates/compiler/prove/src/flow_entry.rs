//! The flow cache's entry of a packet's flow, as a further way for packets to go through a fused region.
//!
//! A packet runs through the fused program, so that its flow has its records. Its path is recorded as a
//! template, and its flow's entry is made, as the worker does it. The next packet of the flow must be treated
//! alike by the elements and by the entry, whose counts are then merged into the records: so the chain's
//! record stands for exactly those of its elements. The first packets of each template are changed in ways
//! that leave the flow as it is; an entry treats them as the elements do, or leaves them as they are.
//!
//! Which numbers of records are counted and merged follows from how programs write them
//! ([`ir::analysis::lasting`]); the tables' own word is not asked, and a clock does not go back.

use crate::tables::TestTables;
use ir::eval::{EvalState, Exit};
use ir::{Table, Tables, Verified};
use packet::{anno, checksum};
use shm::descriptor::Packet;
use std::collections::{HashMap, HashSet};
use synth::classes::packets::CreatedPacket;
use synth::optimize::{Known, finished};
use synth::template::{Layout, Recorder, Recording, Template, program};

/// The first packets of a template that are changed.
const CHANGED: usize = 2;

/// A flow with an entry, and the program of its template.
pub struct FlowEntry<'t> {
    pub cache_program: &'t Verified,
    pub recording: Recording,
    /// The tables with the flow's records.
    pub tables: TestTables,
    /// The flow's key.
    key: Vec<u64>,
    /// Whether other packets of the flow are run, too.
    pub is_new: bool,
    pub layout: Layout,
    /// Whether packets come from a port, without annotations.
    is_from_port: bool,
}

/// What the entry did to a packet.
pub struct Taken {
    pub exit: Exit,
    pub packet: Packet,
    pub buffer: Vec<u8>,
    pub cells: Vec<u64>,
    pub tables: TestTables,
}

/// The templates that were met, with their programs and how often.
#[derive(Default)]
pub struct Templates {
    recorder: Option<Recorder>,
    known: HashMap<TemplateKey, (Verified, usize)>,
}

/// The entry, where headers are, and the operations of a template.
pub type TemplateKey = (usize, Layout, Template);

impl Templates {
    /// Forgets which templates were met, but not their programs.
    pub fn begin(&mut self) {
        self.known.values_mut().for_each(|(_, met)| *met = 0);
    }

    /// The templates that were met since then.
    pub fn met(&self) -> HashSet<TemplateKey> {
        self.known.iter().filter(|(_, (_, met))| *met > 0).map(|(key, _)| key.clone()).collect()
    }

    /// Records a packet whose records are in the tables, which `with` gives in the program's order. `None`
    /// where packets have no template. `Err` names the invariant that was broken.
    pub fn entry(
        &mut self,
        (whole, entry): (&Verified, usize),
        made: &CreatedPacket,
        tables: TestTables,
        order: &[usize],
    ) -> Result<Option<FlowEntry<'_>>, String> {
        let (packet, buffer) = (&made.packet, made.buffer.as_slice());
        let Some(layout) = Layout::of(packet, buffer) else { return Ok(None) };
        let Some(key) = layout.read(packet, buffer, entry) else { return Ok(None) };
        let mut tables = tables;
        let mut cells = made.cells.clone();
        let mut own = Ordered { tables: &mut tables, order };
        let mut state = EvalState { cells: &mut cells, tables: &mut own, now_ns: made.now_ns };
        let recorder = self.recorder.get_or_insert_with(|| Recorder::new(whole));
        let Ok(recording) = recorder.record(whole, entry, layout, packet, buffer, &mut state) else {
            return Ok(None);
        };
        let which = (entry, layout, recording.template.clone());
        if !self.known.contains_key(&which) {
            let mut layouts = vec![None; whole.entries.len()];
            layouts[entry] = Some(layout);
            let templates = [(entry, recording.template.clone())];
            let bytes = recording.template.entry_bytes();
            let plain = program(whole, &layouts, &templates, bytes, 0).map_err(|error| error.to_string())?;
            let optimized = finished(&plain, &Known::default()).map_err(|error| error.to_string())?;
            self.known.insert(which.clone(), (optimized, 0));
        }
        let Some((cache_program, met)) = self.known.get_mut(&which) else { return Ok(None) };
        *met += 1;
        let is_new = *met <= CHANGED;
        let is_from_port = whole.from_ports.contains(&(entry as u16));
        Ok(Some(FlowEntry {
            cache_program,
            recording,
            tables,
            key: key.into(),
            is_new,
            layout,
            is_from_port,
        }))
    }
}

impl FlowEntry<'_> {
    /// Runs a packet of the flow. `None` if it is to take the whole program; `Err` if it was changed
    /// nevertheless, or an invariant was broken.
    pub fn take(&self, entry: usize, made: &CreatedPacket, order: &[usize]) -> Result<Option<Taken>, String> {
        let (mut packet, mut buffer, mut cells) = (made.packet, made.buffer.clone(), made.cells.clone());
        let Recording { template, numbers, lines, .. } = &self.recording;
        let mut flows = TestTables::new(&self.cache_program.tables);
        let flow = &mut flows.0[0];
        let zeros = (0..template.entry_bytes() as u16).map(|at| (at, 0));
        let at = flow.record(zeros.collect::<Vec<_>>());
        let handle = flow.handle(at);
        for ((offset, bytes), number) in template.params.iter().zip(numbers) {
            flow.record_store(handle, *offset, *bytes, *number);
        }
        flow.by_key.insert(self.key.clone(), at);
        let mut state = EvalState { cells: &mut cells, tables: &mut flows, now_ns: made.now_ns };
        let exit = ir::eval::run(self.cache_program, entry, &mut packet, buffer.as_mut_slice(), &mut state)
            .map_err(|error| error.to_string())?;
        if let Exit::Slow(_) = exit {
            let parts = |of: &Packet| {
                let places = [of.data(), of.mac, of.net, of.trans];
                (places, of.len(), of.total(), of.anno, of.packet_type)
            };
            let is_same =
                parts(&packet) == parts(&made.packet) && buffer == made.buffer && cells == made.cells;
            return if is_same {
                Ok(None)
            } else {
                Err("an entry changed a packet that it does not take".into())
            };
        }
        let mut tables = self.tables.clone();
        for merging in &template.merges {
            let line = usize::from(merging.line);
            let table = order[usize::from(template.lines[line])];
            let Some(record) = self.tables.0[table].at(lines[line]) else { continue };
            let part = flows.0[0].record_load(handle, merging.tally.0, merging.tally.1);
            let target = &mut tables.0[table];
            let record = target.handle(record);
            merging.merge(part, target, record);
        }
        Ok(Some(Taken { exit, packet, buffer, cells, tables }))
    }

    /// Other packets of the flow: changed in one place each.
    pub fn changed(&self, made: &CreatedPacket) -> Vec<CreatedPacket> {
        let data = usize::from(made.packet.data());
        let (net, trans) = (data + usize::from(self.layout.net), data + usize::from(self.layout.trans));
        let mut all = vec![];
        let mut with = |bytes: &[(usize, u8)], sums: bool| {
            let mut other = made.clone();
            let is_there = bytes.iter().all(|(at, _)| *at < other.buffer.len());
            if is_there {
                bytes.iter().for_each(|(at, byte)| other.buffer[*at] = *byte);
                let length = usize::from(other.buffer[net] & 15) * 4;
                if !sums || checksum::set_ipv4_header(other.buffer.as_mut_slice(), net, length) {
                    all.push(other);
                }
            }
        };
        let byte = |at: usize| made.buffer.get(at).copied().unwrap_or(0);
        // Time to live, fragments, length, options, service, and a wrong sum.
        [0, 1, 2, 3, 255].into_iter().for_each(|ttl| with(&[(net + 8, ttl)], true));
        [(0x20, 0), (0, 1), (0x40, 0)]
            .into_iter()
            .for_each(|(a, b)| with(&[(net + 6, a), (net + 7, b)], true));
        [(0, 20), (0, 27), (0, 255), (255, 0)]
            .into_iter()
            .for_each(|(a, b)| with(&[(net + 2, a), (net + 3, b)], true));
        with(&[(net, 0x46)], true);
        with(&[(net, 0x65)], true);
        with(&[(net + 1, !byte(net + 1))], true);
        with(&[(net + 10, !byte(net + 10))], false);
        // TCP's flags and length of header; UDP's checksum.
        [0x01, 0x02, 0x04, 0x10, 0x11].into_iter().for_each(|flags| with(&[(trans + 13, flags)], false));
        with(&[(trans + 12, 0xf0)], false);
        with(&[(trans + 6, 0), (trans + 7, 0)], false);
        with(&[(trans + 6, 1), (trans + 7, 2)], false);
        // Ethernet's addresses and type.
        [0, 6, 12].into_iter().for_each(|at| with(&[(data + at, !byte(data + at))], false));
        // Annotations, and shorter packets.
        for at in (0..made.packet.anno.len()).filter(|at| !self.is_from_port || !anno::is_unset(*at)) {
            let mut other = made.clone();
            other.packet.anno[at] ^= 1;
            all.push(other);
        }
        let whole = made.packet.len();
        for len in
            [u32::from(self.layout.trans) + 4, u32::from(self.layout.trans) + 8, whole.saturating_sub(1)]
        {
            let mut other = made.clone();
            if len < whole && other.packet.set_ends(made.packet.data(), len) {
                all.push(other);
            }
        }
        let is_of_flow = |other: &CreatedPacket| {
            let key = self.layout.read(&other.packet, other.buffer.as_slice(), 0);
            key == self.layout.read(&made.packet, made.buffer.as_slice(), 0)
        };
        all.retain(is_of_flow);
        all
    }
}

/// Tables in the order of a program.
pub struct Ordered<'a> {
    pub tables: &'a mut TestTables,
    pub order: &'a [usize],
}

impl Tables for Ordered<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.tables.table(*self.order.get(index)?)
    }
}
