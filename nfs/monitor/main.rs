//! Counts packets and bytes, and by what protocol they are; passes everything on.

use nf::{Batch, Options};
use packet::access::Access;

/// Counters, in the order of their numbers.
const COUNTERS: [&str; 6] = ["packets", "bytes", "ipv4", "ipv6", "arp", "other"];

fn main() -> Result<(), nf::NfError> {
    let options = COUNTERS.iter().fold(Options::new("monitor"), |options, name| options.counter(name));
    nf::run(&options, |batch: &mut Batch<'_>| {
        let mut counts = [0; COUNTERS.len()];
        for packet in batch.iter() {
            counts[0] += 1;
            counts[1] += packet.len() as u64;
            let protocol = match packet.u16(12) {
                Some(0x0800) => 2,
                Some(0x86dd) => 3,
                Some(0x0806) => 4,
                _ => 5,
            };
            counts[protocol] += 1;
        }
        counts.iter().enumerate().for_each(|(counter, by)| batch.link().count(counter, *by));
        batch.pass();
    })
}
