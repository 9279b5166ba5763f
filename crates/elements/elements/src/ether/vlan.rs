//! `VLANEncap` and `VLANDecap`: add a VLAN tag to Ethernet frames and remove it.

use super::header::{BACK_ADDRESS, FIRST_BYTES, HEADER_BYTES, set_headers};
use super::vlan_tag::{TAG, TAG_BYTES, TAG_CELLS, Tagger, VlanTag};
use crate::program::Program;
use click::config::{Args, parse};
use element::value::set;
use element::{Class, PortCodes, Row, StateScope, Work};
use ir::expr::{cell, load};
use ir::{Builder, Expr};
use packet::access::Access;
use packet::anno;
use packet::field::{Base, Field};
use shm::burst::Batch;

/// The class.
pub const VLAN_ENCAP: Class = Class {
    name: "VLANEncap",
    summary: "adds VLAN tag to Ethernet packets",
    page: "\
# VLANEncap([VLAN_TCI, VLAN_PCP, keywords VLAN_ID, NATIVE_VLAN, ETHERTYPE])

Adds an 802.1Q tag to each Ethernet frame. Frames of the native VLAN stay as they are.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `VLAN_TCI`: tag control information, or `ANNO` to take it from the annotation; `VLAN_PCP`
  (0 to 7, default 0): priority; `VLAN_ID` (0 to 0xFFF, default 0): identifier, if VLAN_TCI is not given;
  `NATIVE_VLAN` (default 0): identifier that gets no tag, -1 for none; `ETHERTYPE` (default 0x8100)
- **annotations**: reads `VLAN_TCI` with `VLAN_TCI ANNO`; sets the MAC header, and the network header
  behind it
- **handlers**: `vlan_tci`, `vlan_id`, `vlan_pcp`, `native_vlan`, `ethertype` (read/write)
- **drop reasons**: `short-frame`: no two addresses in it; `no-headroom`: the frame fills its buffer
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make_encap),
};

/// The class.
pub const VLAN_DECAP: Class = Class {
    name: "VLANDecap",
    summary: "strips VLAN tag from Ethernet packets",
    page: "\
# VLANDecap([ANNO, keyword ETHERTYPE])

Removes the outermost VLAN tag from each Ethernet frame that has one.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `ANNO` (default true): whether the annotation is set; `ETHERTYPE` (default 0x8100): the
  type of a tag
- **annotations**: sets `VLAN_TCI` (0 where there was no tag), the MAC header, and the network header
  behind it
- **difference**: the annotation holds the number in host order, as all annotations do here
",
    state: StateScope::None,
    make: |cx| cx.transparent(make_decap),
    ..VLAN_ENCAP
};

const TCI_CELL: u16 = 0;
const NATIVE_CELL: u16 = 1;
const TYPE_CELL: u16 = 2;

struct VlanEncap {
    tag: VlanTag,
    ethertype: u16,
}

fn make_encap(args: &mut Args<'_>) -> Option<Program<VlanEncap>> {
    let tag = VlanTag::read(args);
    let ethertype = args.keyword("ETHERTYPE", parse::u16).unwrap_or(0x8100);
    Some(encap(VlanEncap { tag, ethertype }))
}

fn encap(encap: VlanEncap) -> Program<VlanEncap> {
    let program = Program::with_state("VLANEncap", HANDLERS, encap, VlanEncap::build);
    program.with_slow_path(&["no-headroom"], true, VlanEncap::slow)
}

impl VlanEncap {
    fn cells(&self) -> [u64; 3] {
        let [tci, native] = self.tag.cells();
        [tci, native, u64::from(self.ethertype)]
    }

