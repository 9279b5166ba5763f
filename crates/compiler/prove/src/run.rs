//! Runs one packet in three ways: through the elements one after the other in the evaluator, through the
//! fused program in the evaluator, and through the fused program as machine code. Each starts from the
//! same state.

use crate::compose::Numbering;
use crate::flow_entry::{Ordered, TemplateKey, Templates};
use crate::subgraph::FusedSubgraph;
use crate::tables::{Call, TestTables};
use codegen::{CodegenError, Engine, Scratch};
use ir::analysis::lasting::{self, Written};
use ir::eval::{EvalState, Exit};
use packet::access::Access;
use packet::anno::ANNO_BYTES;
use shm::burst::{Burst, Exits};
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::descriptor::Packet;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{Pool, SharedPool};
use std::collections::HashSet;
use synth::classes::packets::CreatedPacket;

/// The exit of a packet from a fused region, by element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves {
    /// By an element's port.
    Port(usize, usize),
    /// Dropped by an element for a reason.
    Drop(usize, usize),
    /// To an element's slow path.
    Slow(usize, usize),
}

/// The observable state of a packet that left.
#[derive(Clone, PartialEq, Debug)]
pub struct Left {
    /// The slot's bytes.
    pub buffer: Vec<u8>,
    /// Its annotations.
    pub anno: [u8; ANNO_BYTES],
    /// Offsets of the first byte, and of the three headers.
    pub places: [u16; 4],
    /// Bytes of the first segment, and of all.
    pub lengths: [u32; 2],
    /// Click's packet type.
    pub packet_type: u8,
}

/// The observable results of a run for one packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// The exit.
    pub leaves: Leaves,
    /// The packet; `None` if it was dropped.
    pub left: Option<Left>,
    /// Cells; counting cells follow those of the elements.
    pub cells: Vec<u64>,
    /// Records by table and key.
    pub records: Vec<Vec<(Vec<u64>, Vec<u8>)>>,
    /// Calls on tables; machine code makes different ones.
    pub calls: Option<Vec<Vec<Call>>>,
}

/// Runs packets through a fused region.
pub struct Runs<'a> {
    region: &'a FusedSubgraph<'a>,
    numbers: &'a Numbering,
    engine: Engine,
    pool: shm::pool::NativePool,
    scratch: Scratch,
    exits: Exits,
    /// How the fused program changes the numbers in records, for each table.
    written: Vec<Written>,
    templates: Templates,
    /// Packets that ran by their flow's entry.
    by_entry: usize,
}

/// The next packet of a flow that has an entry.
pub struct ByEntry {
    /// The packet.
    pub packet: CreatedPacket,
    /// The elements, one after the other.
    pub elements: Observed,
    /// Its flow's entry, with what it counts merged.
    pub entry: Observed,
}

/// The results for a packet in the three ways.
pub struct Three {
    /// The elements, one after the other.
    pub elements: Observed,
    /// The fused program in the evaluator.
    pub program: Observed,
    /// The same as machine code.
    pub code: Observed,
    /// A next packet of its flow that the entry treats in another way.
    pub by_entry: Option<ByEntry>,
}

impl Three {
    /// Whether the results are the same.
    pub fn are_equal(&self) -> bool {
        let by_code = Observed { calls: None, ..self.elements.clone() };
        self.elements == self.program && by_code == self.code && self.by_entry.is_none()
    }
}

/// The results of a run; `Err` names the invariant that was broken.
type Run = Result<Observed, String>;

/// The maximum number of wires that a packet passes before the run fails: they form no loop.
const MOST_WIRES: usize = 100_000;

