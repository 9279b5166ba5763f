//! Linking: the programs of several elements become one.
//!
//! Where a packet leaves an element by a port that is wired inside the fused region, the linked program
//! continues at the next element's entry. A packet leaves the fused region by an *exit*: a port whose wire
//! leads out of the region, a drop, a slow path. The program has the cells and tables of all parts. For each
//! packet, it does the same as the parts one after the other: same exits, same bytes, same state.
//!
//! Elements then do not count packets themselves. The packets on each wire inside are computed from those
//! that entered and left (conservation at each part, see [`Flow`]); only where a fused region forks and joins
//! again, some wires need a counting cell.

mod flow;

pub use flow::{Flow, Side, Step, Wire};

use ir::program::Cell;
use ir::{BinOp, Block, BlockId, Inst, Program, Term, Value, Verified};
use packet::field;
use std::collections::{BTreeSet, HashMap, HashSet};

/// An element of a fused region.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Its name, the prefix of its reasons and slow paths in the whole.
    pub name: &'a str,
    /// Its program.
    pub program: &'a Verified,
    /// The part before it whose cells and tables it shares: the same element, entered by another input.
    pub shares: Option<usize>,
    /// For each output port, the next part and its input; `None` where the wire leaves the fused region.
    pub next: Vec<Option<(usize, usize)>>,
}

/// A program linked from several, with the origin of each of its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linked {
    /// The program. Its input ports are the requested entries.
    pub program: Verified,
    /// For each output port of the program, the part and its port.
    pub outputs: Vec<(usize, usize)>,
    /// The output ports that few packets take; the linker knows of none, and its caller adds them.
    pub seldom: BTreeSet<u16>,
    /// For each drop reason, the part and its reason.
    pub reasons: Vec<(usize, usize)>,
    /// For each slow path, the part and its path.
    pub slow: Vec<(usize, usize)>,
    /// For each table, the part and its table; of parts that share tables, the first.
    pub tables: Vec<(usize, usize)>,
    /// The first cell of each part; parts that share cells have the same. The cells that count wires follow
    /// those of the last part.
    pub cells: Vec<usize>,
    /// Which cells the parts' programs write, those of inputs without packets in the region, too.
    pub written: Vec<bool>,
    /// The part that each block came from.
    pub origins: Vec<usize>,
    /// The computation of how many packets passed each wire inside.
    pub flow: Flow,
}

impl Linked {
    /// The same with these entries as [`Program::from_ports`]. There the MAC header is set to where it is, the first byte,
    /// so that what follows knows it.
    ///
    /// # Errors
    /// When the program breaks an invariant then: a bug.
    pub fn with_ports(self, entries: BTreeSet<u16>) -> Result<Linked, LinkError> {
        let mut origins = self.origins;
        let mut program = self.program.into_program();
        let next = program.value_count() as u32;
        for (zero, entry) in (next..).map(Value).zip(&entries) {
            let Some(start) = program.entries.get_mut(usize::from(*entry)) else { continue };
            origins.push(origins[start.index()]);
            let to = std::mem::replace(start, BlockId(program.blocks.len() as u32));
            program.blocks.push(mac_at_start(zero, to));
        }
        program.from_ports = entries;
        let origins = drop_unreached(&mut program, &origins);
        Ok(Linked { program: Verified::new(program)?, origins, ..self })
    }
}

/// A block for packets whose MAC header is the first byte: it is set once more to what it is, so that the verifier knows it,
/// too. Its value is a new one.
pub(crate) fn mac_at_start(zero: Value, then: BlockId) -> Block {
    let insts = vec![(Some(zero), Inst::Const(0)), (None, Inst::SetBase(field::Base::Mac, zero))];
    Block { params: vec![], insts, term: Term::Jump(then, vec![]) }
}

