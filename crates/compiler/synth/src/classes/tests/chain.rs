//! Programs of real elements, alone and in chains.

use element::testing::configured;
use element::{Class, Shape};
use ir::program::{Block, BlockId};
use ir::{Inst, Program, Term, Value, Verified};

struct Elements;

impl element::testing::Library for Elements {
    fn find(name: &str) -> Option<&'static Class> {
        element::find(elements::CLASSES, name)
    }
}

/// Whether an element has a program.
pub fn is_transparent(class: &str, config: &str) -> bool {
    lowered(class, config, 1, 1).is_some()
}

/// The program of an element with that many wired ports.
pub fn element(class: &str, config: &str, inputs: usize, outputs: usize) -> Verified {
    lowered(class, config, inputs, outputs).expect("a transparent element")
}

fn lowered(class: &str, config: &str, inputs: usize, outputs: usize) -> Option<Verified> {
    let shape = Shape { inputs, outputs };
    let lowered = configured::<Elements>(class, config, shape).lower(shape);
    lowered.map(|lowered| lowered.expect("a valid program"))
}

/// Chains programs: output 0 of each leads to the next one. Other outputs are outputs of the whole.
/// Returns the origin of each block too.
pub fn chain(elements: &[(String, Verified)]) -> (Verified, Vec<usize>, Vec<String>) {
    let mut whole =
        Program { name: "Chain".into(), outputs: 1, entries: vec![BlockId(0)], ..Program::default() };
    let (mut origins, mut values, mut starts, mut at) = (vec![], 0, vec![], 0);
    for (_, program) in elements {
        starts.push(at + program.entries[0].0);
        at += program.blocks.len() as u32;
    }
    for (origin, (name, program)) in elements.iter().enumerate() {
        let first_block = whole.blocks.len() as u32;
        let (cells, tables) = (whole.cells.len() as u16, whole.tables.len() as u16);
        let (reasons, slow) = (whole.reasons.len() as u16, whole.slow.len() as u16);
        // Outputs after the first are outputs of the whole.
        let others = whole.outputs - 1;
        whole.outputs += program.outputs.saturating_sub(1);
        let v = |value: Value| Value(value.0 + values);
        for block in &program.blocks {
            let insts = block.insts.iter().map(|(value, inst)| (value.map(v), moved(*inst, &v, cells)));
            let mut term = block.term.clone();
            term.map_successors(|to| BlockId(to.0 + first_block));
            match &mut term {
                Term::Jump(_, args) => args.iter_mut().for_each(|arg| *arg = v(*arg)),
                Term::Branch(value, ..) | Term::Switch(value, ..) => *value = v(*value),
                Term::EmitTo(value, els) => {
                    assert!(program.outputs == 1, "{name}: one output here");
                    let (value, els) = (v(*value), *els);
                    term = match starts.get(origin + 1) {
                        Some(next) => Term::Switch(value, vec![(0, BlockId(*next))], els),
                        None => Term::EmitTo(value, els),
                    };
                }
                Term::Lookup { table, key, args, rec, .. } => {
                    *table += tables;
                    key.iter_mut().chain(args.iter_mut().flatten()).for_each(|word| *word = v(*word));
                    *rec = v(*rec);
                }
                Term::Drop(reason) => *reason += reasons,
                Term::Slow(path) => *path += slow,
                Term::Emit(0) => {
                    if let Some(next) = starts.get(origin + 1) {
                        term = Term::Jump(BlockId(*next), vec![]);
                    }
                }
                Term::Emit(port) => *port += others,
                Term::Need { .. } | Term::Room { .. } => {}
            }
            whole.blocks.push(Block {
                params: block.params.iter().map(|p| v(*p)).collect(),
                insts: insts.collect(),
                term,
            });
            origins.push(origin);
        }
        whole.reasons.extend(program.reasons.iter().map(|reason| format!("{name}: {reason}")));
        whole.slow.extend(program.slow.iter().map(|slow| format!("{name}: {slow}")));
        whole.cells.extend(program.cells.iter().cloned());
        whole.tables.extend(program.tables.iter().cloned());
        values += program.value_count() as u32;
    }
    whole.entries = vec![BlockId(starts[0])];
    let names = elements.iter().map(|(name, _)| name.clone()).collect();
    let origins = crate::link::drop_unreached(&mut whole, &origins);
    (Verified::new(whole).expect("a valid chain"), origins, names)
}

fn moved(mut inst: Inst, v: &impl Fn(Value) -> Value, cells: u16) -> Inst {
    inst.map_operands(|value| *value = v(*value));
    if let Inst::CellLoad(cell) | Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = &mut inst {
        *cell += cells;
    }
    inst
}

/// A chain of elements, each as class and configuration.
pub fn elements(list: &[(&str, &str)]) -> (Verified, Vec<usize>, Vec<String>) {
    let programs: Vec<(String, Verified)> = list
        .iter()
        .enumerate()
        .map(|(at, (class, config))| {
            let outputs = if class.contains("Classifier") { config.split(',').count() } else { 1 };
            (format!("{}{at}", class.to_lowercase()), element(class, config, 1, outputs))
        })
        .collect();
    chain(&programs)
}
