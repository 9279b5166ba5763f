//! The NF that benchmarks run in processes: the least work of an NF that reads and writes packets.

use crate::exit::ExitStatus;
use ::bench::load::parts::{Time, write};
use anyhow::anyhow;
use clap::Args;
use nf::{Batch, Options};
use packet::access::Access;
use std::time::Instant;

/// Bytes of an Ethernet header's two addresses.
const ADDRESSES: usize = 12;

/// The options of the NF.
#[derive(Debug, Args)]
pub struct NfRelayArgs {
    /// Writes into each stamped frame how long the NF had its batch
    #[arg(long)]
    times: bool,
}

/// Runs the NF: it swaps the addresses of each frame, as EtherMirror does, and passes it on. An observer only
/// reads.
///
/// # Errors
/// When this process was not started as an NF.
pub fn run(args: &NfRelayArgs) -> anyhow::Result<ExitStatus> {
    let times = args.times;
    let relay = |batch: &mut Batch<'_>| {
        let writes = batch.link().is_writable();
        let start = (times && writes).then(Instant::now);
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
        if let Some(start) = start {
            let ns = start.elapsed().as_nanos() as u64;
            batch.iter_mut().for_each(|packet| write(packet, Time::InNf, ns));
        }
        batch.pass();
    };
    nf::run(&Options::new("relay"), relay).map_err(|error| anyhow!("{error}"))?;
    Ok(ExitStatus::Good)
}
