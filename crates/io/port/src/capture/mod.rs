//! Capture files: reading pcap and pcapng, writing pcap, and the port over them.
//!
//! The readers are our own because a damaged capture must give what is whole in it and then say where
//! it breaks, for any content, without a panic; the library for these formats refuses whole files for
//! lengths that real captures hold and knows no offsets. See [`reader`], [`writer`], [`CapturePort`].

pub mod format;
mod fuzz;
mod pcapng;
mod port;
pub mod reader;
pub mod writer;

pub use fuzz::fuzz_reader;
pub use port::{CaptureOptions, CapturePort};
pub use reader::{CaptureReader, Frame};
pub use writer::CaptureWriter;
