//! The metadata of a packet: header offsets, annotations, time and flow hash.

use ::packet::anno::ANNO_BYTES;
use shm::descriptor::NO_HEADER;

/// The metadata of a packet, for NFs that requested it ([`crate::Options::metadata`]); for other NFs it is
/// empty. Metadata that another NF wrote is as untrusted as the packet's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Offset of the network header in bytes from the packet's first byte; `None` when it is unknown or the
    /// header was removed.
    pub network: Option<usize>,
    /// The same for the transport header.
    pub transport: Option<usize>,
    /// Click annotations, at the offsets of [`crate::headers::anno`].
    pub annotations: [u8; ANNO_BYTES],
    /// The time when it was received, in nanoseconds since the epoch; 0 when unknown.
    pub timestamp_ns: u64,
    /// The port's flow hash, the same in both directions; 0 when unknown.
    pub flow_hash: u32,
}

impl Default for Metadata {
    fn default() -> Metadata {
        Metadata {
            network: None,
            transport: None,
            annotations: [0; ANNO_BYTES],
            timestamp_ns: 0,
            flow_hash: 0,
        }
    }
}

impl Metadata {
    pub(crate) fn of(packet: &shm::Packet) -> Metadata {
        let header = |at: u16| if at == NO_HEADER { None } else { at.checked_sub(packet.data()) };
        Metadata {
            network: header(packet.net).map(usize::from),
            transport: header(packet.trans).map(usize::from),
            annotations: packet.anno,
            timestamp_ns: packet.timestamp_ns,
            flow_hash: packet.flow_hash,
        }
    }

    pub(crate) fn put(&self, packet: &mut shm::Packet) {
        let data = usize::from(packet.data());
        let header = |at: Option<usize>| {
            at.and_then(|at| u16::try_from(data.checked_add(at)?).ok()).unwrap_or(NO_HEADER)
        };
        (packet.net, packet.trans) = (header(self.network), header(self.transport));
        (packet.anno, packet.timestamp_ns) = (self.annotations, self.timestamp_ns);
        packet.flow_hash = self.flow_hash;
    }
}
