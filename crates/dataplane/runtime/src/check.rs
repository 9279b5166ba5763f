//! Checks NFs that run in processes of their own without starting them.

use crate::assemble::{AssembleError, Options, assemble};
use crate::machine::Machine;
use crate::services::{Opened, Opener};
use chain::{Body, Chain, Program, instances};
use confine::program;
use diag::{Diagnostic, Diagnostics};
use element::configure::Direction;
use port::MemoryPort;

/// Records the errors of all NFs that run in processes of their own, which would otherwise report them only
/// when they are started. Programs along PATH, container runtimes and images of an engine are the machine's.
///
/// # Errors
/// If machine code cannot be generated.
pub fn check(
    chain: &Chain,
    options: &Options,
    machine: Machine,
    diags: &mut Diagnostics,
) -> Result<(), AssembleError> {
    // With the evaluator: the processes generate their machine code themselves.
    let options = Options { workers: 1, evaluator: true, ..options.clone() };
    // All instances of an NF have the errors of the first.
    for nf in chain.processes.iter().filter(|nf| instances::is_first(&nf.name)) {
        let name = instances::family(&nf.name);
        if let Some(container) = nf.terms.container {
            let by_name =
                matches!(&nf.body, Body::Program(program) if container::is_name(&program.path, container));
            let mut found = Diagnostics::new();
            container::check::check_runtime(name, container, by_name, nf.span, &mut found);
            if let Body::Program(program) = &nf.body
                && by_name
            {
                container::check::check(name, program, container, &mut found);
            }
            machine.record(found, diags);
        }
        match (&nf.body, nf.terms.container) {
            (Body::Click(graph), _) => {
                assemble(graph, &options, &mut AnyPort, diags)?;
            }
            (Body::Program(program), Some(container)) if container::is_name(&program.path, container) => {}
            (Body::Program(program), Some(container)) => {
                container::check::check(name, program, container, diags);
            }
            (Body::Program(program), None) => check_program(name, program, machine, diags),
            (Body::External(_), _) => {}
        }
    }
    Ok(())
}

/// Checks that the program exists. A program along PATH may be on another machine only; one with a path
/// belongs to the chain's files.
fn check_program(nf: &str, of: &Program, machine: Machine, diags: &mut Diagnostics) {
    let shown = of.path.display();
    if program::is_bare(&of.path) {
        if program::find(&of.path).is_none() {
            let message = format!("there is no program `{shown}` for NF `{nf}` along PATH");
            let help = "write its path, relative to the chain file and with a `/` in it";
            machine.record([Diagnostic::error(of.span, message).help(help)], diags);
        }
        return;
    }
    match program::is_executable(&of.path) {
        Ok(true) => {}
        Ok(false) => {
            let message = format!("{shown}, which is NF `{nf}`, is no file that can be run");
            diags.error(of.span, message).help("name a program that links the SDK");
        }
        Err(error) => {
            diags
                .error(of.span, format!("there is no program {shown} for NF `{nf}`: {error}"))
                .help("build it first, or correct the path, which is relative to the chain file");
        }
    }
}

/// A port opener that opens nothing.
struct AnyPort;

impl Opener for AnyPort {
    fn open_port(&mut self, name: &str, _: Direction, _: usize) -> Opened {
        Ok(Box::new(MemoryPort::sink(name)))
    }

    fn opens_nothing(&self) -> bool {
        true
    }
}
