//! The NF that the benchmark puts into processes: as little work as an NF can do that looks at its packets.

use crate::exit::ExitStatus;
use anyhow::anyhow;
use nf::{Batch, Options};
use packet::access::Access;

/// Bytes of an Ethernet header's two addresses.
const ADDRESSES: usize = 12;

/// Swaps the addresses of each frame, as EtherMirror does, and passes it on. An observer only reads.
///
/// # Errors
/// When this program was not started as an NF.
pub fn run() -> anyhow::Result<ExitStatus> {
    let relay = |batch: &mut Batch<'_>| {
        let writes = batch.link().is_writable();
        for packet in batch.iter_mut() {
            let Some(addresses) = packet.get::<ADDRESSES>(0) else { continue };
            if writes {
                let mut swapped = [0; ADDRESSES];
                swapped[..6].copy_from_slice(&addresses[6..]);
                swapped[6..].copy_from_slice(&addresses[..6]);
                // It was long enough to be read.
                let _ = packet.copy_in(0, &swapped);
            }
        }
        batch.pass();
    };
    nf::run(&Options::new("relay"), relay).map_err(|error| anyhow!("{error}"))?;
    Ok(ExitStatus::Good)
}
