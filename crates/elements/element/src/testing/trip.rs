//! A packet before and after an element had it.

use packet::anno::{ANNO_BYTES, Anno};
use shm::descriptor::NO_PORT;

/// A packet outside the pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestPacket {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Headers, in bytes from the packet's start; negative where they were stripped.
    pub mac: Option<i32>,
    /// Network header.
    pub net: Option<i32>,
    /// Transport header.
    pub trans: Option<i32>,
    /// Annotations.
    pub anno: [u8; ANNO_BYTES],
    /// Click packet type.
    pub packet_type: u8,
    /// Timestamp.
    pub timestamp_ns: u64,
    /// The port that it came in by.
    pub origin: u16,
}

impl TestPacket {
    /// A frame as a port delivers it: the MAC header is known.
    pub fn frame(bytes: &[u8]) -> TestPacket {
        TestPacket {
            bytes: bytes.to_vec(),
            mac: Some(0),
            net: None,
            trans: None,
            anno: [0; ANNO_BYTES],
            packet_type: 0,
            timestamp_ns: 0,
            origin: NO_PORT,
        }
    }

    /// An IPv4 or IPv6 packet without Ethernet header, with its header annotations set where the bytes
    /// allow it.
    pub fn ip(bytes: &[u8]) -> TestPacket {
        let header = match bytes.first() {
            Some(first) if first >> 4 == 6 => 40,
            Some(first) => i32::from(first & 15) * 4,
            None => 0,
        };
        TestPacket { mac: None, net: Some(0), trans: Some(header), ..TestPacket::frame(bytes) }
    }

    /// The same with an annotation set.
    pub fn with_anno(mut self, anno: Anno, value: u64) -> TestPacket {
        anno.store(&mut self.anno, value);
        self
    }

    /// The value of an annotation.
    pub fn anno(&self, anno: Anno) -> u64 {
        anno.load(&self.anno)
    }
}

/// How a packet left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By a port.
    Port(usize),
    /// Dropped for a reason.
    Dropped(String),
}

/// How a packet leaves that is dropped for a reason.
pub fn dropped(reason: &str) -> Exit {
    Exit::Dropped(reason.to_string())
}

/// The exits of packets.
pub fn exits(out: &[Out]) -> Vec<Exit> {
    out.iter().map(|out| out.exit.clone()).collect()
}

/// A packet that left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Out {
    /// How.
    pub exit: Exit,
    /// The packet.
    pub packet: TestPacket,
}
