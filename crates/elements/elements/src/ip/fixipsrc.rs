//! `FixIPSrc`: sets the source address of packets whose annotation asks for it.

use super::setipchecksum::{check_length, compute};
use crate::program::Program;
use click::config::{Args, parse};
use element::{Class, PortCodes, StateScope};
use ir::expr::anno;
use packet::anno;
use packet::field::{Base, IP_SRC};

/// The class.
pub const CLASS: Class = Class {
    name: "FixIPSrc",
    summary: "sets source field of IP packets if requested",
    page: "\
# FixIPSrc(IPADDR)

Sets the source address of packets whose fix-source annotation is set to IPADDR, clears the
annotation, and computes the header checksum. ICMPError sets the annotation: the address of the
interface that an error leaves by is known only here.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `IPADDR`
- **annotations**: reads and clears `FIX_IP_SRC`; needs the network header
- **drop reasons**: `bad-ip-header`: the header is cut off or its length field wrong
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.transparent(make),
};

fn make(args: &mut Args<'_>) -> Option<Program> {
    let address = u32::from(args.mandatory_positional("IPADDR", parse::ip4)?);
    Some(Program::new("FixIPSrc", &[], move |f| {
        let bad = f.drop_block("bad-ip-header");
        let done = f.aside(|f| f.emit(0));
        f.check(anno(anno::FIX_IP_SRC), done);
        f.need(Base::Net, 20, done);
        f.store_anno(anno::FIX_IP_SRC, 0);
        check_length(f, bad);
        f.store(IP_SRC, u64::from(address));
        compute(f);
        f.jump(done);
    }))
}
