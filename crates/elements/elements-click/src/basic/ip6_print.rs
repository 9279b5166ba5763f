//! `IP6Print`: prints IPv6 packets.

use super::printer::{Contents, Layout, Line, Outlet, Printer, head};
use click::config::parse;
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use elements::ip::header::from_network;
use packet::Access;
use packet::view::ipv6::Ipv6;
use shm::Packet;
use shm::bytes::PacketBytes;
use std::fmt::Write as _;

/// The class.
pub const CLASS: Class = Class {
    name: "IP6Print",
    summary: "pretty-prints IPv6 packets",
    page: "\
# IP6Print([LABEL, keywords CONTENTS, NBYTES, ACTIVE])

Prints a line for each IPv6 packet: addresses, payload length, next header and hop limit. Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LABEL`: the start of the line; `CONTENTS` (default false): whether the packet's bytes are printed, in
  hexadecimal digits (or `ASCII`: as text); `NBYTES` (default 1500): bytes that are printed; `ACTIVE` (default true):
  whether it prints
- **annotations**: needs the network header; packets without it pass and are not printed
- **handlers**: `active` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

struct Ip6Print {
    label: String,
    contents: Contents,
    most_bytes: usize,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let label = args.positional("LABEL", parse::string).map_or(String::new(), |label| label.text.to_string());
    let contents = args.keyword("CONTENTS", Contents::parse).unwrap_or(Contents::None);
    let most_bytes = args.keyword("NBYTES", parse::u32).unwrap_or(1500) as usize;
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let fine = args.finish();
    let outlet = Outlet::open(cx, None)?;
    let line = Ip6Print { label, contents, most_bytes };
    fine.then(|| BoxElement::opaque(Printer { line, active, outlet }))
}

/// Appends the header's fields; `None` if it is cut off.
fn describe(bytes: &PacketBytes<'_>, line: &mut String) -> Option<()> {
    let ip = Ipv6::at(0);
    let (src, dst) = (ip.src(bytes)?, ip.dst(bytes)?);
    let (length, next, limit) = (ip.payload_len(bytes)?, ip.next_header(bytes)?, ip.hop_limit(bytes)?);
    write!(line, "{src} -> {dst} plen {length}, next {next}, hlim {limit}").ok()
}

impl Line for Ip6Print {
    fn line(&self, packet: &Packet) -> Option<String> {
        let from_net = from_network(packet)?;
        let header = PacketBytes::new(&from_net);
        let mut line = head(&self.label, false, packet);
        if describe(&header, &mut line).is_none() {
            let _ = write!(line, "truncated-ip6 ({})", header.len());
        }
        if self.contents != Contents::None {
            let bytes = PacketBytes::new(packet);
            let mut shown = vec![0; bytes.len().min(self.most_bytes)];
            let whole = bytes.copy_out(0, &mut shown);
            debug_assert!(whole, "no more is read than is there");
            self.contents.show(&shown, Layout { leading_space: false, line_groups: Some(6) }, &mut line);
        }
        Some(line)
    }
}
