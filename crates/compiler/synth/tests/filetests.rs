//! Programs as files, one test each. `BLESS=1` writes what they come to now.
//!
//! - `# test optimize`: behind `# becomes` stands what the optimiser makes of the program; both do the same with
//!   packets. `# test optimize frames`: of packets that ports deliver

use std::path::Path;
use synth::optimize::Known;
use synth::{Sample, compare};
use testkit::golden;

const BETWEEN: &str = "# becomes\n";

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
    let text = std::fs::read_to_string(path)?;
    let (before, _) = text.split_once(BETWEEN).unwrap_or((&text, ""));
    let mac_at_data = match golden::command(&text)?.as_slice() {
        ["optimize"] => false,
        ["optimize", "frames"] => true,
        other => return Err(format!("`{}` is no test of this crate", other.join(" ")).into()),
    };
    let program = ir::Verified::new(ir::text::parse(before)?)?;
    let known = Known { mac_at_data, ..Known::default() };
    let now = ir::text::print(&compare(&program, &known, &samples()).0);
    golden::hold(path, &format!("{before}{BETWEEN}{now}"))
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.ir$" },
}
