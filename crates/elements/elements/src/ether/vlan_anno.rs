//! `SetVLANAnno`: sets the VLAN annotation.

use click::config::parse;
use element::class::{Class, StateScope};
use element::configure::{Configure, Shape};
use element::element::Element;
use element::handler::Handler;
use element::value::{no_such_handler, written};
use ir::verify::VerifyError;
use ir::{Builder, Inst, Verified};
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
  (0 to 0xFFF, default 0): identifier, where VLAN_TCI is not given
- **annotations**: sets `VLAN_TCI`
- **handlers**: `vlan_tci`, `vlan_id`, `vlan_pcp` (read/write)
",
    ports: "1/1",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::PerWorker,
    make,
};

struct SetVlanAnno {
    tci: u16,
}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let tci = args.positional("VLAN_TCI", parse::u16);
    let pcp = args.positional("VLAN_PCP", parse::int_in(0..=7)).unwrap_or(0) as u16;
    let id = args.keyword("VLAN_ID", parse::int_in(0..=0xfff)).unwrap_or(0) as u16;
    let tci = tci.unwrap_or(id) | pcp << 13;
    args.finish().then(|| Box::new(SetVlanAnno { tci }) as Box<dyn Element>)
}

impl Element for SetVlanAnno {
    fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let mut f = Builder::new("SetVLANAnno", shape.outputs);
        let tci = f.cell("vlan_tci", u64::from(self.tci));
        let tci = f.value(Inst::CellLoad(tci));
        f.store_anno(anno::VLAN_TCI, tci);
        f.emit(0);
        Some(f.finish())
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read_write("vlan_tci"),
                Handler::read_write("vlan_id"),
                Handler::read_write("vlan_pcp"),
            ]
        }
    }

    fn read(&self, handler: &str, cells: &[u64]) -> Option<String> {
        let tci = cells.first()?;
        match handler {
            "vlan_tci" => Some(tci.to_string()),
            "vlan_id" => Some((tci & 0xfff).to_string()),
            "vlan_pcp" => Some((tci >> 13).to_string()),
            _ => None,
        }
    }

    fn write(&mut self, handler: &str, value: &str, cells: &mut [u64]) -> Result<(), String> {
        let Some(cell) = cells.first_mut() else { return no_such_handler(handler) };
        *cell = match handler {
            "vlan_tci" => u64::from(written(value, parse::u16)?),
            "vlan_id" => *cell & !0xfff | written(value, parse::int_in(0..=0xfff))? as u64,
            "vlan_pcp" => *cell & 0x1fff | (written(value, parse::int_in(0..=7))? as u64) << 13,
            _ => return no_such_handler(handler),
        };
        Ok(())
    }
}
