//! The field table: every header field that elements, the IR, the classifier and the synthesizer use.
//!
//! A field has a [`Base`] (the header that its offset counts from), a bit offset from the most significant
//! bit of the base's first byte (RFC 791 notation), and a width in bits. Values are plain integers: only this
//! crate and the code generator handle the byte order of the wire.
//!
//! Invariants: a field is 1 to 64 bits wide and lies in at most 8 bytes. The table does not tell whether a
//! packet *has* the header: a program must check that before it reads.

use crate::access::Access;

/// The header that a field's offset counts from.
///
/// `Data` is the packet's first byte at present (Click's `data()`). The others are the header annotations
/// that `MarkMACHeader`, `CheckIPHeader`, … set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Base {
    /// The packet's first byte at present.
    Data = 0,
    /// MAC header annotation.
    Mac = 1,
    /// Network header annotation.
    Net = 2,
    /// Transport header annotation.
    Trans = 3,
}

impl Base {
    /// All bases, in the order of their discriminants.
    pub const ALL: [Base; 4] = [Base::Data, Base::Mac, Base::Net, Base::Trans];

    /// The name used in text forms.
    pub const fn name(self) -> &'static str {
        match self {
            Base::Data => "data",
            Base::Mac => "mac",
            Base::Net => "net",
            Base::Trans => "trans",
        }
    }

    /// The base with that name.
    pub fn from_name(name: &str) -> Option<Base> {
        Self::ALL.into_iter().find(|base| base.name() == name)
    }
}

/// A header field: its position and width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Field {
    /// The header that the offset counts from.
    pub base: Base,
    /// Offset of the most significant bit from the start of the base, in bits.
    pub bit: u16,
    /// Width in bits, 1 to 64.
    pub width: u8,
}

impl Field {
    /// A field by base, bit offset and width in bits.
    pub const fn new(base: Base, bit: u16, width: u8) -> Field {
        Field { base, bit, width }
    }

    /// Whole bytes: `len` bytes (1 to 8) at byte offset `offset`.
    pub const fn bytes(base: Base, offset: u16, len: u8) -> Field {
        Field { base, bit: offset * 8, width: len * 8 }
    }

    /// Byte offset of its first byte.
    pub const fn first_byte(self) -> u16 {
        self.bit / 8
    }

    /// Number of bytes that it lies in, 1 to 8 for a valid field.
    pub const fn byte_len(self) -> u16 {
        (self.bit % 8 + self.width as u16).div_ceil(8)
    }

    /// Bytes from the base that a packet must have for the field to be read.
    pub const fn end_byte(self) -> u16 {
        self.first_byte() + self.byte_len()
    }

    /// Number of bits between the field's last bit and the end of its last byte.
    pub const fn shift(self) -> u8 {
        (self.byte_len() * 8 - self.bit % 8 - self.width as u16) as u8
    }

    /// The largest value.
    pub const fn max_value(self) -> u64 {
        if self.width >= 64 { u64::MAX } else { (1 << self.width) - 1 }
    }

    /// Whether it starts and ends on byte borders.
    pub const fn is_byte_aligned(self) -> bool {
        self.bit.is_multiple_of(8) && self.width.is_multiple_of(8)
    }

    /// Whether it satisfies the invariants of this module.
    pub const fn is_valid(self) -> bool {
        self.width >= 1 && self.width <= 64 && self.byte_len() <= 8
    }

    /// Reads the field from a header's bytes; `None` if it reaches past their end.
    pub fn read(self, header: &[u8]) -> Option<u64> {
        let bytes = header.get(self.first_byte() as usize..self.end_byte() as usize)?;
        let raw = bytes.iter().fold(0u64, |acc, &byte| acc << 8 | u64::from(byte));
        Some(raw >> self.shift() & self.max_value())
    }

    /// Writes the low bits of `value`; false, with nothing written, if it reaches past the end.
    pub fn write(self, header: &mut [u8], value: u64) -> bool {
        let range = self.first_byte() as usize..self.end_byte() as usize;
        let Some(bytes) = header.get_mut(range) else { return false };
        let old = bytes.iter().fold(0u64, |acc, &byte| acc << 8 | u64::from(byte));
        let mask = self.max_value() << self.shift();
        let mut new = old & !mask | value << self.shift() & mask;
        for byte in bytes.iter_mut().rev() {
            *byte = new as u8;
            new >>= 8;
        }
        true
    }

