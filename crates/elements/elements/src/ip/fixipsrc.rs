//! `FixIPSrc`: sets the source address of packets that ask for it.

use super::setipchecksum::compute;
use click::config::{Args, parse};
use element::{Class, Element, PortCodes, StateScope, Transparent};
use ir::Builder;
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

struct FixIpSrc {
    address: u32,
}

fn make(args: &mut Args<'_>) -> Option<FixIpSrc> {
    let address = args.mandatory_positional("IPADDR", parse::ip4);
    let address = u32::from(address?);
    Some(FixIpSrc { address })
}

impl Transparent for FixIpSrc {
    fn build(&self, f: &mut Builder) {
        f.name("FixIPSrc");
        let bad = f.drop_block("bad-ip-header");
        let done = f.aside(|f| f.emit(0));
        f.check(anno(anno::FIX_IP_SRC), done);
        f.need(Base::Net, 20, done);
        f.store_anno(anno::FIX_IP_SRC, 0);
        f.store(IP_SRC, u64::from(self.address));
        compute(f, bad);
        f.jump(done);
    }
}

impl Element for FixIpSrc {}
