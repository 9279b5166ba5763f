//! Small programs and what they become: a file for each, before and after. `BLESS=1` writes what they
//! become now.

use crate::fuzz::{Sample, compare};
use crate::optimize::Known;
use std::path::Path;

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

#[test]
fn small_programs_become_what_a_person_would_write() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/optimize/tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 22, "only {} programs", paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a file");
        let (before, after) = text.split_once(BETWEEN).unwrap_or((&text, ""));
        let program = ir::text::parse(before).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let program = ir::Verified::new(program).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let known = Known { mac_at_data: before.starts_with("# frames"), ..Known::default() };
        let now = ir::text::print(&compare(&program, &known, &samples()).0);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, format!("{before}{BETWEEN}{now}")).expect("a file that can be written");
        } else {
            assert_eq!(now, after, "{path:?}");
        }
    }
}
