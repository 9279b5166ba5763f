//! `VLANEncap` and `VLANDecap`: add a VLAN tag to Ethernet frames and remove it.

use super::header::{BACK_ADDRESS, FIRST_BYTES, HEADER_BYTES, set_headers};
use crate::program::Program;
use click::config::{Args, parse};
use element::value::{set, written};
use element::{Class, PortCodes, Row, StateScope, Work};
use ir::expr::{anno, cell, load};
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

/// Bytes of a tag.
pub(super) const TAG_BYTES: usize = 4;
/// Type and tag control information, behind the addresses.
pub(super) const TAG: Field = Field::bytes(Base::Data, 12, 4);
const NO_NATIVE: u64 = u64::MAX;
const TCI_CELL: usize = 0;
const NATIVE_CELL: usize = 1;
const TYPE_CELL: usize = 2;

struct VlanEncap {
    /// `None`: from the annotation.
    tci: Option<u16>,
    native: Option<u16>,
    ethertype: u16,
}

/// The identifier that gets no tag; `None` for a negative number.
pub(super) fn native_vlan(number: i64) -> Option<u16> {
    u16::try_from(number).ok()
}

fn make_encap(args: &mut Args<'_>) -> Option<Program<VlanEncap>> {
    let (tci, native) = read_tag(args);
    let ethertype = args.keyword("ETHERTYPE", parse::u16).unwrap_or(0x8100);
    Some(encap(VlanEncap { tci, native, ethertype }))
}

/// Reads the tag, or `None` if the annotation has it, and the identifier that gets no tag.
pub(super) fn read_tag(args: &mut Args<'_>) -> (Option<u16>, Option<u16>) {
    let given = args.positional("VLAN_TCI", |text, names| match text.as_str() {
        "ANNO" => Ok(None),
        _ => parse::u16(text, names).map(Some),
    });
    let pcp = args.positional("VLAN_PCP", parse::int_in(0..=7)).unwrap_or(0) as u16;
    let id = args.keyword("VLAN_ID", parse::int_in(0..=0xfff)).unwrap_or(0) as u16;
    let native = args.keyword("NATIVE_VLAN", parse::int_in(-1..=0xfff)).unwrap_or(0);
    let tci = match given {
        Some(None) => None,
        Some(Some(tci)) => Some(tci | pcp << 13),
        None => Some(id | pcp << 13),
    };
    (tci, native_vlan(native))
}

fn encap(encap: VlanEncap) -> Program<VlanEncap> {
    let program = Program::with_state("VLANEncap", HANDLERS, encap, VlanEncap::build);
    program.with_slow_path(&["no-headroom"], true, VlanEncap::slow)
}

impl VlanEncap {
    fn cells(&self) -> [u64; 3] {
        let native = self.native.map_or(NO_NATIVE, u64::from);
        [u64::from(self.tci.unwrap_or(0)), native, u64::from(self.ethertype)]
    }

    fn build(&self, f: &mut Builder) {
        for (name, init) in ["vlan_tci", "native_vlan", "ethertype"].into_iter().zip(self.cells()) {
            f.cell(name, init);
        }
        let untagged = f.aside(|f| {
            set_headers(f, HEADER_BYTES);
            f.emit(0);
        });
        let cramped = f.slow_block("headroom");
        let short = f.drop_block("short-frame");
        f.need(Base::Data, 12, short);
        let tci = f.eval(match self.tci {
            Some(_) => cell(TCI_CELL as u16),
            None => anno(anno::VLAN_TCI),
        });
        f.leave_if((tci & 0xfff).equals(cell(NATIVE_CELL as u16)), untagged);
        f.room(TAG_BYTES, cramped);
        let (front, back) = (f.eval(load(FIRST_BYTES)), f.eval(load(BACK_ADDRESS)));
        f.push(TAG_BYTES);
        f.store(FIRST_BYTES, front);
        f.store(BACK_ADDRESS, back);
        f.store(TAG, (cell(TYPE_CELL as u16) << 16) | tci);
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
            let tci = self.tci.unwrap_or_else(|| anno::VLAN_TCI.load(&packet.anno) as u16);
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

/// A tag with another identifier.
pub(super) fn with_id(tci: u16, value: &str) -> Result<u16, String> {
    Ok(tci & !0xfff | written(value, parse::int_in(0..=0xfff))? as u16)
}

/// A tag with another priority.
pub(super) fn with_pcp(tci: u16, value: &str) -> Result<u16, String> {
    Ok(tci & 0x1fff | (written(value, parse::int_in(0..=7))? as u16) << 13)
}

impl VlanEncap {
    /// Writes the values that handlers change into the program's cells.
    fn store(&self, cells: &mut [u64]) -> Result<(), String> {
        cells.iter_mut().zip(self.cells()).for_each(|(cell, value)| *cell = value);
        Ok(())
    }

    fn set_tci(
        &mut self,
        cells: &mut [u64],
        new: impl FnOnce(u16) -> Result<u16, String>,
    ) -> Result<(), String> {
        self.tci = Some(new(self.tci.ok_or("the tag comes from the annotation")?)?);
        self.store(cells)
    }
}

const HANDLERS: &[Row<VlanEncap>] = &[
    Row::read_write(
        "vlan_tci",
        |encap, _| Some(encap.tci.map_or_else(|| "ANNO".to_string(), |tci| tci.to_string())),
        |encap, value, cells| encap.set_tci(cells, |_| written(value, parse::u16)),
    ),
    Row::read_write(
        "vlan_id",
        |encap, _| Some((encap.tci.unwrap_or(0) & 0xfff).to_string()),
        |encap, value, cells| encap.set_tci(cells, |tci| with_id(tci, value)),
    ),
    Row::read_write(
        "vlan_pcp",
        |encap, _| Some((encap.tci.unwrap_or(0) >> 13).to_string()),
        |encap, value, cells| encap.set_tci(cells, |tci| with_pcp(tci, value)),
    ),
    Row::read_write(
        "native_vlan",
        |encap, _| Some(encap.native.map_or_else(|| "-1".to_string(), |native| native.to_string())),
        |encap, value, cells| {
            encap.native = native_vlan(written(value, parse::int_in(-1..=0xfff))?);
            encap.store(cells)
        },
    ),
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
        let mut encap = encap(VlanEncap { tci: Some(0x2005), native: None, ethertype: 0x8100 });
        let (packet, bytes) = through_slow_path(&mut encap, &all_but(4)).unwrap();
        let frame = all_but(4);
        assert_eq!((&bytes[..12], &bytes[12..16]), (&frame[..12], &[0x81, 0, 0x20, 5][..]));
        assert_eq!((&bytes[16..], packet.data()), (&frame[12..], 0));
        assert_eq!((packet.mac, packet.net), (0, 18));
        assert!(through_slow_path(&mut encap, &all_but(3)).is_none());
        encap.state.tci = None;
        let (_, bytes) = through_slow_path(&mut encap, &[0; 60]).unwrap();
        assert_eq!(bytes[12..16], [0x81, 0, 0, 0]);
    }
}
