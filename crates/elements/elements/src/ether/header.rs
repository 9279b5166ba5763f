//! The Ethernet header as two numbers, which a program writes with two stores.

use click::config::parse;
use element::Row;
use element::value::{ether_text, set, set_cell, written};
use ir::{Builder, Expr};
use packet::access::Access;
use packet::field::{Base, Field};
pub use packet::view::ethernet::{ARP as TYPE_ARP, HEADER_BYTES, IPV4 as TYPE_IP, IPV6 as TYPE_IP6};
use shm::Packet;
use shm::bytes::PacketBytesMut;

/// The broadcast address.
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];

/// Destination and the first two bytes of the source.
pub(crate) const FIRST_BYTES: Field = Field::bytes(Base::Data, 0, 8);
/// The rest of the source, and the type.
pub(crate) const BACK: Field = Field::bytes(Base::Data, 8, 6);
/// The rest of the source.
pub(crate) const BACK_ADDRESS: Field = Field::bytes(Base::Data, 8, 4);

/// An Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EtherHeader {
    pub(crate) dst: [u8; 6],
    pub(crate) src: [u8; 6],
    pub(crate) ethertype: u16,
}

impl EtherHeader {
    /// Its bytes.
    pub(crate) fn bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..6].copy_from_slice(&self.dst);
        bytes[6..12].copy_from_slice(&self.src);
        bytes[12..].copy_from_slice(&self.ethertype.to_be_bytes());
        bytes
    }

    /// The value of [`FIRST_BYTES`].
    pub(crate) fn first_bytes(self) -> u64 {
        let [d0, d1, d2, d3, d4, d5] = self.dst;
        u64::from_be_bytes([d0, d1, d2, d3, d4, d5, self.src[0], self.src[1]])
    }

    /// The value of [`BACK`].
    pub(crate) fn back(self) -> u64 {
        let ([.., s2, s3, s4, s5], [high, low]) = (self.src, self.ethertype.to_be_bytes());
        u64::from_be_bytes([0, 0, s2, s3, s4, s5, high, low])
    }

    /// Adds the header to a packet, and moves the packet's bytes if the headroom is too small. False, with
    /// nothing changed, if there is no room.
    pub(crate) fn push_onto(self, packet: &mut Packet) -> bool {
        if !packet.make_headroom(HEADER_BYTES) || !packet.push(HEADER_BYTES) {
            return false;
        }
        packet.mac = packet.data();
        packet.net = packet.data() + HEADER_BYTES as u16;
        PacketBytesMut::new(packet).copy_in(0, &self.bytes())
    }
}

impl EtherHeader {
    /// Writes the header into the program's cells: [`EtherHeader::first_bytes`] and [`EtherHeader::back`].
    fn store(self, cells: &mut [u64]) -> Result<(), String> {
        if let [front, back, ..] = cells {
            (*front, *back) = (self.first_bytes(), self.back());
        }
        Ok(())
    }

    fn set_type(&mut self, value: &str, cells: &mut [u64]) -> Result<(), String> {
        set(&mut self.ethertype, value, parse::u16)?;
        self.store(cells)
    }

    /// The handlers of the addresses.
    pub(super) const ADDRESSES: &[Row<EtherHeader>] = Self::HANDLERS.split_at(2).0;
    /// The handlers of the addresses, and of the type by both its names.
    pub(super) const HANDLERS: &[Row<EtherHeader>] = &[
        Row::read_write(
            "src",
            |header, _| Some(ether_text(header.src)),
            |header, value, cells| {
                set(&mut header.src, value, parse::ether)?;
                header.store(cells)
            },
        ),
        Row::read_write(
            "dst",
            |header, _| Some(ether_text(header.dst)),
            |header, value, cells| {
                set(&mut header.dst, value, parse::ether)?;
                header.store(cells)
            },
        ),
        Row::read_write("ethertype", |header, _| Some(header.ethertype.to_string()), EtherHeader::set_type),
        Row::read_write("etht", |header, _| Some(header.ethertype.to_string()), EtherHeader::set_type),
    ];
}

/// A handler of the Ethernet address in the program's first cell.
pub(super) const fn address<T>(name: &'static str) -> Row<T> {
    Row::read_write(
        name,
        |_, cells| Some(ether_text(from_number(*cells.first()?))),
        |_, value, cells| set_cell(cells, 0, to_number(written(value, parse::ether)?)),
    )
}

/// Adds a header to the packet. The program must have checked the headroom.
pub(crate) fn push_header(f: &mut Builder, front: impl Into<Expr>, back: impl Into<Expr>) {
    f.push(HEADER_BYTES);
    set_headers(f, HEADER_BYTES);
    f.store(FIRST_BYTES, front);
    f.store(BACK, back);
}

/// Marks the front as the MAC header, and the network header so many bytes behind it.
pub(crate) fn set_headers(f: &mut Builder, header_bytes: usize) {
    f.set_base(Base::Mac, 0);
    f.set_base(Base::Net, header_bytes as u64);
}

/// An address as the low 48 bits of a number.
pub(crate) fn to_number([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// The address in the low 48 bits of a number.
pub(crate) fn from_number(number: u64) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
    [a, b, c, d, e, f]
}
