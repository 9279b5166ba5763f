//! `IPPrint`: prints IP packets.

use super::ip_line::{Sight, describe};
use super::printer::{Contents, Layout, Line, Outlet, Printer, head};
use click::config::{Names, Parsed, parse};
use diag::Spanned;
use element::value::ether_text;
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use packet::anno::{AGGREGATE, PAINT, VLAN_TCI};
use shm::Packet;
use shm::descriptor::NO_HEADER;
use std::fmt::Write as _;

/// The class.
pub const CLASS: Class = Class {
    name: "IPPrint",
    summary: "pretty-prints IP packets",
    page: "\
# IPPrint([LABEL, keywords])

Prints a line for each IP packet, as tcpdump does. Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LABEL`: the start of the line; `CONTENTS` (`NONE`, `HEX`, `ASCII`, default `NONE`): how the
  packet's bytes are printed; `PAYLOAD` (`false`, `HEX`, `ASCII`): the same for its payload; `MAXLENGTH`
  (default 1500): bytes that are printed, -1 for all; `TIMESTAMP` (default true), `ETHER`, `ID`, `TTL`, `TOS`,
  `LENGTH`, `AGGREGATE`, `PAINT`, `VLAN` (default false): whether these are printed; `SWAP` (default true):
  whether identifier and sequence number of ICMP echoes are printed in network order; `ACTIVE` (default
  true): whether it prints; `OUTFILE`: file to print to; `CHANNEL` has no effect
- **annotations**: needs the network and the transport header; packets without network header pass and are not printed
- **handlers**: `active` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

struct IpPrint {
    label: String,
    contents: Contents,
    payload: bool,
    /// The most bytes to print; `None` for all.
    most_bytes: Option<usize>,
    timestamp: bool,
    ether: bool,
    aggregate: bool,
    paint: bool,
    vlan: bool,
    sight: Sight,
}

/// `HEX`, `ASCII` in any case, or a Boolean.
fn payload(text: &Spanned, names: &dyn Names) -> Parsed<Contents> {
    match text.as_str().to_ascii_uppercase().as_str() {
        "NO" | "FALSE" => Ok(Contents::None),
        "YES" | "TRUE" => Ok(Contents::Hex),
        _ => Contents::parse(text, names),
    }
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let label = args.positional("LABEL", parse::string).map_or(String::new(), |label| label.text.to_string());
    let contents = args.keyword("CONTENTS", Contents::parse).unwrap_or(Contents::None);
    let payload = args.keyword("PAYLOAD", payload).unwrap_or(Contents::None);
    let most = args.keyword("MAXLENGTH", parse::i32).or(args.keyword("NBYTES", parse::i32)).unwrap_or(1500);
    let mut flag = |keyword, default| args.keyword(keyword, parse::bool).unwrap_or(default);
    let (timestamp, ether) = (flag("TIMESTAMP", true), flag("ETHER", false));
    let (aggregate, paint, vlan) = (flag("AGGREGATE", false), flag("PAINT", false), flag("VLAN", false));
    let (id, ttl, tos, length) =
        (flag("ID", false), flag("TTL", false), flag("TOS", false), flag("LENGTH", false));
    let (swap, active) = (flag("SWAP", true), flag("ACTIVE", true));
    let file = args.keyword("OUTFILE", parse::filename);
    let _ = args.keyword("CHANNEL", parse::any);
    let span = args.span();
    let fine = args.finish();
    if contents != Contents::None && payload != Contents::None {
        cx.error(span, "specify at most one of PAYLOAD and CONTENTS");
        return None;
    }
    if !fine {
        return None;
    }
    let outlet = Outlet::open(cx, file)?;
    let only_payload = payload != Contents::None;
    let line = IpPrint {
        label,
        contents: if only_payload { payload } else { contents },
        payload: only_payload,
        most_bytes: usize::try_from(most).ok(),
        timestamp,
        ether,
        aggregate,
        paint,
        vlan,
        sight: Sight { id, ttl, tos, length, swap },
    };
    Some(BoxElement::opaque(Printer { line, active, outlet }))
}

impl Line for IpPrint {
    /// The line for a packet; `None` if its network header is not known.
    fn line(&self, packet: &Packet) -> Option<String> {
        if packet.net == NO_HEADER {
            return None;
        }
        let mut line = head(&self.label, self.timestamp, packet);
        if self.aggregate {
            let _ = write!(line, "#{}", AGGREGATE.load(&packet.anno));
        }
        if self.vlan {
            let _ = write!(line, " VLAN:{}", VLAN_TCI.load(&packet.anno));
        }
        if self.paint {
            let word = if self.aggregate { "." } else { "paint " };
            let _ = write!(line, "{word}{}", PAINT.load(&packet.anno));
        }
        if self.aggregate || self.paint {
            line.push_str(": ");
        }
        // Headers may be in front of the packet's first byte: the first of them is where `bytes` start.
        let start = [packet.net, if self.ether { packet.mac } else { NO_HEADER }];
        let start = start.into_iter().fold(packet.data(), u16::min);
        let bytes = bytes_from(packet, start);
        let place = |header: u16| header.checked_sub(start).filter(|_| header != NO_HEADER).map(usize::from);
        let net = place(packet.net)?;
        if let Some(mac) = place(packet.mac).filter(|mac| self.ether && mac + 14 <= net)
            && let Some((dst, rest)) = bytes.get(mac..).and_then(|rest| rest.split_first_chunk::<6>())
            && let Some(src) = rest.first_chunk::<6>()
        {
            let _ = write!(line, "{} > {}: ", ether_text(*src), ether_text(*dst));
        }
        let trans =
            place(packet.trans.max(start)).filter(|trans| *trans >= net).unwrap_or(bytes.len().max(net));
        let net_bytes = bytes.get(net..).unwrap_or_default();
        let described =
            describe(net_bytes, trans - net, usize::from(packet.data() - start), &self.sight, &mut line);
        if let Some(payload_at) = described.filter(|_| self.contents != Contents::None) {
            let from = if self.payload { net + payload_at } else { usize::from(packet.data() - start) };
            let shown = bytes.get(from..).unwrap_or_default();
            let shown = &shown[..shown.len().min(self.most_bytes.unwrap_or(usize::MAX))];
            self.contents.show(shown, Layout { leading_space: false, line_groups: Some(6) }, &mut line);
        }
        Some(line)
    }
}

/// All bytes of a packet from an offset of its first buffer on, which may be in front of the packet's first
/// byte.
fn bytes_from(packet: &Packet, start: u16) -> Vec<u8> {
    let mut whole = *packet;
    let before = packet.data().saturating_sub(start);
    let pushed = whole.push(usize::from(before));
    debug_assert!(pushed, "headers lie inside the buffer");
    shm::bytes::PacketBytes::new(&whole).to_vec()
}
