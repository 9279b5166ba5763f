//! Click annotations: 48 bytes of metadata of each packet.
//!
//! The order is that of Click 2.1's `packet_anno.hh`: the destination address, then paint and the small
//! flags, then the words. Annotations overlap where Click's do. Multi-byte annotations are integers in the
//! machine's byte order, since they never leave the machine.

/// Bytes of annotation that each packet carries.
pub const ANNO_BYTES: usize = 48;

/// A named annotation: offset and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Anno {
    /// Offset in the annotation area, in bytes.
    pub offset: u8,
    /// Length in bytes: 1, 2, 4 or 8 (16 for [`DST_IP6`], which is read as two words).
    pub len: u8,
}

impl Anno {
    /// Reads the annotation; of more than eight bytes, the first eight.
    #[inline]
    pub fn load(self, annos: &[u8; ANNO_BYTES]) -> u64 {
        let mut value = [0; 8];
        let bytes = annos.iter().skip(self.offset.into()).take(self.len.into());
        value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(value)
    }

    /// Sets the annotation.
    #[inline]
    pub fn store(self, annos: &mut [u8; ANNO_BYTES], value: u64) {
        let place = annos.iter_mut().skip(self.offset.into()).take(self.len.into());
        place.zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
    }
}

/// These bytes of the annotations, a bit for each.
pub const fn bytes(offset: u8, len: u8) -> u64 {
    ((1 << len) - 1) << offset
}

/// The bytes that are 0 in a packet without annotations, a bit for each: all but [`EXTRA_LENGTH`], which a port that
/// reads a capture sets.
pub const UNSET: u64 = bytes(0, ANNO_BYTES as u8) & !bytes(EXTRA_LENGTH.offset, EXTRA_LENGTH.len);

/// Whether a byte is 0 in a packet without annotations.
pub const fn is_unset(byte: usize) -> bool {
    byte < ANNO_BYTES && UNSET >> byte & 1 == 1
}

macro_rules! annos {
    ($( $(#[$doc:meta])* $konst:ident = $name:literal, $offset:expr, $len:expr; )*) => {
        $( $(#[$doc])* pub const $konst: Anno = Anno { offset: $offset, len: $len }; )*
        /// Every named annotation, by the name that configurations use.
        pub const TABLE: &[(&str, Anno)] = &[ $( ($name, $konst) ),* ];
    };
}

annos! {
    /// Destination IPv4 address; the next hop after a route lookup.
    DST_IP = "DST_IP", 0, 4;
    /// Destination IPv6 address.
    DST_IP6 = "DST_IP6", 0, 16;
    /// The colour that `Paint` sets.
    PAINT = "PAINT", 16, 1;
    /// A second colour.
    PAINT2 = "PAINT2", 17, 1;
    /// Offset of the bad byte for an ICMP parameter problem.
    ICMP_PARAMPROB = "ICMP_PARAMPROB", 18, 1;
    /// Whether `FixIPSrc` should set the source address.
    FIX_IP_SRC = "FIX_IP_SRC", 19, 1;
    /// Aggregate number.
    AGGREGATE = "AGGREGATE", 20, 4;
    /// Further packets that this one represents.
    EXTRA_PACKETS = "EXTRA_PACKETS", 24, 4;
    /// Bytes that a capture cut off.
    EXTRA_LENGTH = "EXTRA_LENGTH", 28, 4;
    /// Timestamp of the first packet of an aggregate, in nanoseconds.
    FIRST_TIMESTAMP = "FIRST_TIMESTAMP", 32, 8;
    /// Sequence number from a source.
    SEQUENCE_NUMBER = "SEQUENCE_NUMBER", 40, 4;
    /// VLAN tag control information.
    VLAN_TCI = "VLAN_TCI", 44, 2;
    /// Miscellaneous IP address; overlaps [`AGGREGATE`], as in Click.
    MISC_IP = "MISC_IP", 20, 4;
}

/// The annotation with that name.
pub fn from_name(name: &str) -> Option<Anno> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, anno)| *anno)
}