    /// Reads the field of the header at `at` in a packet by one copy of its bytes; `None` if it reaches past
    /// the end.
    #[inline]
    pub fn load<A: Access + ?Sized>(self, packet: &A, at: usize) -> Option<u64> {
        let mut raw = [0; 8];
        let bytes = raw.get_mut(8usize.checked_sub(self.byte_len() as usize)?..)?;
        let from = at.checked_add(self.first_byte() as usize)?;
        packet.copy_out(from, bytes).then(|| u64::from_be_bytes(raw) >> self.shift() & self.max_value())
    }

    /// Writes the low bits of `value` into the header at `at`; false, with nothing written, if it reaches
    /// past the end. Bits of other fields in the same bytes are read and written back.
    #[inline]
    pub fn store<A: Access + ?Sized>(self, packet: &mut A, at: usize, value: u64) -> bool {
        let Some(skip) = 8usize.checked_sub(self.byte_len() as usize) else { return false };
        let Some(from) = at.checked_add(self.first_byte() as usize) else { return false };
        let mut raw = [0; 8];
        if !self.is_byte_aligned() && !raw.get_mut(skip..).is_some_and(|old| packet.copy_out(from, old)) {
            return false;
        }
        let mask = self.max_value() << self.shift();
        let new = u64::from_be_bytes(raw) & !mask | value << self.shift() & mask;
        new.to_be_bytes().as_slice().get(skip..).is_some_and(|bytes| packet.copy_in(from, bytes))
    }

    /// The name in the table, if it has one.
    pub fn name(self) -> Option<&'static str> {
        TABLE.iter().find(|(_, field)| *field == self).map(|(name, _)| *name)
    }

    /// The field with that name in the table.
    pub fn from_name(name: &str) -> Option<Field> {
        TABLE.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }
}

