//! `StoreEtherAddress`: writes an address into packets.

use super::header::{self, to_number};
use crate::program::Program;
use click::config::{Args, Names, Parsed, parse};
use diag::Spanned;
use element::{Class, PortCodes, Row, StateScope};
use ir::expr::{anno, cell};
use packet::anno::{ANNO_BYTES, Anno};
use packet::field::{Base, Field};

/// The class.
pub const CLASS: Class = Class {
    name: "StoreEtherAddress",
    summary: "stores Ethernet address in packet",
    page: "\
# StoreEtherAddress(ADDR, OFFSET [, keyword ANNO])

Writes an Ethernet address into each packet at byte OFFSET. Packets that are too short leave by output 1.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets that are too short are pushed out of output 1
- **arguments**: `ADDR`: the address; `OFFSET`: a number, or `src` (6) or `dst` (0); `ANNO`: offset of six
  bytes of annotation that hold the address, instead of `ADDR`
- **handlers**: `addr` (read/write)
- **drop reasons**: `short-frame`
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

/// Where the address comes from.
enum AddressSource {
    Given([u8; 6]),
    Annotation(u8),
}

fn offset(text: &Spanned, names: &dyn Names) -> Parsed<u16> {
    match text.as_str().to_ascii_lowercase().as_str() {
        "src" => Ok(6),
        "dst" => Ok(0),
        _ => parse::int_in(0..=2048)(text, names).map(|offset| offset as u16),
    }
}

fn make(args: &mut Args<'_>) -> Option<Program> {
    // With ANNO, the offset is the only positional argument.
    let source = match args.keyword("ANNO", parse::any) {
        Some(anno) => {
            let anno = args.read(&anno, parse::int_in(0..=ANNO_BYTES as i64 - 6));
            anno.map(|anno| AddressSource::Annotation(anno as u8))
        }
        None => args.mandatory_positional("ADDR", parse::ether).map(AddressSource::Given),
    };
    let offset = args.mandatory_positional("OFFSET", offset);
    let (source, offset) = (source?, offset?);
    Some(Program::new("StoreEtherAddress", HANDLERS, move |f| {
        let short = f.bad_block(1, "short-frame");
        f.need(Base::Data, usize::from(offset) + 6, short);
        let address = match source {
            AddressSource::Given(address) => cell(f.cell("addr", to_number(address))),
            // The annotation holds the address's bytes in network order, which a wide read would reverse.
            AddressSource::Annotation(start) => {
                let byte = |at| anno(Anno { offset: start + at, len: 1 });
                (1..6).fold(byte(0), |address, at| (address << 8) | byte(at))
            }
        };
        f.store(Field::bytes(Base::Data, offset, 6), address);
        f.emit(0);
    }))
}

const HANDLERS: &[Row<()>] = &[header::address("addr")];