impl<'a> Runs<'a> {
    /// For a fused region, whose program is compiled.
    ///
    /// # Errors
    /// When there is no memory for packets.
    pub fn new(
        region: &'a FusedSubgraph<'a>,
        numbers: &'a Numbering,
        engine: Engine,
    ) -> Result<Runs<'a>, CodegenError> {
        let memory = PacketRegion::create(RegionOptions::slots(64))
            .map_err(|error| CodegenError::Machine(format!("no memory for packets: {error}")))?;
        let pool = SharedPool::new(memory).worker();
        Ok(Runs {
            region,
            numbers,
            engine,
            pool,
            scratch: Scratch::default(),
            exits: Exits::default(),
            written: lasting::written(region.fused),
            templates: Templates::default(),
            by_entry: 0,
        })
    }

    /// Forgets which packets ran by entries, and which templates were met.
    pub fn begin(&mut self) {
        self.by_entry = 0;
        self.templates.begin();
    }

    /// Packets that ran by their flow's entry since then.
    pub fn by_entry(&self) -> usize {
        self.by_entry
    }

    /// The templates of these.
    pub fn templates(&self) -> HashSet<TemplateKey> {
        self.templates.met()
    }

    /// Runs a packet of one segment; `Err` names the invariant that was broken.
    pub fn run(&mut self, entry: usize, made: &CreatedPacket, tables: &TestTables) -> Result<Three, String> {
        Ok(Three {
            elements: self.elements(entry, made, &mut tables.clone())?,
            program: self.program(entry, made, &mut tables.clone())?,
            code: self.code(entry, made, &mut tables.clone())?,
            by_entry: self.next_ones(entry, made, tables)?,
        })
    }

    /// Runs next packets of the flow by its entry, if it has one. Returns one that is treated in another way.
    fn next_ones(
        &mut self,
        entry: usize,
        made: &CreatedPacket,
        tables: &TestTables,
    ) -> Result<Option<ByEntry>, String> {
        let order = self.order();
        let mut tables = tables.clone();
        for (table, written) in order.iter().zip(&self.written) {
            tables.0[*table].written.clone_from(written);
        }
        // The first packet, which makes the records.
        if let Leaves::Slow(..) = self.program(entry, made, &mut tables)?.leaves {
            return Ok(None);
        }
        tables.limit_times(made.now_ns);
        let mut templates = std::mem::take(&mut self.templates);
        let mut different = None;
        if let Some(flow) = templates.entry((self.region.fused, entry), made, tables, &order)? {
            let others = if flow.is_new { flow.changed(made) } else { vec![] };
            for made in std::iter::once(made.clone()).chain(others) {
                let Some(mut taken) = flow.take(entry, &made, &order)? else { continue };
                self.by_entry += 1;
                let mut elements = self.elements(entry, &made, &mut flow.tables.clone())?;
                elements.calls = None;
                let leaves = self.leaves(taken.exit).ok_or("an entry has an exit of no element")?;
                let entry = seen(
                    leaves,
                    &taken.packet,
                    std::mem::take(&mut taken.buffer),
                    std::mem::take(&mut taken.cells),
                    &mut taken.tables,
                    false,
                );
                if elements != entry {
                    different = Some(ByEntry { packet: made, elements, entry });
                    break;
                }
            }
        }
        self.templates = templates;
        Ok(different)
    }

    fn elements(&self, entry: usize, made: &CreatedPacket, tables: &mut TestTables) -> Run {
        let (mut packet, mut buffer, mut cells) = (made.packet, made.buffer.clone(), made.cells.clone());
        let (mut part, mut input) = self.region.entries[entry];
        for _ in 0..MOST_WIRES {
            let program = self.region.parts[part].program;
            let order: Vec<usize> =
                (0..program.tables.len()).map(|table| self.numbers.tables.number((part, table))).collect();
            let start = self.numbers.cells.number((part, 0));
            let mut own = Ordered { tables: &mut *tables, order: &order };
            let cells_of = &mut cells[start..start + program.cells.len()];
            let mut state = EvalState { cells: cells_of, tables: &mut own, now_ns: made.now_ns };
            let exit = ir::eval::run(program, input, &mut packet, buffer.as_mut_slice(), &mut state)
                .map_err(|error| error.to_string())?;
            let leaves = match exit {
                Exit::Drop(reason) => Leaves::Drop(part, reason.into()),
                Exit::Slow(slow) => Leaves::Slow(part, slow.into()),
                Exit::Emit(port) => {
                    let port = usize::from(port);
                    if let Some(next) = self.region.next(part, port) {
                        if let Some(at) = self.region.counted.iter().position(|wire| *wire == (part, port)) {
                            let cell = &mut cells[self.numbers.cells.count() + at];
                            *cell = cell.wrapping_add(1);
                        }
                        (part, input) = next;
                        continue;
                    }
                    Leaves::Port(part, port)
                }
            };
            return Ok(seen(leaves, &packet, buffer, cells, tables, true));
        }
        Err("the elements pass a packet round and round".into())
    }

    fn order(&self) -> Vec<usize> {
        self.region.linked.tables.iter().map(|of| self.numbers.tables.number(*of)).collect()
    }

    fn leaves(&self, exit: Exit) -> Option<Leaves> {
        let linked = self.region.linked;
        let of = |list: &[(usize, usize)], at: u16| list.get(usize::from(at)).copied();
        Some(match exit {
            Exit::Emit(port) => of(&linked.outputs, port).map(|(part, port)| Leaves::Port(part, port))?,
            Exit::Drop(reason) => of(&linked.reasons, reason).map(|(part, own)| Leaves::Drop(part, own))?,
            Exit::Slow(slow) => of(&linked.slow, slow).map(|(part, own)| Leaves::Slow(part, own))?,
        })
    }

    fn program(&self, entry: usize, made: &CreatedPacket, tables: &mut TestTables) -> Run {
        let (mut packet, mut buffer, mut cells) = (made.packet, made.buffer.clone(), made.cells.clone());
        let order = self.order();
        let mut own = Ordered { tables: &mut *tables, order: &order };
        let mut state = EvalState { cells: &mut cells, tables: &mut own, now_ns: made.now_ns };
        let exit = ir::eval::run(self.region.fused, entry, &mut packet, buffer.as_mut_slice(), &mut state)
            .map_err(|error| error.to_string())?;
        let leaves = self.leaves(exit).ok_or("the fused program has an exit of no element")?;
        Ok(seen(leaves, &packet, buffer, cells, tables, true))
    }

    fn code(&mut self, entry: usize, made: &CreatedPacket, tables: &mut TestTables) -> Run {
        let mut packets = [Packet::EMPTY];
        if self.pool.alloc(&mut packets) != 1 {
            return Err("no slot for a packet".into());
        }
        let slot = packets[0];
        let whole = slot.whole_buffer();
        let fits = PacketBytesMut::new(&mut whole.clone()).copy_in(0, &made.buffer);
        if !fits {
            return Err("a packet does not fit its slot".into());
        }
        let packet = &mut packets[0];
        let fits = packet.set_ends(made.packet.data(), made.packet.len());
        if !(fits && packet.set_rest(made.packet.total() - made.packet.len())) {
            return Err("a packet reaches beyond its slot".into());
        }
        let Packet { mac, net, trans, anno, timestamp_ns, flow_hash, origin, packet_type, .. } = made.packet;
        (packet.mac, packet.net, packet.trans) = (mac, net, trans);
        (packet.timestamp_ns, packet.flow_hash, packet.origin) = (timestamp_ns, flow_hash, origin);
        (packet.packet_type, packet.anno) = (packet_type, anno);
        let mut cells = made.cells.clone();
        let order = self.order();
        let mut own = Ordered { tables: &mut *tables, order: &order };
        let mut state = EvalState { cells: &mut cells, tables: &mut own, now_ns: made.now_ns };
        let program = self.region.fused;
        let burst = Burst { input: entry, packets: &mut packets, list: &[0] };
        codegen::run(&self.engine, burst, &mut state, &mut self.scratch, &mut self.exits);
        let (outputs, reasons) = (usize::from(program.outputs), program.reasons.len());
        let lists = outputs + reasons + program.slow.len();
        let list = (0..lists).find(|at| !self.exits.list(*at).is_empty());
        let leaves = list.and_then(|list| {
            self.leaves(match list {
                list if list < outputs => Exit::Emit(list as u16),
                list if list < outputs + reasons => Exit::Drop((list - outputs) as u16),
                list => Exit::Slow((list - outputs - reasons) as u16),
            })
        });
        let leaves = leaves.ok_or("machine code lost a packet")?;
        let buffer = PacketBytes::new(&whole).to_vec();
        let seen = seen(leaves, &packets[0], buffer, cells, tables, false);
        self.pool.free_all(&[slot]);
        Ok(seen)
    }
}

fn seen(
    leaves: Leaves,
    packet: &Packet,
    buffer: Vec<u8>,
    cells: Vec<u64>,
    tables: &mut TestTables,
    calls: bool,
) -> Observed {
    let left = Left {
        buffer,
        anno: packet.anno,
        places: [packet.data(), packet.mac, packet.net, packet.trans],
        lengths: [packet.len(), packet.total()],
        packet_type: packet.packet_type,
    };
    Observed {
        leaves,
        left: (!matches!(leaves, Leaves::Drop(..))).then_some(left),
        cells,
        records: tables.records(),
        calls: calls.then(|| tables.calls()),
    }
}
