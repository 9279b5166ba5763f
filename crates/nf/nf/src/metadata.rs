//! What travels with a packet beside its bytes.

use ::packet::anno::ANNO_BYTES;
use shm::descriptor::NO_HEADER;

/// What is known of a packet beside its bytes, for NFs that asked for it ([`crate::Options::metadata`]); for others
/// nothing is. Coming from another NF it is a descriptor like the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Where the network header begins, in bytes from the packet's first; `None` when that is not known, or was
    /// taken off.
    pub network: Option<usize>,
    /// The same of the transport header.
    pub transport: Option<usize>,
    /// Click annotations, at the offsets of [`crate::headers::anno`].
    pub annotations: [u8; ANNO_BYTES],
    /// When it was received, in nanoseconds since the epoch; 0 when not known.
    pub timestamp_ns: u64,
    /// The port's flow hash, the same in both directions; 0 when not known.
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
