//! `GetIPAddress` and `SetIPAddress`: set an address annotation, from the packet or to a constant.

use super::argument::offset;
use super::value;
use crate::program::Program;
use click::config::{Args, parse};
use element::value::{annotation, set_cell, written};
use element::{BoxElement, Class, Configure, PortCodes, Row, StateScope};
use ir::expr::{cell, load};
use packet::anno;
use packet::field::{Base, Field, IP_DST, IP_SRC};

/// `GetIPAddress`.
pub const GET: Class = Class {
    name: "GetIPAddress",
    summary: "sets destination IP address annotation from packet data",
    page: "\
# GetIPAddress(OFFSET [, ANNO, keyword IP])

Copies the 4 bytes at OFFSET to the destination address annotation. OFFSET is usually 16, where the
destination is in an IP packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET`, bytes from the packet's start; `ANNO` (default `DST_IP`): another annotation
  of 4 bytes; `IP`: `src` or `dst`, in place of OFFSET: that address of the IP header
- **annotations**: sets `ANNO`; with `IP` needs the network header
- **drop reasons**: `short-packet`: the bytes are not there
- **difference**: packets that are too short are dropped, because Click reads the bytes behind them
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: make_get,
};

/// `SetIPAddress`.
pub const SET: Class = Class {
    name: "SetIPAddress",
    summary: "sets destination IP address annotations",
    page: "\
# SetIPAddress(IPADDR [, keyword ANNO])

Sets the destination address annotation to IPADDR.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `IPADDR`; `ANNO` (default `DST_IP`): another annotation of 4 bytes
- **annotations**: sets `ANNO`
- **handlers**: `addr` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make_set),
};

fn make_get(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let span = cx.span;
    let mut args = cx.args();
    let offset = args.positional("OFFSET", offset);
    let anno = args.positional("ANNO", annotation(4)).unwrap_or(anno::DST_IP);
    let header = args.keyword("IP", parse::keyword(&[("src", IP_SRC), ("dst", IP_DST)]));
    if !args.finish() {
        return None;
    }
    let field = match (offset, header) {
        (Some(offset), None) => Field::bytes(Base::Data, offset, 4),
        (None, Some(field)) => field,
        _ => {
            cx.error(span, "one of OFFSET and IP must be set, and only one");
            return None;
        }
    };
    Some(BoxElement::transparent(Program::new("GetIPAddress", &[], move |f| {
        let short = f.drop_block("short-packet");
        f.need(field.base, usize::from(field.end_byte()), short);
        f.store_anno(anno, load(field));
        f.emit(0);
    })))
}

fn make_set(args: &mut Args<'_>) -> Option<Program> {
    let address = args.mandatory_positional("IPADDR", parse::ip4);
    let anno = args.keyword("ANNO", annotation(4)).unwrap_or(anno::DST_IP);
    let address = u32::from(address?);
    Some(Program::new("SetIPAddress", HANDLERS, move |f| {
        let address = f.cell("addr", u64::from(address));
        f.store_anno(anno, cell(address));
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[Row::read_write(
    "addr",
    |_, cells| cells.first().map(|address| value::show_address(*address)),
    |_, value, cells| set_cell(cells, 0, written(value, value::address)?),
)];
