//! Fused programs as files, one test each. `BLESS=1` writes the results after `# becomes`.
//!
//! `# test prove` links and optimises the file's programs, wired by lines `# wire FROM OUTPUT -> TO INPUT`,
//! and compares the result with them; packets enter the first one. If the last program has the name `fused`,
//! it is compared with the others instead: its outputs, reasons and cells are the linker's, in the same
//! order.

use prove::{FusedSubgraph, Limits, Part, prove};
use std::path::Path;
use synth::link::link;
use synth::optimize::optimize;
use testkit::golden;

fn file(path: &Path) -> golden::Outcome {
    let file = golden::File::read(path)?;
    if file.command()? != ["prove"] {
        return Err(file.unknown());
    }
    let read = |text: &str| -> Result<_, Box<dyn std::error::Error>> {
        Ok(ir::Verified::new(ir::text::parse(text)?)?)
    };
    let mut programs = file.programs(read)?;
    let given = programs.pop_if(|(name, _)| *name == "fused");
    let mut parts = vec![];
    for (at, (name, program)) in programs.iter().enumerate() {
        parts.push(Part { name, program, shares: None, next: file.next(at, program.outputs)? });
    }
    let entries = &[(0, 0)];
    let linked = link("fused", &parts, entries)?;
    let fused = match given {
        Some((_, program)) => program,
        None => optimize(&linked.program)?,
    };
    let counted = linked.flow.counted.iter().map(|wire| linked.flow.wires[*wire].from).collect();
    let cells: Vec<u64> = linked.program.cells.iter().map(|cell| cell.init).collect();
    let region = FusedSubgraph {
        parts,
        entries,
        from_ports: &fused.from_ports,
        linked: &linked,
        fused: &fused,
        cells: &cells,
        counted,
    };
    let proof = prove(&region, &Limits::default(), &std::sync::Arc::default())?;
    file.becomes(&match &proof.differs {
        _ if proof.is_equal() => "equal\n".to_string(),
        Some(found) => {
            let ways = &found.three;
            format!(
                "differs for a packet:\nelements: {:?}\nprogram: {:?}\ncode: {:?}\n",
                ways.elements.leaves, ways.program.leaves, ways.code.leaves
            )
        }
        None => "open\n".to_string(),
    })
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.ir$" },
}
