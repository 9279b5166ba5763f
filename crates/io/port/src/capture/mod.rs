//! Capture files: reading pcap and pcapng, writing pcap, and the port over them.
//!
//! The readers are this project's own: from a damaged capture they must return every whole frame and then the
//! offset of the damage, for any content, without a panic. The library for these formats refuses whole files
//! because of lengths that occur in real captures, and reports no offsets. See [`reader`], [`writer`],
//! [`CapturePort`].

mod compressed;
pub mod format;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod pcapng;
mod port;
pub mod reader;
pub mod writer;

pub use compressed::{Compression, ZstdFrames};
pub use format::Resolution;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::fuzz_reader;
pub use port::{CaptureOptions, CapturePort};
pub use reader::{CaptureReader, Frame};
pub use writer::CaptureWriter;

use crate::dpdk::DpdkSpec;
use std::path::Path;

/// The ends of names of captures.
const EXTENSIONS: [&str; 2] = ["pcap", "pcapng"];
/// The ends of names of compressed files.
const COMPRESSED: [&str; 3] = ["gz", "zst", "zstd"];

/// Whether a name is that of a capture file, which may be compressed: `in.pcap`, `in.pcapng.gz`. The last argument of a
/// DPDK device may look like one, too: `net_pcap0,rx_pcap=in.pcap`.
pub fn is_capture_name(name: &str) -> bool {
    if name.contains(',') && DpdkSpec::is_meant(name) {
        return false;
    }
    let name = Path::new(name);
    let name = if is_compressed_name(name) { name.with_extension("") } else { name.to_path_buf() };
    has_extension(&name, &EXTENSIONS)
}

/// Whether a name is that of a compressed file, which are read and not written.
pub fn is_compressed_name(name: &Path) -> bool {
    has_extension(name, &COMPRESSED)
}

fn has_extension(name: &Path, extensions: &[&str]) -> bool {
    let extension = name.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.iter().any(|e| extension.eq_ignore_ascii_case(e)))
}
