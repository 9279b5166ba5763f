//! The NF that benchmarks run in processes: the least work of an NF that reads and writes packets.

use crate::exit::ExitStatus;
use anyhow::anyhow;
use nf::{Batch, Options};
use packet::access::Access;

/// Bytes of an Ethernet header's two addresses.
const ADDRESSES: usize = 12;

/// Runs the NF: it swaps the addresses of each frame, as EtherMirror does, and passes it on. An observer only
/// reads.
///
/// # Errors
/// When this process was not started as an NF.
pub fn run() -> anyhow::Result<ExitStatus> {
    let relay = |batch: &mut Batch<'_>| {
        let writes = batch.link().is_writable();
        for packet in batch.iter_mut() {
            let Some(addresses) = packet.get::<ADDRESSES>(0) else { continue };
            if writes {
                let mut swapped = [0; ADDRESSES];
                swapped[..6].copy_from_slice(&addresses[6..]);
                swapped[6..].copy_from_slice(&addresses[..6]);
                // Cannot fail: the same bytes were read.
                let _ = packet.copy_in(0, &swapped);
            }
        }
        batch.pass();
    };
    nf::run(&Options::new("relay"), relay).map_err(|error| anyhow!("{error}"))?;
    Ok(ExitStatus::Good)
}
