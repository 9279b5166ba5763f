//! Programs as files, one test each. `BLESS=1` writes the results after `# becomes`.
//!
//! - `# test compile`: the regions that the program is cut into, as input of Cranelift
//! - `# test rows`: the program with rows of lookups as lookups in unions, and what is in each; `no rows`
//!   where it has none
//! - `# test run`: the results for packets, by the evaluator and by machine code, which must agree. Each line
//!   `# packet HEX` is one, of at most 256 bytes; its headers are 14 and 34 bytes after its first byte. A
//!   line `# record TABLE KEY… = HEX` adds a record to a table, with the words of its key in hexadecimal
#![expect(unsafe_code, reason = "the rig promises machine code that a table's records are addresses")]

mod rig;

use codegen::{CodeBuilder, Listed};
use ir::{Table, Verified};
use rig::{BoxTable, Seen};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use testkit::golden;

/// The clock of the packets' run, in nanoseconds.
const NOW_NS: u64 = 1000;

fn file(path: &Path) -> golden::Outcome {
    let file = golden::File::read(path)?;
    let program = Verified::new(ir::text::parse(file.source())?)?;
    match file.command()?.as_slice() {
        ["rows"] => file.becomes(&with_rows(&program)),
        ["compile"] => file.becomes(&compiled(program)?),
        ["run"] => file.becomes(&ran(&program, &file)?),
        _ => Err(file.unknown()),
    }
}

fn with_rows(program: &Verified) -> String {
    let Some((merged, rows)) = codegen::lookup_row::merge(program) else { return "no rows\n".into() };
    let mut out = ir::text::print(&merged);
    for part in rows.iter().flat_map(|row| &row.parts) {
        let tests = part
            .tests
            .iter()
            .map(|test| format!(", {} bytes at {} are {}", test.bytes, test.offset, test.number));
        let tests: String = tests.collect();
        out += &format!("table {}: its record at {}{tests}\n", part.table, part.offset);
    }
    out
}

fn compiled(program: Verified) -> Result<String, Box<dyn Error>> {
    let mut builder = CodeBuilder::new()?;
    builder.keep_listing(Listed::Clif);
    builder.add(&Arc::new(program))?;
    let listing = builder.listing();
    // The addresses of called functions differ in each run. Comments repeat numbers.
    let called: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split_once("call_indirect ")?.1.split_once(", ")?.1.split('(').next())
        .collect();
    let line = |line: &str| match line.split_once(" = iconst.i64 ") {
        Some((value, _)) if called.contains(&value.trim()) => format!("{value} = iconst.i64 ADDRESS\n"),
        _ => format!("{}\n", line.split("  ; ").next().unwrap_or("")),
    };
    Ok(listing.lines().map(line).collect())
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits: String = hex.split_whitespace().collect();
    if digits.len() % 2 == 1 || !digits.is_ascii() {
        return Err(format!("`{hex}` are no bytes").into());
    }
    let byte = |at: usize| Ok(u8::from_str_radix(&digits[at..at + 2], 16)?);
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The program's tables with the records of the file.
fn tables(program: &Verified, file: &golden::File) -> Result<Vec<BoxTable>, Box<dyn Error>> {
    let table = |decl: &ir::program::TableDecl| {
        BoxTable::new(decl.key_words.into(), usize::from(decl.record_bytes).div_ceil(8))
    };
    let mut tables: Vec<BoxTable> = program.tables.iter().map(table).collect();
    for line in file.directives("record") {
        let (names, record) = line.split_once('=').ok_or("a record wants `TABLE KEY = BYTES`")?;
        let (name, key) = names.trim().split_once(' ').ok_or("a record wants a key")?;
        let at = program.tables.iter().position(|table| table.name == name).ok_or("no such table")?;
        let words: Result<Vec<u64>, _> =
            key.split_whitespace().map(|word| u64::from_str_radix(word, 16)).collect();
        let ir::Created::Record(new) = tables[at].create(&words?, &[], 0) else {
            unreachable!("never refused")
        };
        for (offset, byte) in (0..).zip(bytes(record)?) {
            tables[at].record_store(new, offset, 1, byte.into());
        }
    }
    Ok(tables)
}

fn ran(program: &Verified, file: &golden::File) -> Result<String, Box<dyn Error>> {
    let frames = file.directives("packet").into_iter().map(bytes).collect::<Result<Vec<_>, _>>()?;
    if frames.is_empty() {
        return Err("there is no packet: a line `# packet HEX` is one".into());
    }
    let mut seen = vec![];
    for engine in rig::engines(program) {
        seen.push(rig::run(program, &engine, &frames, tables(program, file)?, &[NOW_NS]));
    }
    if seen[0] != seen[1] {
        return Err(format!("the evaluator and machine code differ: {:#?}\n{:#?}", seen[0], seen[1]).into());
    }
    Ok(shown(program, &seen[0]))
}

/// The exits and final states of packets; cells and records.
fn shown(program: &Verified, seen: &Seen) -> String {
    let outputs = (0..program.outputs).map(|port| format!("output {port}"));
    let drops = program.reasons.iter().map(|name| format!("drop {name}"));
    let slow = program.slow.iter().map(|name| format!("slow {name}"));
    let exits: Vec<String> = outputs.chain(drops).chain(slow).collect();
    let mut text = String::new();
    for (exit, (bytes, headers, anno, _)) in seen.exit_of.iter().zip(&seen.packets) {
        let exit = exit.map_or("nowhere", |at| &exits[at]);
        let _ = write!(text, "{exit}: {}", hex(bytes));
        for (name, at) in ["data", "net", "trans"].iter().zip(headers) {
            match *at {
                shm::descriptor::NO_HEADER => text.push_str(&format!(", {name} nowhere")),
                at => {
                    text.push_str(&format!(", {name} {}", i32::from(at) - shm::descriptor::HEADROOM as i32))
                }
            }
        }
        if anno.iter().any(|byte| *byte != 0) {
            let _ = write!(text, ", annotations {}", hex(anno).trim_end_matches("00"));
        }
        text.push('\n');
    }
    for (cell, value) in program.cells.iter().zip(&seen.cells) {
        let _ = writeln!(text, "cell {} {value:#x}", cell.name);
    }
    for (table, contents) in program.tables.iter().zip(&seen.tables) {
        for (key, record) in contents {
            let _ = writeln!(text, "record {} {key:x?} = {}", table.name, hex(record));
        }
    }
    text
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.ir$" },
}
