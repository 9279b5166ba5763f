//! `EtherVLANEncap` and `StripEtherVLANHeader`: add an Ethernet header with a VLAN tag, and remove it.

use super::header::{BACK, BACK_ADDRESS, EtherHeader, FIRST_BYTES, HEADER_BYTES, push_header, set_headers};
use super::vlan_tag::{TAG, TAG_BYTES, TAG_CELLS, Tagger, VlanTag, native_vlan};
use crate::program::Program;
use click::config::{Args, parse};
use element::value::{ether_text, set};
use element::{Class, PortCodes, Row, StateScope, Work};
use ir::Builder;
use ir::expr::{cell, load};
use packet::access::Access;
use packet::anno;
use packet::field::{Base, Field};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;

/// The class.
pub const ENCAP: Class = Class {
    name: "EtherVLANEncap",
    summary: "encapsulates packets in 802.1Q VLAN Ethernet header",
    page: "\
# EtherVLANEncap(ETHERTYPE, SRC, DST [, VLAN_TCI, VLAN_PCP, keywords VLAN_ID, NATIVE_VLAN])

Adds an Ethernet header with an 802.1Q tag to each packet, or one without a tag to packets of the native VLAN.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ETHERTYPE` (in host order, such as 0x0800); `SRC`, `DST`: Ethernet addresses; `VLAN_TCI`: tag
  control information, or `ANNO` to take it from the annotation; `VLAN_PCP` (0 to 7, default 0): priority;
  `VLAN_ID` (0 to 0xFFF, default 0): identifier, if VLAN_TCI is not given; `NATIVE_VLAN` (default 0): identifier
  that gets no tag, -1 for none
- **annotations**: reads `VLAN_TCI` with `VLAN_TCI ANNO`; sets the MAC header, and the network header behind it
- **handlers**: `src`, `dst`, `ethertype`, `vlan_tci`, `vlan_id`, `vlan_pcp`, `native_vlan` (read/write)
- **drop reasons**: `no-headroom`: the packet fills its buffer
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make_encap),
};

/// The class.
pub const STRIP: Class = Class {
    name: "StripEtherVLANHeader",
    summary: "strips Ethernet or Ethernet VLAN header from front of packets",
    page: "\
# StripEtherVLANHeader([keyword NATIVE_VLAN])

Removes the Ethernet header from each packet, with its 802.1Q tag if it has one.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `NATIVE_VLAN` (default 0): identifier that the annotation gets for a packet without tag; -1 drops
  such packets
- **annotations**: sets `VLAN_TCI`
- **drop reasons**: `no-vlan-tag`: the packet has no tag, and NATIVE_VLAN is -1; `short-frame`
",
    state: StateScope::None,
    make: |cx| cx.transparent(make_strip),
    ..ENCAP
};

const FRONT_CELL: u16 = 0;
const BACK_CELL: u16 = 1;
const TCI_CELL: u16 = 2;
const NATIVE_CELL: u16 = 3;
/// Bytes of a header with a tag.
const TAGGED_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// The type of a tag (IEEE 802.1Q).
const TAG_TYPE: u16 = 0x8100;

struct EtherVlanEncap {
    header: EtherHeader,
    tag: VlanTag,
}

fn make_encap(args: &mut Args<'_>) -> Option<Program<EtherVlanEncap>> {
    let ethertype = args.mandatory_positional("ETHERTYPE", parse::u16);
    let src = args.mandatory_positional("SRC", parse::ether);
    let dst = args.mandatory_positional("DST", parse::ether);
    let tag = VlanTag::read(args);
    let header = EtherHeader { dst: dst?, src: src?, ethertype: ethertype? };
    Some(encap(EtherVlanEncap { header, tag }))
}

fn encap(encap: EtherVlanEncap) -> Program<EtherVlanEncap> {
    let program = Program::with_state("EtherVLANEncap", HANDLERS, encap, EtherVlanEncap::build);
    program.with_slow_path(&["no-headroom"], true, EtherVlanEncap::slow)
}

impl EtherVlanEncap {
    fn cells(&self) -> [u64; 4] {
        let [tci, native] = self.tag.cells();
        [self.header.first_bytes(), self.header.back(), tci, native]
    }

    fn build(&self, f: &mut Builder) {
        for (name, init) in ["front", "back"].into_iter().chain(TAG_CELLS).zip(self.cells()) {
            f.cell(name, init);
        }
        let cramped = f.slow_block("headroom");
        f.room(TAGGED_BYTES, cramped);
        let tci = f.eval(self.tag.in_program(TCI_CELL));
        let untagged = f.block();
        f.leave_if((tci & 0xfff).equals(cell(NATIVE_CELL)), untagged);
        f.push(TAGGED_BYTES);
        f.store(FIRST_BYTES, cell(FRONT_CELL));
        let back = f.eval(cell(BACK_CELL));
        f.store(BACK_ADDRESS, back >> 16);
        f.store(TAG, tci | u64::from(TAG_TYPE) << 16);
        f.store(Field::bytes(Base::Data, TAGGED_BYTES as u16 - 2, 2), back);
        set_headers(f, TAGGED_BYTES);
        f.emit(0);

        f.at(untagged);
        push_header(f, cell(FRONT_CELL), cell(BACK_CELL));
        f.emit(0);
    }

    /// Does the same as the program for a packet with too little headroom.
    fn push_onto(&self, packet: &mut Packet) -> bool {
        let tci = self.tag.of(packet);
        if self.tag.native == Some(tci & 0xfff) {
            return self.header.push_onto(packet);
        }
        if !packet.make_headroom(TAGGED_BYTES) || !packet.push(TAGGED_BYTES) {
            return false;
        }
        packet.mac = packet.data();
        packet.net = packet.data() + TAGGED_BYTES as u16;
        let mut bytes = PacketBytesMut::new(packet);
        bytes.copy_in(0, &self.header.bytes())
            && bytes.put_u16(12, TAG_TYPE)
            && bytes.put_u16(14, tci)
            && bytes.put_u16(16, self.header.ethertype)
    }

    fn slow(&mut self, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_if(0, |packet| self.push_onto(packet));
    }
}

impl Tagger for EtherVlanEncap {
    fn tag(&self) -> &VlanTag {
        &self.tag
    }

    fn tag_mut(&mut self) -> &mut VlanTag {
        &mut self.tag
    }

    fn store(&self, cells: &mut [u64]) -> Result<(), String> {
        cells.iter_mut().zip(self.cells()).for_each(|(cell, value)| *cell = value);
        Ok(())
    }
}

const HANDLERS: &[Row<EtherVlanEncap>] = &[
    Row::read_write(
        "src",
        |encap, _| Some(ether_text(encap.header.src)),
        |encap, value, cells| {
            set(&mut encap.header.src, value, parse::ether)?;
            encap.store(cells)
        },
    ),
    Row::read_write(
        "dst",
        |encap, _| Some(ether_text(encap.header.dst)),
        |encap, value, cells| {
            set(&mut encap.header.dst, value, parse::ether)?;
            encap.store(cells)
        },
    ),
    Row::read_write(
        "ethertype",
        |encap, _| Some(encap.header.ethertype.to_string()),
        |encap, value, cells| {
            set(&mut encap.header.ethertype, value, parse::u16)?;
            encap.store(cells)
        },
    ),
    EtherVlanEncap::VLAN_TCI,
    EtherVlanEncap::VLAN_ID,
    EtherVlanEncap::VLAN_PCP,
    EtherVlanEncap::NATIVE_VLAN,
];

fn make_strip(args: &mut Args<'_>) -> Option<Program> {
    let native = native_vlan(args.keyword("NATIVE_VLAN", parse::int_in(-1..=0xfff)).unwrap_or(0));
    Some(Program::new("StripEtherVLANHeader", &[], move |f| {
        let short = f.drop_block("short-frame");
        f.need(Base::Data, HEADER_BYTES, short);
        let untagged = f.aside(|f| match native {
            Some(native) => {
                f.store_anno(anno::VLAN_TCI, u64::from(native));
                f.pull(HEADER_BYTES as u64);
                f.emit(0);
            }
            None => f.drop("no-vlan-tag"),
        });
        f.check((load(BACK) & 0xffff).equals(u64::from(TAG_TYPE)), untagged);
        f.need(Base::Data, TAGGED_BYTES, short);
        f.store_anno(anno::VLAN_TCI, load(TAG) & 0xffff);
        f.pull(TAGGED_BYTES as u64);
        f.emit(0);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::tests::cramped::{all_but, through_slow_path};

    #[test]
    fn a_packet_without_headroom_is_moved_or_dropped() {
        let header = EtherHeader { dst: [1; 6], src: [2; 6], ethertype: 0x0800 };
        let mut encap = encap(EtherVlanEncap { header, tag: VlanTag { tci: Some(0x2005), native: Some(5) } });
        let (_, bytes) = through_slow_path(&mut encap, &all_but(14)).unwrap();
        assert_eq!((&bytes[..14], &bytes[14..]), (&header.bytes()[..], &all_but(14)[..]));
        encap.state.tag.native = None;
        let (packet, bytes) = through_slow_path(&mut encap, &all_but(18)).unwrap();
        assert_eq!((&bytes[..12], &bytes[12..18]), (&header.bytes()[..12], &[0x81, 0, 0x20, 5, 8, 0][..]));
        assert_eq!((&bytes[18..], packet.mac, packet.net), (&all_but(18)[..], 0, 18));
        assert!(through_slow_path(&mut encap, &all_but(17)).is_none());
    }
}
