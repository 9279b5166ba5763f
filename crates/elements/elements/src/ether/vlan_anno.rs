//! `SetVLANAnno`: sets the VLAN annotation.

use super::vlan_tag::{with_id, with_pcp};
use crate::program::Program;
use click::config::{Args, parse};
use element::value::set_cell;
use element::{Class, PortCodes, Row, StateScope};
use ir::expr::cell;
use packet::anno;

/// The class.
pub const CLASS: Class = Class {
    name: "SetVLANAnno",
    summary: "sets VLAN annotation",
    page: "\
# SetVLANAnno([VLAN_TCI, VLAN_PCP, keyword VLAN_ID])

Sets each packet's VLAN annotation.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `VLAN_TCI`: tag control information; `VLAN_PCP` (0 to 7, default 0): priority; `VLAN_ID`
  (0 to 0xFFF, default 0): identifier, if VLAN_TCI is not given
- **annotations**: sets `VLAN_TCI`
- **handlers**: `vlan_tci`, `vlan_id`, `vlan_pcp` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let tci = args.positional("VLAN_TCI", parse::u16);
    let pcp = args.positional("VLAN_PCP", parse::int_in(0..=7)).unwrap_or(0) as u16;
    let id = args.keyword("VLAN_ID", parse::int_in(0..=0xfff)).unwrap_or(0) as u16;
    let tci = u64::from(tci.unwrap_or(id) | pcp << 13);
    Some(Program::new("SetVLANAnno", HANDLERS, move |f| {
        let tci = f.cell("vlan_tci", tci);
        f.store_anno(anno::VLAN_TCI, cell(tci));
        f.emit(0);
    }))
}

/// Changes the tag in the program's cell.
fn change(cells: &mut [u64], new: impl FnOnce(u16) -> Result<u16, String>) -> Result<(), String> {
    let tci = *cells.first().unwrap_or(&0) as u16;
    set_cell(cells, 0, new(tci)?)
}

const HANDLERS: &[Row<()>] = &[
    Row::cell::<0, 0xffff>("vlan_tci"),
    Row::read_write(
        "vlan_id",
        |_, cells| Some((cells.first()? & 0xfff).to_string()),
        |_, value, cells| change(cells, |tci| with_id(tci, value)),
    ),
    Row::read_write(
        "vlan_pcp",
        |_, cells| Some((cells.first()? >> 13).to_string()),
        |_, value, cells| change(cells, |tci| with_pcp(tci, value)),
    ),
];