/// A fused region that cannot be linked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// Some number does not fit the IR.
    #[error("the fused region has more than 65,535 {0}")]
    TooMany(&'static str),
    /// A bug: the parts satisfy the invariants, and the whole does not.
    #[error("the linked program is wrong: {0}")]
    Wrong(#[from] ir::verify::VerifyError),
}

/// Links parts into one program with an input port for each of `entries` (part, input). Wires must form no
/// cycle.
///
/// # Errors
/// When the fused region is too large, or its wires form a cycle.
pub fn link(name: &str, parts: &[Part<'_>], entries: &[(usize, usize)]) -> Result<Linked, LinkError> {
    let wires = wires(parts);
    let flow = flow::plan(parts.len(), &wires);
    let mut linker = Linker::new(parts, &wires, &flow);
    for (at, part) in parts.iter().enumerate() {
        linker.add(at, part)?;
    }
    linker.finish(name, entries, flow)
}

fn wires(parts: &[Part<'_>]) -> Vec<Wire> {
    let of_part = |(from, part): (usize, &Part<'_>)| -> Vec<Wire> {
        let wire =
            |(port, to): (usize, &Option<(usize, usize)>)| to.map(|to| Wire { from: (from, port), to });
        part.next.iter().enumerate().filter_map(wire).collect()
    };
    parts.iter().enumerate().flat_map(of_part).collect()
}

/// The first value, block, cell and table of a part in the whole.
#[derive(Clone, Copy)]
struct Base {
    values: u32,
    blocks: u32,
    cells: u16,
    tables: u16,
}

#[derive(Default)]
struct Linker<'a> {
    parts: &'a [Part<'a>],
    bases: Vec<Base>,
    /// The cell of each wire that is counted.
    counting: HashMap<(usize, usize), u16>,
    /// Its blocks, cells and tables; the rest follows at the end.
    program: Program,
    origins: Vec<usize>,
    next_value: u32,
    /// The block after each port that was requested: an exit, or a jump to the next part.
    ports: HashMap<(usize, usize), BlockId>,
    outputs: Vec<(usize, usize)>,
    reasons: Vec<(usize, usize)>,
    slow: Vec<(usize, usize)>,
    from_tables: Vec<(usize, usize)>,
}

fn number(value: usize, what: &'static str) -> Result<u16, LinkError> {
    u16::try_from(value).map_err(|_| LinkError::TooMany(what))
}

impl<'a> Linker<'a> {
    fn new(parts: &'a [Part<'a>], wires: &[Wire], flow: &Flow) -> Linker<'a> {
        let (mut values, mut blocks, mut cells, mut tables) = (0, 0, 0usize, 0usize);
        let mut bases = vec![];
        for part in parts {
            // `number` detects numbers that do not fit when the part is added.
            let own = Base { values, blocks, cells: cells as u16, tables: tables as u16 };
            values += part.program.value_count() as u32;
            blocks += part.program.blocks.len() as u32;
            if let Some(of) = part.shares {
                let Base { cells, tables, .. } = bases[of];
                bases.push(Base { cells, tables, ..own });
                continue;
            }
            bases.push(own);
            cells += part.program.cells.len();
            tables += part.program.tables.len();
        }
        let counted = flow.counted.iter().enumerate();
        let counting =
            counted.map(|(at, wire)| (wires[*wire].from, (cells + at).min(usize::from(u16::MAX)) as u16));
        Linker { parts, counting: counting.collect(), bases, next_value: values, ..Linker::default() }
    }

    /// Appends a part's blocks. The blocks for its exits are appended after those of all parts.
    fn add(&mut self, at: usize, part: &Part<'_>) -> Result<(), LinkError> {
        let (base, program) = (self.bases[at], part.program);
        number(self.reasons.len() + program.reasons.len(), "drop reasons")?;
        number(self.slow.len() + program.slow.len(), "slow paths")?;
        for block in &program.blocks {
            let mut block = block.clone();
            renumber(&mut block, base);
            match &mut block.term {
                Term::Drop(reason) => {
                    *reason = number(self.reasons.len() + usize::from(*reason), "drop reasons")?
                }
                Term::Slow(slow) => *slow = number(self.slow.len() + usize::from(*slow), "slow paths")?,
                _ => {}
            }
            self.program.blocks.push(block);
            self.origins.push(at);
        }
        self.reasons.extend((0..program.reasons.len()).map(|reason| (at, reason)));
        self.slow.extend((0..program.slow.len()).map(|slow| (at, slow)));
        if part.shares.is_some() {
            return Ok(());
        }
        number(self.program.cells.len() + program.cells.len(), "state cells")?;
        number(self.program.tables.len() + program.tables.len(), "tables")?;
        self.program.cells.extend(program.cells.iter().cloned());
        self.program.tables.extend(program.tables.iter().cloned());
        self.from_tables.extend((0..program.tables.len()).map(|table| (at, table)));
        Ok(())
    }

    fn push(&mut self, origin: usize, insts: Vec<(Option<Value>, Inst)>, term: Term) -> BlockId {
        self.program.blocks.push(Block { params: vec![], insts, term });
        self.origins.push(origin);
        BlockId(self.program.blocks.len() as u32 - 1)
    }

    /// The next block of packets that leave a part by a port.
    fn behind(&mut self, part: usize, port: usize) -> Result<BlockId, LinkError> {
        if let Some(&block) = self.ports.get(&(part, port)) {
            return Ok(block);
        }
        let next = self.parts[part].next.get(port).copied().flatten();
        let block = match (next, self.counting.get(&(part, port)).copied()) {
            (Some((to, input)), None) => self.entry(to, input),
            (Some((to, input)), Some(cell)) => {
                let one = Value(self.next_value);
                self.next_value += 1;
                let insts = vec![(Some(one), Inst::Const(1)), (None, Inst::CellAdd(cell, one))];
                let to = self.entry(to, input);
                self.push(part, insts, Term::Jump(to, vec![]))
            }
            (None, _) => {
                let output = number(self.outputs.len(), "exits")?;
                self.outputs.push((part, port));
                self.push(part, vec![], Term::Emit(output))
            }
        };
        self.ports.insert((part, port), block);
        Ok(block)
    }

    fn entry(&self, part: usize, input: usize) -> BlockId {
        BlockId(self.parts[part].program.entries[input].0 + self.bases[part].blocks)
    }

    /// Which of the parts' blocks packets from these inputs reach.
    fn reached(&self, entries: &[(usize, usize)]) -> Vec<bool> {
        let mut reached = vec![false; self.program.blocks.len()];
        let (mut seen, mut open) = (HashSet::new(), entries.to_vec());
        while let Some((part, input)) = open.pop() {
            if !seen.insert((part, input)) {
                continue;
            }
            let Part { program, next, .. } = &self.parts[part];
            for block in program.order_from(&[program.entries[input]]) {
                reached[self.bases[part].blocks as usize + block.index()] = true;
            }
            open.extend(program.outputs_of(input).into_iter().filter_map(|port| *next.get(port)?));
        }
        reached
    }

    /// Replaces `emit` by the code after a port.
    fn join(&mut self, at: usize, outputs: u16) -> Result<(), LinkError> {
        let part = self.origins[at];
        let term = match self.program.blocks[at].term.clone() {
            Term::Emit(port) => Term::Jump(self.behind(part, usize::from(port))?, vec![]),
            Term::EmitTo(value, els) => match outputs {
                0 => Term::Jump(els, vec![]),
                1 => {
                    let to = self.behind(part, 0)?;
                    let (zero, is) = (Value(self.next_value), Value(self.next_value + 1));
                    self.next_value += 2;
                    self.program.blocks[at].insts.extend([
                        (Some(zero), Inst::Const(0)),
                        (Some(is), Inst::Bin(BinOp::Eq, value, zero)),
                    ]);
                    Term::Branch(is, to, els)
                }
                _ => {
                    let cases = (0..outputs)
                        .map(|port| Ok((u64::from(port), self.behind(part, usize::from(port))?)))
                        .collect::<Result<_, LinkError>>()?;
                    Term::Switch(value, cases, els)
                }
            },
            term => term,
        };
        self.program.blocks[at].term = term;
        Ok(())
    }

    fn finish(mut self, name: &str, entries: &[(usize, usize)], flow: Flow) -> Result<Linked, LinkError> {
        // What no packet enters has no exits.
        let reached = self.reached(entries);
        for at in (0..reached.len()).filter(|at| reached[*at]) {
            let outputs = self.parts[self.origins[at]].program.outputs;
            self.join(at, outputs)?;
        }
        let cells: Vec<usize> = self.bases.iter().map(|base| usize::from(base.cells)).collect();
        let counting = flow.counted.len();
        number(self.program.cells.len() + counting, "state cells")?;
        self.program.cells.extend((0..counting).map(|at| Cell { name: format!("wire{at}"), init: 0 }));
        // The names of a list of every part, behind those of the parts.
        let names = |of: &[(usize, usize)], list: fn(&Program) -> &[String]| -> Vec<String> {
            let name = |&(part, at): &(usize, usize)| {
                let Part { name, program, .. } = &self.parts[part];
                format!("{name}.{}", list(program)[at])
            };
            of.iter().map(name).collect()
        };
        let written = self.program.written_cells();
        let mut program = Program {
            name: name.to_string(),
            outputs: number(self.outputs.len(), "exits")?,
            entries: entries.iter().map(|&(part, input)| self.entry(part, input)).collect(),
            reasons: names(&self.reasons, |program| &program.reasons),
            slow: names(&self.slow, |program| &program.slow),
            ..self.program
        };
        let origins = drop_unreached(&mut program, &self.origins);
        Ok(Linked {
            program: Verified::new(program)?,
            outputs: self.outputs,
            seldom: BTreeSet::new(),
            reasons: self.reasons,
            slow: self.slow,
            tables: self.from_tables,
            cells,
            written,
            origins,
            flow,
        })
    }
}

/// Renumbers a block's values, blocks, cells and tables to those of its part in the whole.
fn renumber(block: &mut Block, base: Base) {
    let value = |value: &mut Value| value.0 += base.values;
    block.params.iter_mut().for_each(value);
    for (result, inst) in &mut block.insts {
        result.iter_mut().for_each(value);
        inst.map_operands(value);
        match inst {
            Inst::CellLoad(cell) | Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) => *cell += base.cells,
            _ => {}
        }
    }
    block.term.map_successors(|to| BlockId(to.0 + base.blocks));
    block.term.map_operands(value);
    if let Term::Lookup { table, rec, .. } = &mut block.term {
        *table += base.tables;
        value(rec);
    }
}

/// Removes blocks that no entry reaches: inputs of parts without a wire. Returns the origins of those that
/// stay.
pub(crate) fn drop_unreached(program: &mut Program, origins: &[usize]) -> Vec<usize> {
    let order = program.topological_order();
    program.keep(&order);
    order.iter().map(|block| origins[block.index()]).collect()
}

#[cfg(test)]
mod tests;
