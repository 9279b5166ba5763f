//! Counts by aggregate, and the files that they are written to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

/// The most aggregates: some 300 MB.
const MOST: usize = 1 << 24;

/// A count for each aggregate.
#[derive(Default)]
pub(super) struct Aggregates {
    /// None of the counts is 0.
    counts: BTreeMap<u32, u32>,
    total: u64,
}

/// The format of a file of counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// Lines of an aggregate and its count.
    Text,
    /// The same, with aggregates as IP addresses.
    Addresses,
    /// Lines of an aggregate and its part of the total.
    Parts,
    /// Pairs of 32-bit numbers in the machine's byte order.
    Binary,
}

impl Aggregates {
    /// Whether an aggregate has a count.
    pub(super) fn has(&self, aggregate: u32) -> bool {
        self.counts.contains_key(&aggregate)
    }

    /// Aggregates with a count.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The sum of all counts.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Adds to the count of an aggregate. False, with nothing added, if there are too many aggregates.
    pub(super) fn add(&mut self, aggregate: u32, amount: u32) -> bool {
        let is_full = self.counts.len() >= MOST;
        match self.counts.get_mut(&aggregate) {
            Some(count) => *count = count.wrapping_add(amount),
            None if amount == 0 => {}
            None if is_full => return false,
            None => _ = self.counts.insert(aggregate, amount),
        }
        self.total += u64::from(amount);
        true
    }

    /// Makes each count an aggregate, whose new count is how often it occurred.
    pub(super) fn reaggregate(&mut self) {
        for count in std::mem::take(self).counts.into_values() {
            self.add(count, 1);
        }
    }

    /// Writes the counts to a file, or to the standard output if its name is `-`.
    ///
    /// # Errors
    /// A sentence that states why that failed.
    pub(super) fn write(&self, path: &Path, banner: &str, format: Format) -> Result<(), String> {
        let bytes = self.bytes(banner, format);
        let written = if path == Path::new("-") {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush())
        } else {
            std::fs::write(path, bytes)
        };
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn bytes(&self, banner: &str, format: Format) -> Vec<u8> {
        let mut text = String::from(banner);
        if !banner.is_empty() && !banner.ends_with('\n') {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "!num_nonzero {}", self.len());
        if format == Format::Binary {
            text += if cfg!(target_endian = "little") { "!packed_le\n" } else { "!packed_be\n" };
            let pairs = self.counts.iter().flat_map(|(aggregate, count)| [*aggregate, *count]);
            return text.into_bytes().into_iter().chain(pairs.flat_map(u32::to_ne_bytes)).collect();
        }
        for (aggregate, count) in &self.counts {
            let _ = match format {
                Format::Addresses => writeln!(text, "{} {count}", Ipv4Addr::from(*aggregate)),
                Format::Parts => {
                    writeln!(text, "{aggregate} {}", f64::from(*count) / self.total.max(1) as f64)
                }
                Format::Text | Format::Binary => writeln!(text, "{aggregate} {count}"),
            };
        }
        text.into_bytes()
    }
}
