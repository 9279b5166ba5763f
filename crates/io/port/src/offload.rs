//! Checksums and segmentation that a sender on the same machine leaves to a device.
//!
//! A kernel that sends into a veth pair, or a guest that sends to its virtual NIC, writes only the pseudo
//! header's sum into a transport checksum, and may send one frame of 64 KiB. It expects a device to complete
//! both. Ports here deliver finished packets: they complete the checksum, and drop and count a truncated
//! frame.
//!
//! Drivers that pass on this state set [`flag::PARTIAL_CHECKSUM`] and [`flag::GSO`]. DPDK's net_af_packet and
//! net_af_xdp do not, so their packets are inspected: a checksum field with exactly the pseudo header's
//! folded sum is taken for a partial one. One in 65,536 finished checksums has that value; the port checks
//! whether it is finished before it changes it. A packet whose checksum field was damaged to exactly that
//! value is not recognised: the port would complete its checksum.

use packet::access::Access;
use packet::checksum::{self, Sum, Validity};
use packet::parse::{self, Layers};
use shm::descriptor::flag;
use shm::{Packet, PacketBytes, PacketBytesMut};
use std::net::{Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The result of [`settle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// The packet was complete.
    Whole,
    /// The transport checksum was partial and is complete now.
    Finished,
    /// The IP header's length exceeds the frame, or the frame stands for several packets. The caller drops
    /// it.
    CutOff,
}

/// Completes a partial transport checksum. With `suspect`, packets without flags are inspected too.
pub fn settle(packet: &mut Packet, suspect: bool) -> Settled {
    let flagged = packet.flags & flag::PARTIAL_CHECKSUM != 0;
    if packet.flags & flag::GSO != 0 {
        return Settled::CutOff;
    }
    if !flagged && !suspect {
        return Settled::Whole;
    }
    let mut bytes = PacketBytesMut::new(packet);
    let layers = parse::frame(&bytes, 0);
    if suspect && is_cut_off(&bytes, &layers) {
        return Settled::CutOff;
    }
    let finished = finish(&mut bytes, &layers, flagged);
    if finished {
        packet.flags &= !flag::PARTIAL_CHECKSUM;
        return Settled::Finished;
    }
    Settled::Whole
}

/// Whether a packet's transport checksum matches; `None` without a checksum that can be verified.
pub fn transport_checksum_holds(packet: &Packet) -> Option<bool> {
    let bytes = PacketBytes::new(packet);
    let field = Field::find(&bytes, &parse::frame(&bytes, 0))?;
    match field.verify(&bytes) {
        Validity::Good => Some(true),
        Validity::Bad => Some(false),
        Validity::Absent | Validity::Truncated => None,
    }
}

fn is_cut_off(bytes: &impl Access, layers: &Layers) -> bool {
    let Some(net) = layers.net else { return false };
    let announced = if layers.is_ipv4() {
        bytes.u16(net + 2).map(usize::from)
    } else if layers.is_ipv6() {
        bytes.u16(net + 4).map(|payload| usize::from(payload) + 40)
    } else {
        None
    };
    announced.is_some_and(|announced| net + announced > bytes.len())
}

/// A transport checksum field and the bytes that it covers.
struct Field {
    protocol: u8,
    trans: usize,
    len: usize,
    pseudo: Sum,
}

impl Field {
    fn find(bytes: &impl Access, layers: &Layers) -> Option<Field> {
        let (net, trans, protocol) = (layers.net?, layers.trans?, layers.ip_proto?);
        if layers.is_fragment || !matches!(protocol, TCP | UDP) {
            return None;
        }
        let len = layers.end.checked_sub(trans)?;
        let pseudo = if layers.is_ipv4() {
            let (src, dst) = (bytes.u32(net + 12)?, bytes.u32(net + 16)?);
            checksum::pseudo_ipv4(
                Ipv4Addr::from_bits(src),
                Ipv4Addr::from_bits(dst),
                protocol,
                u16::try_from(len).ok()?,
            )
        } else if layers.is_ipv6() {
            let (src, dst) = (bytes.get(net + 8)?, bytes.get(net + 24)?);
            checksum::pseudo_ipv6(
                Ipv6Addr::from_bits(u128::from_be_bytes(src)),
                Ipv6Addr::from_bits(u128::from_be_bytes(dst)),
                protocol,
                u32::try_from(len).ok()?,
            )
        } else {
            return None;
        };
        Some(Field { protocol, trans, len, pseudo })
    }

    fn at(&self) -> usize {
        self.trans + if self.protocol == TCP { 16 } else { 6 }
    }

    fn verify(&self, bytes: &impl Access) -> Validity {
        if self.protocol == TCP {
            checksum::verify_tcp(bytes, self.trans, self.len, self.pseudo)
        } else {
            checksum::verify_udp(bytes, self.trans, self.len, self.pseudo)
        }
    }

    fn compute(&self, bytes: &impl Access) -> Option<u16> {
        if self.protocol == TCP {
            checksum::tcp(bytes, self.trans, self.len, self.pseudo)
        } else {
            checksum::udp(bytes, self.trans, self.len, self.pseudo)
        }
    }
}

/// Completes a partial checksum; false if the checksum is not partial.
fn finish(bytes: &mut PacketBytesMut<'_>, layers: &Layers, known: bool) -> bool {
    let Some(field) = Field::find(bytes, layers) else { return false };
    let at = field.at();
    if !known {
        let partial = !field.pseudo.checksum();
        if bytes.u16(at) != Some(partial) || field.verify(bytes) != Validity::Bad {
            return false;
        }
    }
    field.compute(bytes).is_some_and(|check| bytes.put_u16(at, check))
}
