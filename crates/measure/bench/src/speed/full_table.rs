//! A full Internet routing table, generated or read from a file.
//!
//! The generated table has roughly as many prefixes of each length as the real table of 2026, and is the same
//! on every machine. A file has one prefix in each line (`1.0.4.0/22`), and may be compressed with gzip; IPv6
//! prefixes are ignored.

use crate::BenchError;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::collections::HashSet;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::Path;

/// Prefixes of the generated table, in thousands, of the lengths from 24 down to 14: about 900,000 in all.
const THOUSANDS: [usize; 11] = [540, 92, 108, 50, 44, 25, 14, 8, 13, 2, 2];

/// The number of next hops that routes are spread over.
const NEXT_HOPS: usize = 200;

/// A prefix: address and length.
pub type Prefix = (u32, u8);

/// Generates the table.
pub fn generated() -> Vec<Prefix> {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut known = HashSet::new();
    let mut table = Vec::new();
    for (len, thousands) in (14..=24).rev().zip(THOUSANDS) {
        let mut left = thousands * 1000;
        while left > 0 {
            // From 1.0.0.0 to 223.255.255.255, without 10.0.0.0/8 and 127.0.0.0/8.
            let drawn = (u64::from(random.next_u32()) * 0xdf00_0000) >> 32;
            let address = drawn as u32 + 0x0100_0000;
            let prefix = (address & (u32::MAX << (32 - len)), len);
            if !matches!(prefix.0 >> 24, 10 | 127) && known.insert(prefix) {
                table.push(prefix);
                left -= 1;
            }
        }
    }
    table
}

/// Reads a table from a file.
///
/// # Errors
/// When the file cannot be read, has an invalid line, or has no IPv4 prefix.
pub fn read(path: &Path) -> Result<Vec<Prefix>, BenchError> {
    let text = traffic::read_text(path)?;
    let (mut table, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.contains(':') {
            continue;
        }
        match parse(line) {
            Some(prefix) => table.push(prefix),
            None => bad.push(format!("{}:{}: `{line}` is no prefix", path.display(), number + 1)),
        }
    }
    if bad.is_empty() && table.is_empty() {
        bad.push(format!("{} holds no IPv4 prefix", path.display()));
    }
    if !bad.is_empty() {
        bad.truncate(20);
        return Err(BenchError::bad_lines(path, bad.join("\n")));
    }
    Ok(table)
}

fn parse(line: &str) -> Option<Prefix> {
    let (address, len) = line.split_once('/')?;
    let len = len.parse::<u8>().ok().filter(|len| *len <= 32)?;
    let address: Ipv4Addr = address.parse().ok()?;
    Some((address.to_bits(), len))
}

/// The table as a text for the `ctrl` handler of a lookup element. All routes lead to output 0, with many
/// gateways. If a prefix occurs twice, the later route replaces the earlier one.
pub fn commands(table: &[Prefix]) -> String {
    let mut text = String::with_capacity(table.len() * 36);
    for (at, (address, len)) in table.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "set {}/{len} 192.0.2.{} 0", Ipv4Addr::from_bits(*address), at % NEXT_HOPS + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_made_up_table_has_its_size_and_no_prefix_twice() {
        let table = generated();
        assert_eq!(table.len(), THOUSANDS.iter().map(|thousands| thousands * 1000).sum::<usize>());
        assert!((890_000..910_000).contains(&table.len()));
        let distinct: HashSet<&Prefix> = table.iter().collect();
        assert_eq!(distinct.len(), table.len());
        assert!(table.iter().all(|(address, len)| address & !(u32::MAX << (32 - len)) == 0));
    }

    #[test]
    fn files_are_read_compressed_or_not() {
        let folder = tempfile::tempdir().expect("folder");
        let text = "1.0.0.0/24\n2001:db8::/32\n# comment\n\n10.0.0.0/8\n";
        let plain = folder.path().join("plain");
        std::fs::write(&plain, text).expect("written");
        let packed = folder.path().join("packed.gz");
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text.as_bytes()).expect("packed");
        std::fs::write(&packed, out.finish().expect("packed")).expect("written");
        for path in [&plain, &packed] {
            assert_eq!(read(path).expect("valid"), [(0x0100_0000, 24), (0x0a00_0000, 8)]);
        }
        // A file of several gzip members, as `pigz` and `cat` write them.
        let member = std::fs::read(&packed).expect("read");
        std::fs::write(&packed, [member.as_slice(), &member].concat()).expect("written");
        assert_eq!(read(&packed).expect("valid").len(), 4);
    }

    #[test]
    fn bad_lines_are_told_with_their_numbers() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("table");
        std::fs::write(&path, "1.0.0.0/24\n1.0.0.0/33\nhello\n").expect("written");
        let told = read(&path).expect_err("refused").to_string();
        assert!(told.contains(":2: `1.0.0.0/33`") && told.contains(":3: `hello`"), "{told}");
        std::fs::write(&path, "2001:db8::/32\n").expect("written");
        assert!(read(&path).is_err());
    }

    #[test]
    fn every_prefix_is_a_command() {
        let text = commands(&[(0x0100_0000, 24), (0x0a00_0000, 8)]);
        assert_eq!(text, "set 1.0.0.0/24 192.0.2.1 0\nset 10.0.0.0/8 192.0.2.2 0\n");
    }
}
