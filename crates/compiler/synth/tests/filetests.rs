//! Programs as files, one test each. `BLESS=1` writes the results after `# becomes`.
//!
//! - `# test optimize`: the optimised program; both behave the same for packets. `# test optimize frames`:
//!   for packets that ports deliver; `# test optimize copies`: as where outcomes of tests have code of their own;
//!   `# test optimize joined`: with one write for those of neighbouring bytes
//! - `# test fuse`: the linker's output for several programs, wired by lines `# wire FROM OUTPUT -> TO
//!   INPUT`; packets enter the first one. `# test fuse optimize`: the same, optimised
//! - `# test fast_path`: the optimised program with its fast path; `no fast path` where it has none
//! - `# test separate`: the optimised program with code of their own for outcomes of tests; `no copies` where they are
//!   not worth it
//! - `# test classes`: the program's traffic classes. `# test classes frames`: for packets that ports deliver

use std::path::Path;
use synth::classes::show::Text;
use synth::classes::{Classes, Options};
use synth::link::{Part, link};
use synth::optimize::{Known, optimize, with_joined_reads, with_joined_writes};
use synth::{Sample, compare, same};
use testkit::golden;

fn samples() -> Vec<Sample> {
    let one = |n: u32| {
        let mut bytes: Vec<u8> = (0..64).map(|at| (at * n) as u8).collect();
        bytes[14..26].copy_from_slice(&[0x45, 0, 0, 50, 0, n as u8, 0, 0, (n % 5) as u8, 17, 0, 0]);
        bytes[26..34].copy_from_slice(&[10, 0, 0, (n % 16) as u8, 10, 0, 0, (n % 32) as u8]);
        let _ = packet::checksum::set_ipv4_header(&mut bytes[14..], 0, 20);
        bytes.truncate(if n % 9 == 8 { n as usize / 2 } else { 64 });
        Sample { bytes, headers: [Some(0), Some(14), Some(34)], headroom: 128, fill: (n % 3) as u8 }
    };
    (0..128).map(one).collect()
}

fn file(path: &Path) -> golden::Outcome {
    let file = golden::File::read(path)?;
    match file.command()?.as_slice() {
        ["optimize", "copies"] => {
            file.becomes(&optimized(&file, Known { has_copies: true, ..Known::default() })?)
        }
        ["optimize", "joined"] => file.becomes(&joined(&file)?),
        ["optimize", of @ ..] => {
            let mac_at_data = is_of_frames(&file, of)?;
            file.becomes(&optimized(&file, Known { mac_at_data, ..Known::default() })?)
        }
        ["fuse"] => becomes_program(&file, &fused(&file)?),
        ["fuse", "optimize"] => becomes_program(&file, &optimize(&fused(&file)?)?),
        ["fast_path"] => file.becomes(&fast_path(&file)?),
        ["separate"] => file.becomes(&separate(&file)?),
        ["classes", of @ ..] => file.becomes(&classes(&file, is_of_frames(&file, of)?)?),
        _ => Err(file.unknown()),
    }
}

fn becomes_program(file: &golden::File, program: &ir::Verified) -> golden::Outcome {
    file.becomes(&ir::text::print(program))
}

/// Whether the command requests packets that ports deliver.
fn is_of_frames(file: &golden::File, of: &[&str]) -> Result<bool, Box<dyn std::error::Error>> {
    match of {
        [] => Ok(false),
        ["frames"] => Ok(true),
        _ => Err(file.unknown()),
    }
}

type Becomes<T> = Result<T, Box<dyn std::error::Error>>;

fn verified(text: &str) -> Becomes<ir::Verified> {
    Ok(ir::Verified::new(ir::text::parse(text)?)?)
}

fn optimized(file: &golden::File, known: Known) -> Becomes<String> {
    let program = verified(file.source())?;
    Ok(ir::text::print(&compare(&program, &known, &samples()).0))
}

/// The optimised program with joined writes and reads. Both behave the same for packets.
fn joined(file: &golden::File) -> Becomes<String> {
    let known = Known::default();
    let (program, _) = compare(&verified(file.source())?, &known, &samples());
    let joined = with_joined_reads(&with_joined_writes(&program, &known)?, &known)?;
    same(&program, &joined, &samples());
    Ok(ir::text::print(&joined))
}

/// The optimised program with its fast path. Both behave the same for packets.
fn fast_path(file: &golden::File) -> Becomes<String> {
    let program = optimize(&verified(file.source())?)?;
    let Some(fast) = synth::fast_path::add(&program, &Known::default()) else {
        return Ok("no fast path\n".into());
    };
    // Frames, and packets whose MAC header is not their first byte.
    let elsewhere = |mac| {
        samples().into_iter().map(move |sample| {
            let [_, net, trans] = sample.headers;
            Sample { headers: [mac, net, trans], ..sample }
        })
    };
    let all: Vec<Sample> = samples().into_iter().chain(elsewhere(None)).chain(elsewhere(Some(4))).collect();
    same(&program, &fast, &all);
    Ok(ir::text::print(&fast))
}

/// The optimised program with copies. Both behave the same for packets.
fn separate(file: &golden::File) -> Becomes<String> {
    let program = optimize(&verified(file.source())?)?;
    let Some((separated, _)) = synth::separate::outcomes(&program, &Known::default()) else {
        return Ok("no copies\n".into());
    };
    same(&program, &separated, &samples());
    Ok(ir::text::print(&separated))
}

/// The linker's output for the file's programs.
fn fused(file: &golden::File) -> Becomes<ir::Verified> {
    let programs = file.programs(verified)?;
    let mut parts = vec![];
    for (at, (name, program)) in programs.iter().enumerate() {
        parts.push(Part { name, program, shares: None, next: file.next(at, program.outputs)? });
    }
    Ok(link("fused", &parts, &[(0, 0)])?.program)
}

fn classes(file: &golden::File, frames: bool) -> Becomes<String> {
    let program = verified(file.source())?;
    let cells: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
    let options = Options { settled_cells: Some(&cells), frames, ..Options::default() };
    let classes = Classes::of(&program, &options);
    Ok(Text { classes: &classes, program: &program, names: &[] }.to_string())
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.ir$" },
}
