//! `ARPPrint`: prints ARP packets.

use crate::basic::printer::{Line, Outlet, Printer, head};
use click::config::parse;
use element::value::ether_text;
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use elements::ether::header::{HEADER_BYTES, TYPE_IP};
use packet::Access;
use shm::Packet;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "ARPPrint",
    summary: "pretty-prints ARP packets",
    page: "\
# ARPPrint([LABEL, keywords TIMESTAMP, ETHER, ACTIVE, OUTFILE])

Prints a line for each ARP packet, as tcpdump does. Passes packets unchanged.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LABEL`: the start of the line; `TIMESTAMP` (default true), `ETHER` (default false):
  whether these are printed; `ACTIVE` (default true): whether it prints; `OUTFILE`: file to print to
- **annotations**: needs the network header; packets without it pass and are not printed
- **handlers**: `active` (read/write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

struct ArpPrint {
    label: String,
    timestamp: bool,
    ether: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let label = args.positional("LABEL", parse::string).map_or(String::new(), |label| label.text.to_string());
    let timestamp = args.keyword("TIMESTAMP", parse::bool).unwrap_or(true);
    let ether = args.keyword("ETHER", parse::bool).unwrap_or(false);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let file = args.keyword("OUTFILE", parse::filename);
    let fine = args.finish();
    let outlet = Outlet::open(cx, file)?;
    let line = ArpPrint { label, timestamp, ether };
    fine.then(|| BoxElement::opaque(Printer { line, active, outlet }))
}

/// Bytes of the fields that every message has, whatever its address spaces.
const FIXED_BYTES: usize = 8;
/// EtherType of trailer encapsulation (RFC 893), from 4.2BSD.
const TYPE_TRAILER: u16 = 0x1000;

/// The ARP message as text.
fn message_text(bytes: &[u8]) -> String {
    let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    if bytes.len() < FIXED_BYTES {
        return format!("truncated-arp ({})", bytes.len());
    }
    let (hardware, protocol, operation) = (u16_at(0), u16_at(2), u16_at(6));
    let (hardware_bytes, protocol_bytes) = (bytes[4], bytes[5]);
    let is_ip = matches!(protocol, TYPE_IP | TYPE_TRAILER) && protocol_bytes == 4 && hardware_bytes != 0;
    if !is_ip {
        return format!(
            "arp-#{operation} for proto #{protocol} ({protocol_bytes}) hardware #{hardware} ({hardware_bytes})"
        );
    }
    let Some(ends) = bytes.get(FIXED_BYTES..FIXED_BYTES + 20) else {
        return format!("truncated-arp ({})", bytes.len());
    };
    let mac = |at: usize| {
        ether_text([ends[at], ends[at + 1], ends[at + 2], ends[at + 3], ends[at + 4], ends[at + 5]])
    };
    let ip = |at: usize| Ipv4Addr::new(ends[at], ends[at + 1], ends[at + 2], ends[at + 3]);
    let (sender_mac, sender, target_mac, target) = (mac(0), ip(6), mac(10), ip(16));
    let mut text = if protocol == TYPE_TRAILER { "trailer-".to_string() } else { String::new() };
    text += &match operation {
        1 if ends[10..16] == [0; 6] => format!("arp who-has {target} tell {sender}"),
        1 => format!("arp who-has {target} ({target_mac}) tell {sender}"),
        2 => format!("arp reply {sender} is-at {sender_mac}"),
        3 => format!("rarp who-is {target_mac} tell {sender_mac}"),
        4 => format!("rarp reply {target_mac} at {target}"),
        8 => format!("invarp who-is {target_mac} tell {sender_mac}"),
        9 => format!("invarp reply {target_mac} at {target}"),
        other => format!("arp-#{other}"),
    };
    if hardware != 1 {
        text += &format!("hardware #{hardware}");
    }
    text
}

impl Line for ArpPrint {
    fn line(&self, packet: &Packet) -> Option<String> {
        if packet.net == NO_HEADER {
            return None;
        }
        let mut line = head(&self.label, self.timestamp, packet);
        let bytes = PacketBytes::new(packet);
        let net = usize::from(packet.net).checked_sub(usize::from(packet.data()));
        let mac = if packet.mac == NO_HEADER { packet.data() } else { packet.mac };
        let mac = usize::from(mac).checked_sub(usize::from(packet.data()));
        let ends = mac.filter(|mac| net.is_some_and(|net| mac + HEADER_BYTES <= net));
        if let Some((dst, src)) =
            ends.filter(|_| self.ether).and_then(|mac| Some((bytes.get(mac)?, bytes.get(mac + 6)?)))
        {
            line += &format!("{} > {}: ", ether_text(src), ether_text(dst));
        }
        let mut message = [0; FIXED_BYTES + 20];
        let there = net.map_or(0, |net| bytes.len().saturating_sub(net)).min(message.len());
        let message = &mut message[..there];
        // The network header annotation may be past the packet's end.
        let whole = net.is_none_or(|net| message.is_empty() || bytes.copy_out(net, message));
        debug_assert!(whole, "no more is read than is there");
        line += &message_text(message);
        Some(line)
    }
}
