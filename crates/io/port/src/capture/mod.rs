//! Capture files: reading pcap and pcapng, writing pcap, and the port over them.
//!
//! The readers are this project's own: from a damaged capture they must return every whole frame and then the
//! offset of the damage, for any content, without a panic. The library for these formats refuses whole files
//! because of lengths that occur in real captures, and reports no offsets. See [`reader`], [`writer`],
//! [`CapturePort`].

pub mod format;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod pcapng;
mod port;
pub mod reader;
pub mod writer;

pub use format::Resolution;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::fuzz_reader;
pub use port::{CaptureOptions, CapturePort};
pub use reader::{CaptureReader, Frame};
pub use writer::CaptureWriter;

use crate::dpdk::DpdkSpec;
use std::path::Path;

/// Whether a name is that of a capture file. The last argument of a DPDK device may look like one, too:
/// `net_pcap0,rx_pcap=in.pcap`.
pub fn is_capture_name(name: &str) -> bool {
    if name.contains(',') && DpdkSpec::is_meant(name) {
        return false;
    }
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["pcap", "pcapng"].iter().any(|e| extension.eq_ignore_ascii_case(e)))
}
