//! The program that a fused region runs, compiled for the present values of its cells.
//!
//! A cell that no program writes is a part of the configuration: a colour, an Ethernet address. It changes
//! only when a handler is written, which is rare. The program is specialized for such values. When one
//! changes, a separate thread compiles the program again; until then the elements run one by one.

use super::fast_work::FastWork;
use super::limits;
use codegen::{CodeBuilder, CodegenError, Engine, ProgramId};
use ir::Verified;
use ir::verify::VerifyError;
use std::collections::BTreeMap;
use std::sync::Arc;
use synth::link::Linked;
use synth::optimize::{Counts, Known, Report, optimize_with, with_joined_reads, with_joined_writes};

/// A program, and the cell values for which it is compiled.
#[derive(Clone)]
pub struct CompiledRegion {
    /// The program.
    pub program: Arc<Verified>,
    /// What entries of the flow cache are made from: the same before reads were joined, so that a field of a flow's key is a
    /// value by itself.
    pub recorded: Arc<Verified>,
    /// The same with a fast path, where it has one ([`synth::fast_path`]).
    pub fast: Option<Arc<Verified>>,
    /// What packets of each entry meet on the fast path, where the entry has one.
    pub(super) fast_work: Vec<Option<FastWork>>,
    /// What the optimization removed from the linked program.
    pub report: Report,
    /// The engine that runs it.
    pub engine: Engine,
    /// The values of the configuration cells; `None` if it is not compiled yet.
    config: Option<Config>,
}

/// Cells and their values.
pub(crate) type Config = BTreeMap<u16, u64>;

impl CompiledRegion {
    /// The program of a fused region whose cells have the values `cells`; the evaluator runs it until it has
    /// machine code.
    pub fn of(linked: &Linked, cells: &[u64]) -> CompiledRegion {
        let config = config_cells(linked, cells);
        let known = Known { cells: config, seldom: linked.seldom.clone(), ..Known::default() };
        let (program, report) = optimize_with(&linked.program, &known).unwrap_or_else(|error| {
            tracing::error!("a bug: the optimised program is wrong ({error}); the fused region runs without");
            (linked.program.clone(), Report::default())
        });
        let separated = synth::separate::outcomes(&program, &known).map(|(separated, last)| {
            let Report { before, packet_before, .. } = report;
            CompiledRegion::finish(linked, &known, separated, Report { before, packet_before, ..last })
        });
        // Copies are no reason to run a region element by element.
        separated
            .filter(|made| made.functions_size() <= limits::MOST_COMPILED)
            .unwrap_or_else(|| CompiledRegion::finish(linked, &known, program, report))
    }

    /// What runs an optimised program, with a fast path where it has one.
    fn finish(linked: &Linked, known: &Known, program: Verified, report: Report) -> CompiledRegion {
        let fast = synth::fast_path::add(&program, known).map(Arc::new);
        let or_without = |joined: Result<Verified, VerifyError>, program: &Arc<Verified>| match joined {
            Ok(joined) => Arc::new(joined),
            Err(error) => {
                tracing::error!("a bug: a program with joined accesses is wrong ({error}); it runs without");
                Arc::clone(program)
            }
        };
        let recorded = or_without(with_joined_writes(&program, known), &Arc::new(program));
        let program = or_without(with_joined_reads(&recorded, known), &recorded);
        let report =
            Report { after: Counts::of(&program), packet_after: Counts::at_most(&program), ..report };
        let fast_work = fast.as_ref().map(|fast| FastWork::of(&program, fast, &linked.seldom));
        CompiledRegion {
            engine: Engine::Evaluator(Arc::clone(&program)),
            program,
            recorded,
            fast,
            fast_work: fast_work.unwrap_or_default(),
            report,
            config: Some(known.cells.clone()),
        }
    }

    /// A placeholder until the fused region is first requested to run as one program.
    pub(crate) fn nothing(linked: &Verified) -> CompiledRegion {
        let program = Arc::new(linked.clone());
        let engine = Engine::Evaluator(Arc::clone(&program));
        let (fast, fast_work, report) = (None, vec![], Report::default());
        CompiledRegion {
            recorded: Arc::clone(&program),
            program,
            fast,
            fast_work,
            report,
            engine,
            config: None,
        }
    }

    /// What packets of an entry meet on its fast path, where it has one.
    pub fn fast_work(&self, entry: usize) -> Option<&FastWork> {
        self.fast_work.get(entry).and_then(Option::as_ref)
    }

    /// The instructions of the functions that it is compiled to.
    pub(crate) fn functions_size(&self) -> usize {
        codegen::functions_size(&self.program, self.fast.as_deref())
    }

    /// Its machine code, compiled alone.
    ///
    /// # Errors
    /// As [`Engine::native_with_fast_path`].
    pub(crate) fn native(&self) -> Result<Engine, CodegenError> {
        match &self.fast {
            Some(fast) => Engine::native_with_fast_path(&self.program, fast),
            None => Engine::native(&self.program),
        }
    }

    /// Adds its program to those that are compiled together.
    ///
    /// # Errors
    /// As [`CodeBuilder::add_with_fast_path`].
    pub fn add_to(&self, builder: &mut CodeBuilder) -> Result<ProgramId, CodegenError> {
        match &self.fast {
            Some(fast) => builder.add_with_fast_path(&self.program, fast),
            None => builder.add(&self.program),
        }
    }

    /// Whether it is compiled for these cell values.
    pub(crate) fn is_for(&self, cells: &[u64]) -> bool {
        self.config.as_ref().is_some_and(|config| holds(cells, config))
    }
}

pub(crate) fn holds(cells: &[u64], config: &Config) -> bool {
    config.iter().all(|(cell, value)| cells.get(usize::from(*cell)) == Some(value))
}

/// The cells that no part of a region writes, and their values.
pub(crate) fn config_cells(linked: &Linked, cells: &[u64]) -> Config {
    let kept = linked.written.iter().zip((0..).zip(cells.iter().copied())).filter(|(written, _)| !**written);
    kept.map(|(_, cell)| cell).collect()
}
