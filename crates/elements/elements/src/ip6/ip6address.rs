//! `GetIP6Address`, `SetIP6Address`, `StoreIP6Address`: addresses between packets and annotations.

use super::address::{HIGH, LOW, fields, halves, store};
use crate::ip::argument::offset;
use click::config::{Names, Parsed, parse};
use diag::Spanned;
use element::{BoxElement, Class, Configure, Element, PortCodes, StateScope, Transparent};
use ir::Builder;
use ir::expr::{anno, load};
use packet::field::{Base, Field};
use std::net::Ipv6Addr;

/// `GetIP6Address`.
pub const GET: Class = Class {
    name: "GetIP6Address",
    summary: "sets destination IPv6 address annotation from packet data",
    page: "\
# GetIP6Address(OFFSET)

Copies the 16 bytes at OFFSET to the destination address annotation. OFFSET is usually 24, where the
destination stands in an IPv6 packet.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `OFFSET`, bytes from the packet's start
- **annotations**: sets `DST_IP6`
- **drop reasons**: `short-packet`: the bytes are not there
- **difference**: packets that are too short are dropped, because Click reads what stands behind them
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(|args| Some(Get(args.mandatory_positional("OFFSET", offset)?))),
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
    make: |cx: &mut Configure<'_>| {
        cx.transparent(|args| Some(Set(args.mandatory_positional("IPADDR", parse::ip6)?)))
    },
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
    make: make_store,
    ..GET
};

struct Get(u16);

impl Transparent for Get {
    fn build(&self, f: &mut Builder) {
        f.name("GetIP6Address");
        let short = f.drop_block("short-packet");
        f.need(Base::Data, usize::from(self.0) + 16, short);
        let (high, low) = fields(Base::Data, self.0);
        store(f, load(high), load(low));
        f.emit(0);
    }
}

impl Element for Get {}

struct Set(Ipv6Addr);

impl Transparent for Set {
    fn build(&self, f: &mut Builder) {
        f.name("SetIP6Address");
        let (high, low) = halves(self.0);
        store(f, high, low);
        f.emit(0);
    }
}

impl Element for Set {}

struct Store {
    address: Option<Ipv6Addr>,
    high: Field,
    low: Field,
}

fn place(text: &Spanned, names: &dyn Names) -> Parsed<(Field, Field)> {
    match text.as_str().to_ascii_lowercase().as_str() {
        "src" => Ok(fields(Base::Net, 8)),
        "dst" => Ok(fields(Base::Net, 24)),
        _ => offset(text, names).map(|offset| fields(Base::Data, offset)),
    }
}

fn make_store(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let count = click::config::split_args(cx.config).len();
    cx.transparent(|args| {
        let address = if count > 1 { args.mandatory_positional("ADDR", parse::ip6) } else { None };
        let place = args.mandatory_positional("OFFSET", place);
        let (high, low) = place?;
        Some(Store { address, high, low })
    })
}

impl Transparent for Store {
    fn build(&self, f: &mut Builder) {
        f.name("StoreIP6Address");
        let bad = f.bad_block(1, "out-of-range");
        let done = f.aside(|f| f.emit(0));
        let (high, low) = match self.address.map(halves) {
            Some((high, low)) => (f.eval(high), f.eval(low)),
            None => (f.eval(anno(HIGH)), f.eval(anno(LOW))),
        };
        if self.address.is_none() {
            f.check(high | low, done);
        }
        let whole = if self.high.base == Base::Net { 40 } else { self.low.end_byte() };
        f.need(self.high.base, usize::from(whole), bad);
        f.store(self.high, high);
        f.store(self.low, low);
        f.jump(done);
    }
}

impl Element for Store {}