    fn build(&self, f: &mut Builder) {
        for (name, init) in TAG_CELLS.into_iter().chain(["ethertype"]).zip(self.cells()) {
            f.cell(name, init);
        }
        let untagged = f.aside(|f| {
            set_headers(f, HEADER_BYTES);
            f.emit(0);
        });
        let cramped = f.slow_block("headroom");
        let short = f.drop_block("short-frame");
        f.need(Base::Data, 12, short);
        let tci = f.eval(self.tag.in_program(TCI_CELL));
        f.leave_if((tci & 0xfff).equals(cell(NATIVE_CELL)), untagged);
        f.room(TAG_BYTES, cramped);
        let (front, back) = (f.eval(load(FIRST_BYTES)), f.eval(load(BACK_ADDRESS)));
        f.push(TAG_BYTES);
        f.store(FIRST_BYTES, front);
        f.store(BACK_ADDRESS, back);
        f.store(TAG, (cell(TYPE_CELL) << 16) | tci);
        set_headers(f, HEADER_BYTES + TAG_BYTES);
        f.emit(0);
    }

    fn slow(&mut self, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let mut addresses = [0; 12];
            let whole = batch.bytes(index).copy_out(0, &mut addresses);
            let packet = batch.packet_mut(index);
            if !whole || !packet.make_headroom(TAG_BYTES) || !packet.push(TAG_BYTES) {
                batch.drop(index, 0);
                continue;
            }
            let tci = self.tag.of(packet);
            packet.mac = packet.data();
            packet.net = packet.data() + (HEADER_BYTES + TAG_BYTES) as u16;
            let mut bytes = batch.bytes_mut(index);
            let written =
                bytes.copy_in(0, &addresses) && bytes.put_u16(12, self.ethertype) && bytes.put_u16(14, tci);
            debug_assert!(written, "the packet is as long as the addresses and the tag");
            batch.emit(index, 0);
        }
    }
}

impl Tagger for VlanEncap {
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

const HANDLERS: &[Row<VlanEncap>] = &[
    VlanEncap::VLAN_TCI,
    VlanEncap::VLAN_ID,
    VlanEncap::VLAN_PCP,
    VlanEncap::NATIVE_VLAN,
    Row::read_write(
        "ethertype",
        |encap, _| Some(encap.ethertype.to_string()),
        |encap, value, cells| {
            set(&mut encap.ethertype, value, parse::u16)?;
            encap.store(cells)
        },
    ),
];

fn make_decap(args: &mut Args<'_>) -> Option<Program> {
    let sets_anno = args.positional("ANNO", parse::bool).unwrap_or(true);
    let ethertype = u64::from(args.keyword("ETHERTYPE", parse::u16).unwrap_or(0x8100));
    let leave = move |f: &mut Builder, tci: Expr| {
        set_headers(f, HEADER_BYTES);
        if sets_anno {
            f.store_anno(anno::VLAN_TCI, tci);
        }
        f.emit(0);
    };
    Some(Program::new("VLANDecap", &[], move |f| {
        let untagged = f.aside(|f| leave(f, 0.into()));
        f.need(Base::Data, HEADER_BYTES + TAG_BYTES, untagged);
        let tag = f.eval(load(TAG));
        f.check((tag >> 16).equals(ethertype), untagged);
        // The addresses move back over the tag.
        let (front, back) = (f.eval(load(FIRST_BYTES)), f.eval(load(BACK_ADDRESS)));
        f.store(Field::bytes(Base::Data, TAG_BYTES as u16, 8), front);
        f.store(Field::bytes(Base::Data, TAG_BYTES as u16 + 8, 4), back);
        f.pull(TAG_BYTES as u64);
        leave(f, tag & 0xffff);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::tests::cramped::{all_but, through_slow_path};

    #[test]
    fn a_frame_without_headroom_is_moved_or_dropped() {
        let mut encap =
            encap(VlanEncap { tag: VlanTag { tci: Some(0x2005), native: None }, ethertype: 0x8100 });
        let (packet, bytes) = through_slow_path(&mut encap, &all_but(4)).unwrap();
        let frame = all_but(4);
        assert_eq!((&bytes[..12], &bytes[12..16]), (&frame[..12], &[0x81, 0, 0x20, 5][..]));
        assert_eq!((&bytes[16..], packet.data()), (&frame[12..], 0));
        assert_eq!((packet.mac, packet.net), (0, 18));
        assert!(through_slow_path(&mut encap, &all_but(3)).is_none());
        encap.state.tag.tci = None;
        let (_, bytes) = through_slow_path(&mut encap, &[0; 60]).unwrap();
        assert_eq!(bytes[12..16], [0x81, 0, 0, 0]);
    }
}
