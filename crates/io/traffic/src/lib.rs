//! Generated traffic: frames, their sizes, flows and rate.
//!
//! A [`TrafficSpec`] contains all settings and is the same whether a command line or a TOML file states them.
//! [`TrafficSpec::frames`] makes the frames one by one; [`TrafficSpec::prepare`] stores a number of them in
//! one buffer for a generator port. The same specification generates the same bytes everywhere; a test
//! compares a digest of them.
//!
//! Deliberately excluded are replies (every flow has one direction), fragments, and malformed frames.
//! Captures of real traffic and the fuzz targets contain those.
//!
//! [`write_capture`](capture::write_capture) streams frames to a pcap file, and [`replay`] reads the frames of a
//! capture with other addresses.

mod acl;
pub mod capture;
mod classbench;
mod error;
mod flow;
mod frame;
mod generator;
mod link;
mod payload;
mod protocol;
mod random;
mod range;
pub mod replay;
mod size;
mod spec;
mod summary;
mod text;

pub use acl::AclTraffic;
pub use classbench::read_text;
pub use error::TrafficError;
pub use frame::{FiveTuple, FrameSpec, SHORTEST_WIRE_FRAME_BYTES, TcpSegment};
pub use generator::{FrameMeta, Frames};
pub use link::{MacAddress, VlanTag, VlanTags};
pub use payload::PayloadFill;
pub use protocol::{FlowOrder, ICMP, ICMPV6, ProtocolMix, TCP, TcpFlags, UDP};
pub use range::{AddressRange, PortSet};
pub use size::{DATA_CENTRE, FCS_BYTES, FcsCounting, LONGEST_FRAME_BYTES, SizeMix};
pub use spec::{Spacing, TrafficSpec};
pub use summary::Summary;

#[cfg(test)]
mod tests;
