//! The 802.1Q tag that `VLANEncap` and `EtherVLANEncap` add: arguments, cells of the program, handlers.

use click::config::{Args, parse};
use element::Row;
use element::value::written;
use ir::Expr;
use ir::expr::{anno, cell};
use packet::anno;
use packet::field::{Base, Field};
use shm::Packet;

/// Bytes of a tag.
pub(super) const TAG_BYTES: usize = 4;
/// Type and tag control information, behind the addresses.
pub(super) const TAG: Field = Field::bytes(Base::Data, 12, 4);
/// The names of the cells that hold a tag.
pub(super) const TAG_CELLS: [&str; 2] = ["vlan_tci", "native_vlan"];
/// In a cell: each identifier gets a tag.
const NO_NATIVE: u64 = u64::MAX;

/// A tag, and the packets that get none.
pub(super) struct VlanTag {
    /// Tag control information; `None`: from the annotation.
    pub tci: Option<u16>,
    /// The identifier that gets no tag.
    pub native: Option<u16>,
}

impl VlanTag {
    /// Reads `VLAN_TCI`, `VLAN_PCP`, `VLAN_ID` and `NATIVE_VLAN`.
    pub fn read(args: &mut Args<'_>) -> VlanTag {
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
        VlanTag { tci, native: native_vlan(native) }
    }

    /// What the program's cells hold, in the order of [`TAG_CELLS`].
    pub fn cells(&self) -> [u64; 2] {
        [u64::from(self.tci.unwrap_or(0)), self.native.map_or(NO_NATIVE, u64::from)]
    }

    /// The tag control information in a program; `first` is the first of the cells.
    pub fn in_program(&self, first: u16) -> Expr {
        match self.tci {
            Some(_) => cell(first),
            None => anno(anno::VLAN_TCI),
        }
    }

    /// The tag control information of a packet.
    pub fn of(&self, packet: &Packet) -> u16 {
        self.tci.unwrap_or_else(|| anno::VLAN_TCI.load(&packet.anno) as u16)
    }
}

/// The identifier that gets no tag; `None` for a negative number.
pub(super) fn native_vlan(number: i64) -> Option<u16> {
    u16::try_from(number).ok()
}

/// A tag with another identifier.
pub(super) fn with_id(tci: u16, value: &str) -> Result<u16, String> {
    Ok(tci & !0xfff | written(value, parse::int_in(0..=0xfff))? as u16)
}

/// A tag with another priority.
pub(super) fn with_pcp(tci: u16, value: &str) -> Result<u16, String> {
    Ok(tci & 0x1fff | (written(value, parse::int_in(0..=7))? as u16) << 13)
}

/// An element that adds a tag, and its handlers about it.
pub(super) trait Tagger: Sized + 'static {
    fn tag(&self) -> &VlanTag;

    fn tag_mut(&mut self) -> &mut VlanTag;

    /// Writes the values that handlers change into the program's cells.
    fn store(&self, cells: &mut [u64]) -> Result<(), String>;

    fn set_tci(
        &mut self,
        cells: &mut [u64],
        new: fn(u16, &str) -> Result<u16, String>,
        value: &str,
    ) -> Result<(), String> {
        let tag = self.tag_mut();
        tag.tci = Some(new(tag.tci.ok_or("the tag comes from the annotation")?, value)?);
        self.store(cells)
    }

    const VLAN_TCI: Row<Self> = Row::read_write(
        "vlan_tci",
        |encap, _| Some(encap.tag().tci.map_or_else(|| "ANNO".to_string(), |tci| tci.to_string())),
        |encap, value, cells| encap.set_tci(cells, |_, value| written(value, parse::u16), value),
    );
    const VLAN_ID: Row<Self> = Row::read_write(
        "vlan_id",
        |encap, _| Some((encap.tag().tci.unwrap_or(0) & 0xfff).to_string()),
        |encap, value, cells| encap.set_tci(cells, with_id, value),
    );
    const VLAN_PCP: Row<Self> = Row::read_write(
        "vlan_pcp",
        |encap, _| Some((encap.tag().tci.unwrap_or(0) >> 13).to_string()),
        |encap, value, cells| encap.set_tci(cells, with_pcp, value),
    );
    const NATIVE_VLAN: Row<Self> = Row::read_write(
        "native_vlan",
        |encap, _| Some(encap.tag().native.map_or_else(|| "-1".to_string(), |native| native.to_string())),
        |encap, value, cells| {
            encap.tag_mut().native = native_vlan(written(value, parse::int_in(-1..=0xfff))?);
            encap.store(cells)
        },
    );
}