macro_rules! fields {
    ($( $(#[$doc:meta])* $konst:ident = $name:literal, $base:ident, $bit:expr, $width:expr; )*) => {
        $( $(#[$doc])* pub const $konst: Field = Field::new(Base::$base, $bit, $width); )*
        /// Every named field.
        pub const TABLE: &[(&str, Field)] = &[ $( ($name, $konst) ),* ];
    };
}

fields! {
    /// Ethernet destination address (IEEE 802.3).
    ETH_DST = "eth.dst", Mac, 0, 48;
    /// Ethernet source address.
    ETH_SRC = "eth.src", Mac, 48, 48;
    /// EtherType, or the TPID of the outermost tag.
    ETH_TYPE = "eth.type", Mac, 96, 16;
    /// VLAN tag control information of the outermost tag (IEEE 802.1Q).
    VLAN_TCI = "vlan.tci", Mac, 112, 16;
    /// VLAN identifier of the outermost tag.
    VLAN_ID = "vlan.id", Mac, 116, 12;
    /// EtherType behind the outermost tag.
    VLAN_TYPE = "vlan.type", Mac, 128, 16;
    /// VLAN priority code point of the outermost tag.
    VLAN_PCP = "vlan.pcp", Mac, 112, 3;
    /// Drop eligible indicator of the outermost tag.
    VLAN_DEI = "vlan.dei", Mac, 115, 1;
    /// VLAN tag control information of the second tag (QinQ, IEEE 802.1ad).
    VLAN2_TCI = "vlan2.tci", Mac, 144, 16;
    /// VLAN identifier of the second tag.
    VLAN2_ID = "vlan2.id", Mac, 148, 12;
    /// EtherType behind the second tag.
    VLAN2_TYPE = "vlan2.type", Mac, 160, 16;
    /// ARP hardware address space (RFC 826), counted from the network header as all ARP fields.
    ARP_HTYPE = "arp.htype", Net, 0, 16;
    /// ARP protocol address space.
    ARP_PTYPE = "arp.ptype", Net, 16, 16;
    /// ARP hardware address length in bytes.
    ARP_HLEN = "arp.hlen", Net, 32, 8;
    /// ARP protocol address length in bytes.
    ARP_PLEN = "arp.plen", Net, 40, 8;
    /// ARP sender hardware address, for Ethernet and IPv4.
    ARP_SHA = "arp.sha", Net, 64, 48;
    /// ARP sender protocol address.
    ARP_SPA = "arp.spa", Net, 112, 32;
    /// ARP target hardware address.
    ARP_THA = "arp.tha", Net, 144, 48;
    /// ARP target protocol address.
    ARP_TPA = "arp.tpa", Net, 192, 32;
    /// ARP operation (RFC 826), counted from the network header.
    ARP_OP = "arp.op", Net, 48, 16;
    /// IPv4 version (RFC 791).
    IP_VERSION = "ip.version", Net, 0, 4;
    /// IPv4 header length in 32-bit words.
    IP_HL = "ip.hl", Net, 4, 4;
    /// IPv4 type of service byte.
    IP_TOS = "ip.tos", Net, 8, 8;
    /// Differentiated services code point (RFC 2474).
    IP_DSCP = "ip.dscp", Net, 8, 6;
    /// Explicit congestion notification (RFC 3168).
    IP_ECN = "ip.ecn", Net, 14, 2;
    /// IPv4 total length in bytes.
    IP_LEN = "ip.len", Net, 16, 16;
    /// IPv4 identification.
    IP_ID = "ip.id", Net, 32, 16;
    /// IPv4 flags and fragment offset together.
    IP_OFF = "ip.off", Net, 48, 16;
    /// Don't fragment.
    IP_DF = "ip.df", Net, 49, 1;
    /// More fragments.
    IP_MF = "ip.mf", Net, 50, 1;
    /// Fragment offset in 8-byte units.
    IP_FRAG = "ip.frag", Net, 51, 13;
    /// IPv4 time to live.
    IP_TTL = "ip.ttl", Net, 64, 8;
    /// IPv4 protocol.
    IP_PROTO = "ip.proto", Net, 72, 8;
    /// IPv4 header checksum.
    IP_SUM = "ip.sum", Net, 80, 16;
    /// IPv4 source address.
    IP_SRC = "ip.src", Net, 96, 32;
    /// IPv4 destination address.
    IP_DST = "ip.dst", Net, 128, 32;
    /// IPv4 source and destination address together: one read for a flow key.
    IP_PAIR = "ip.pair", Net, 96, 64;
    /// IPv6 version (RFC 8200).
    IP6_VERSION = "ip6.version", Net, 0, 4;
    /// IPv6 traffic class.
    IP6_CLASS = "ip6.class", Net, 4, 8;
    /// IPv6 flow label.
    IP6_LABEL = "ip6.label", Net, 12, 20;
    /// IPv6 payload length in bytes.
    IP6_PLEN = "ip6.plen", Net, 32, 16;
    /// IPv6 next header.
    IP6_NXT = "ip6.nxt", Net, 48, 8;
    /// IPv6 hop limit.
    IP6_HLIM = "ip6.hlim", Net, 56, 8;
    /// IPv6 source address, high half.
    IP6_SRC_HI = "ip6.src_hi", Net, 64, 64;
    /// IPv6 source address, low half.
    IP6_SRC_LO = "ip6.src_lo", Net, 128, 64;
    /// IPv6 destination address, high half.
    IP6_DST_HI = "ip6.dst_hi", Net, 192, 64;
    /// IPv6 destination address, low half.
    IP6_DST_LO = "ip6.dst_lo", Net, 256, 64;
    /// TCP or UDP source port.
    L4_SPORT = "l4.sport", Trans, 0, 16;
    /// TCP or UDP destination port.
    L4_DPORT = "l4.dport", Trans, 16, 16;
    /// TCP or UDP source and destination port together.
    L4_PORTS = "l4.ports", Trans, 0, 32;
    /// TCP sequence number (RFC 9293).
    TCP_SEQ = "tcp.seq", Trans, 32, 32;
    /// TCP acknowledgment number.
    TCP_ACK = "tcp.ack", Trans, 64, 32;
    /// TCP data offset in 32-bit words.
    TCP_HL = "tcp.hl", Trans, 96, 4;
    /// TCP flags: CWR ECE URG ACK PSH RST SYN FIN.
    TCP_FLAGS = "tcp.flags", Trans, 104, 8;
    /// TCP window.
    TCP_WIN = "tcp.win", Trans, 112, 16;
    /// TCP checksum.
    TCP_SUM = "tcp.sum", Trans, 128, 16;
    /// TCP urgent pointer.
    TCP_URP = "tcp.urp", Trans, 144, 16;
    /// UDP length in bytes (RFC 768).
    UDP_LEN = "udp.len", Trans, 32, 16;
    /// UDP checksum.
    UDP_SUM = "udp.sum", Trans, 48, 16;
    /// ICMP type (RFC 792).
    ICMP_TYPE = "icmp.type", Trans, 0, 8;
    /// ICMP code.
    ICMP_CODE = "icmp.code", Trans, 8, 8;
    /// ICMP checksum.
    ICMP_SUM = "icmp.sum", Trans, 16, 16;
    /// ICMP identifier of echo, timestamp and information messages.
    ICMP_ID = "icmp.id", Trans, 32, 16;
    /// ICMP sequence number.
    ICMP_SEQ = "icmp.seq", Trans, 48, 16;
    /// ICMP pointer of a parameter problem (RFC 792).
    ICMP_POINTER = "icmp.pointer", Trans, 32, 8;
    /// ICMP gateway address of a redirect (RFC 792).
    ICMP_GATEWAY = "icmp.gateway", Trans, 32, 32;
    /// ICMP next-hop MTU in bytes (RFC 1191).
    ICMP_MTU = "icmp.mtu", Trans, 48, 16;
    /// ICMPv6 MTU in bytes, or pointer of a parameter problem (RFC 4443).
    ICMP6_WORD = "icmp6.word", Trans, 32, 32;
    /// Flags of a neighbour advertisement: router, solicited, override (RFC 4861).
    ND_FLAGS = "nd.flags", Trans, 32, 3;
    /// Target address of neighbour discovery, high half.
    ND_TARGET_HI = "nd.target_hi", Trans, 64, 64;
    /// Target address of neighbour discovery, low half.
    ND_TARGET_LO = "nd.target_lo", Trans, 128, 64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_field_is_valid_and_named_once() {
        for (index, (name, field)) in TABLE.iter().enumerate() {
            assert!(field.is_valid(), "{name}");
            assert_eq!(Field::from_name(name), Some(*field));
            assert!(TABLE[index + 1..].iter().all(|(other, _)| other != name), "{name} twice");
        }
    }

    #[test]
    fn a_field_reads_what_it_wrote_and_touches_nothing_else() {
        for (name, field) in TABLE {
            for fill in [0u8, 0xff, 0x5a] {
                let mut header = [fill; 64];
                assert!(field.write(&mut header, 0x0123_4567_89ab_cdef), "{name}");
                let mut stored = [fill; 67];
                assert!(field.store(&mut stored, 3, 0x0123_4567_89ab_cdef), "{name}");
                assert!(stored[..3] == [fill; 3] && stored[3..] == header, "{name}");
                assert_eq!(field.load(&stored, 3), field.read(&header), "{name}");
                assert_eq!(field.read(&header), Some(0x0123_4567_89ab_cdef & field.max_value()), "{name}");
                let others =
                    (0..512u16).filter(|bit| *bit < field.bit || *bit >= field.bit + u16::from(field.width));
                for bit in others {
                    let one = Field::new(field.base, bit, 1);
                    assert_eq!(one.read(&header), one.read(&[fill; 64]), "{name} changed bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_short_header_reads_as_none_and_stays_untouched() {
        let mut header = [7u8; 11];
        assert_eq!(IP_SUM.read(&header), None);
        assert!(!IP_SUM.write(&mut header, 0));
        assert_eq!(IP_SUM.load(&header, 0), None);
        assert_eq!(IP_SUM.load(&header, usize::MAX), None);
        assert!(!IP_SUM.store(&mut header, 0, 0) && !IP_FRAG.store(&mut header, 5, 0));
        assert_eq!(header, [7u8; 11]);
    }
}
