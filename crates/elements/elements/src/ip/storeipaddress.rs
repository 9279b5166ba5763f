//! `StoreIPAddress`: writes an address into packets.

use super::argument;
use crate::program::Program;
use click::config::{Args, Names, Parsed, parse};
use diag::Spanned;
use element::{Class, PortCodes, StateScope};
use ir::expr::{anno, csum_update, load, select};
use ir::{BlockId, Builder, Value};
use packet::anno;
use packet::field::{Base, Field, IP_DST, IP_FRAG, IP_PROTO, IP_SRC, IP_SUM, TCP_SUM, UDP_SUM};

/// The class.
pub const CLASS: Class = Class {
    name: "StoreIPAddress",
    summary: "stores IP address in packet",
    page: "\
# StoreIPAddress(OFFSET), StoreIPAddress(ADDR, OFFSET)

The first form writes the destination address annotation into the packet at OFFSET, unless the
annotation is 0. The second form writes ADDR, which may be 0. OFFSET may be `src` or `dst`: that
address of the IP header; the header checksum and the TCP or UDP checksum are updated then. Otherwise
no checksum is.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets that are too short are pushed out of output 1
- **annotations**: the first form reads `DST_IP`; `src` and `dst` need the network header, and the
  transport header where a transport checksum is to be updated
- **drop reasons**: `out-of-range`: the packet does not reach to OFFSET, or has no IP header
- **difference**: with an annotation of 0, `src` and `dst` leave the packet alone, because Click's page
  says so (its code writes 0)
",
    codes: PortCodes::CHECK,
    state: StateScope::None,
    make: |cx| {
        let is_given = click::config::split_args(cx.config).len() > 1;
        cx.transparent(|args| make(args, is_given))
    },
};

fn place(text: &Spanned, names: &dyn Names) -> Parsed<Field> {
    match text.as_str().to_ascii_lowercase().as_str() {
        "src" => Ok(IP_SRC),
        "dst" => Ok(IP_DST),
        _ => argument::offset(text, names).map(|offset| Field::bytes(Base::Data, offset, 4)),
    }
}

fn make(args: &mut Args<'_>, is_given: bool) -> Option<Program> {
    let given = if is_given { args.mandatory_positional("ADDR", parse::ip4).map(u32::from) } else { None };
    let field = args.mandatory_positional("OFFSET", place)?;
    Some(Program::new("StoreIPAddress", &[], move |f| {
        let bad = f.bad_block(1, "out-of-range");
        let done = f.aside(|f| f.emit(0));
        let address = match given {
            Some(address) => f.eval(u64::from(address)),
            None => f.eval(anno(anno::DST_IP)),
        };
        if given.is_none() {
            f.check(address, done);
        }
        if field.base == Base::Data {
            f.need(Base::Data, usize::from(field.end_byte()), bad);
            f.store(field, address);
            f.jump(done);
        } else {
            f.need(Base::Net, 20, bad);
            replace_address(f, field, address, done);
        }
    }))
}

/// Writes an address of the IP header, updates the checksums that cover it, and continues at `done`. The
/// header must be there.
fn replace_address(f: &mut Builder, field: Field, address: Value, done: BlockId) {
    let old = f.eval(load(field));
    f.replace(field, address, IP_SUM);
    f.leave_if(load(IP_FRAG), done);
    let protocol = f.eval(load(IP_PROTO));
    let (tcp, other) = f.branch(protocol.equals(6));
    f.at(tcp);
    f.need(Base::Trans, 20, done);
    f.store(TCP_SUM, csum_update(load(TCP_SUM), old, address, 32));
    f.jump(done);
    f.at(other);
    f.check(protocol.equals(17), done);
    f.need(Base::Trans, 8, done);
    // 0 means that there is no checksum (RFC 768): it stays, and a sum of 0 is written as 0xffff.
    let sum = f.eval(load(UDP_SUM));
    f.check(sum, done);
    let sum = f.eval(csum_update(sum, old, address, 32));
    f.store(UDP_SUM, select(sum, sum, 0xffff));
    f.jump(done);
}
