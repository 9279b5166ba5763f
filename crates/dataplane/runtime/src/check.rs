//! What is wrong with NFs that run in processes of their own, found without starting any.

use crate::assemble::{AssembleError, Options, assemble};
use crate::services::PortOpener;
use chain::{Body, Chain, Program, instances};
use confine::program;
use diag::Diagnostics;
use element::configure::Direction;
use port::{MemoryPort, Port};

/// Records the mistakes of all NFs that run in processes of their own: those would find them only when they
/// are started.
///
/// # Errors
/// When no machine code can be made.
pub fn check(chain: &Chain, options: &Options, diags: &mut Diagnostics) -> Result<(), AssembleError> {
    // By the evaluator: the processes make machine code for themselves.
    let options = Options { workers: 1, evaluator: true, ..options.clone() };
    // Mistakes of instances are those of the first.
    for nf in chain.processes.iter().filter(|nf| instances::is_first(&nf.name)) {
        let name = instances::family(&nf.name);
        if let Some(container) = nf.terms.container {
            let by_name =
                matches!(&nf.body, Body::Program(program) if container::is_name(&program.path, container));
            container::check::check_runtime(name, container, by_name, nf.span, diags);
        }
        match (&nf.body, nf.terms.container) {
            (Body::Click(graph), _) => {
                assemble(graph, &options, &mut AnyPort, diags)?;
            }
            (Body::Program(program), Some(container)) => {
                container::check::check(name, program, container, diags);
            }
            (Body::Program(program), None) => check_program(name, program, diags),
            (Body::External(_), _) => {}
        }
    }
    Ok(())
}

/// Whether there is such a program.
fn check_program(nf: &str, of: &Program, diags: &mut Diagnostics) {
    let shown = of.path.display();
    if program::is_bare(&of.path) {
        if program::find(&of.path).is_none() {
            diags
                .error(of.span, format!("there is no program `{shown}` for NF `{nf}` along PATH"))
                .help("write its path, relative to the chain file and with a `/` in it");
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

/// Opens nothing.
struct AnyPort;

impl PortOpener for AnyPort {
    fn open(&mut self, name: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(MemoryPort::sink(name)))
    }
}
