//! `GetIP6Address`, `SetIP6Address`, `StoreIP6Address`: addresses between packets and annotations.

use super::address::{HIGH, LOW, fields, halves, store};
use crate::ip::argument::offset;
use crate::program::Program;
use click::config::{Args, Names, Parsed, parse};
use diag::Spanned;
use element::{Class, PortCodes, StateScope};
use ir::expr::{anno, load};
use packet::field::{Base, Field};

/// `GetIP6Address`.
pub const GET: Class = Class {
    name: "GetIP6Address",
    summary: "sets destination IPv6 address annotation from packet data",
    page: "\
# GetIP6Address(OFFSET)

Copies the 16 bytes at OFFSET to the destination address annotation. OFFSET is usually 24, where the
destination is in an IPv6 packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET`, bytes from the packet's start
- **annotations**: sets `DST_IP6`
- **drop reasons**: `short-packet`: the bytes are not there
- **difference**: packets that are too short are dropped, because Click reads the bytes behind them
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make_get),
};

/// `SetIP6Address`.
pub const SET: Class = Class {
    name: "SetIP6Address",
    summary: "sets destination IPv6 address annotations",
    page: "\
# SetIP6Address(IPADDR)

Sets the destination address annotation to IPADDR.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `IPADDR`
- **annotations**: sets `DST_IP6`
",
    make: |cx| cx.transparent(make_set),
    ..GET
};

/// `StoreIP6Address`.
pub const STORE: Class = Class {
    name: "StoreIP6Address",
    summary: "stores IPv6 address in packet",
    page: "\
# StoreIP6Address(OFFSET), StoreIP6Address(ADDR, OFFSET)

The first form writes the destination address annotation into the packet at OFFSET, unless the
annotation is 0. The second form writes ADDR. OFFSET may be `src` or `dst`: that address of the IPv6
header. No checksum is updated.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets that are too short are pushed out of output 1
- **annotations**: the first form reads `DST_IP6`; `src` and `dst` need the network header
- **drop reasons**: `out-of-range`: the packet does not reach to OFFSET, or has no IPv6 header
- **difference**: a numeric OFFSET counts from the packet's start, as Click's page says (its code counts
  from the IPv6 header)
",
    codes: PortCodes::CHECK,
    make: |cx| {
        let is_given = click::config::split_args(cx.config).len() > 1;
        cx.transparent(|args| make_store(args, is_given))
    },
    ..GET
};

fn make_get(args: &mut Args<'_>) -> Option<Program> {
    let offset = args.mandatory_positional("OFFSET", offset)?;
    Some(Program::new("GetIP6Address", &[], move |f| {
        let short = f.drop_block("short-packet");
        f.need(Base::Data, usize::from(offset) + 16, short);
        let (high, low) = fields(Base::Data, offset);
        store(f, load(high), load(low));
        f.emit(0);
    }))
}

fn make_set(args: &mut Args<'_>) -> Option<Program> {
    let (high, low) = halves(args.mandatory_positional("IPADDR", parse::ip6)?);
    Some(Program::new("SetIP6Address", &[], move |f| {
        store(f, high, low);
        f.emit(0);
    }))
}

fn place(text: &Spanned, names: &dyn Names) -> Parsed<(Field, Field)> {
    match text.as_str().to_ascii_lowercase().as_str() {
        "src" => Ok(fields(Base::Net, 8)),
        "dst" => Ok(fields(Base::Net, 24)),
        _ => offset(text, names).map(|offset| fields(Base::Data, offset)),
    }
}

fn make_store(args: &mut Args<'_>, is_given: bool) -> Option<Program> {
    let given = if is_given { args.mandatory_positional("ADDR", parse::ip6).map(halves) } else { None };
    let (high_field, low_field) = args.mandatory_positional("OFFSET", place)?;
    Some(Program::new("StoreIP6Address", &[], move |f| {
        let bad = f.bad_block(1, "out-of-range");
        let done = f.aside(|f| f.emit(0));
        let (high, low) = match given {
            Some((high, low)) => (f.eval(high), f.eval(low)),
            None => (f.eval(anno(HIGH)), f.eval(anno(LOW))),
        };
        if given.is_none() {
            f.check(high | low, done);
        }
        let whole = if high_field.base == Base::Net { 40 } else { low_field.end_byte() };
        f.need(high_field.base, usize::from(whole), bad);
        f.store(high_field, high);
        f.store(low_field, low);
        f.jump(done);
    }))
}
