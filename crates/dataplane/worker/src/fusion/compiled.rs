//! The program that a fused region runs, made for cells as they are.
//!
//! A cell that no program writes is a part of the configuration: a colour, an Ethernet address. It changes
//! when a handler is written, and seldom. The program is made for what it holds, and made again, on a thread
//! of its own, when that changes; until then the fused region's elements run one by one.

use codegen::Engine;
use ir::{Inst, Program, Verified};
use std::collections::BTreeMap;
use std::sync::Arc;
use synth::optimize::{Known, Report, optimize_with};

/// A program to run, and what it was made for.
pub struct CompiledRegion {
    /// The program.
    pub program: Arc<Verified>,
    /// What it has less to do than the linked one.
    pub report: Report,
    /// How it is run.
    pub engine: Engine,
    /// What cells of the configuration held; none where it was made for nothing yet.
    config: Option<Config>,
}

/// Cells and what they hold.
pub(crate) type Config = BTreeMap<u16, u64>;

impl CompiledRegion {
    /// The program of a fused region whose cells hold `cells`; it is evaluated until there is code.
    pub fn of(linked: &Verified, cells: &[u64]) -> CompiledRegion {
        let config = config_cells(linked, cells);
        let known = Known { cells: config.clone(), ..Known::default() };
        let (program, report) = optimize_with(linked, &known).unwrap_or_else(|error| {
            tracing::error!("a bug: the optimised program is wrong ({error}); the fused region runs without");
            (linked.clone(), Report::default())
        });
        let program = Arc::new(program);
        CompiledRegion {
            engine: Engine::Evaluator(Arc::clone(&program)),
            program,
            report,
            config: Some(config),
        }
    }

    /// What stands there until somebody wants the fused region to run as one.
    pub(crate) fn nothing(linked: &Verified) -> CompiledRegion {
        let program = Arc::new(linked.clone());
        let engine = Engine::Evaluator(Arc::clone(&program));
        CompiledRegion { program, report: Report::default(), engine, config: None }
    }

    /// Whether it is right for cells as they are.
    pub(crate) fn is_for(&self, cells: &[u64]) -> bool {
        self.config.as_ref().is_some_and(|config| holds(cells, config))
    }
}

pub(crate) fn holds(cells: &[u64], config: &Config) -> bool {
    config.iter().all(|(cell, value)| cells.get(usize::from(*cell)) == Some(value))
}

/// The cells that a program never writes, and what they hold.
pub(crate) fn config_cells(program: &Program, cells: &[u64]) -> Config {
    let mut config: Config = (0..).zip(cells.iter().copied()).collect();
    for (_, inst) in program.blocks.iter().flat_map(|block| &block.insts) {
        if let Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = inst {
            config.remove(cell);
        }
    }
    config
}
