//! `ARPFaker`: sends unsolicited ARP replies.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work};
use elements::ether::arp_message::{End, Message, REPLY};
use elements::ether::header::HEADER_BYTES;

/// The class.
pub const CLASS: Class = Class {
    name: "ARPFaker",
    summary: "generates unsolicited ARP replies",
    page: "\
# ARPFaker(DSTIP, DSTETH, SRCIP, SRCETH)

Sends station DSTETH, with address DSTIP, an ARP reply every ten seconds that SRCIP is at SRCETH; the first one
after one second.

- **ports**: no input, 1 push output
- **arguments**: `DSTIP`, `SRCIP`: IP addresses; `DSTETH`, `SRCETH`: Ethernet addresses
",
    codes: PortCodes::new("0/1", "h/h"),
    state: StateScope::OneWorker,
    make,
};

const FIRST_NS: u64 = 1_000_000_000;
const INTERVAL_NS: u64 = 10_000_000_000;

struct ArpFaker {
    reply: Message,
    is_here: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let is_here = cx.worker == 0;
    cx.opaque(|args| {
        let mut end = |ip: &'static str, mac: &'static str| {
            let ip = args.mandatory_positional(ip, parse::ip4);
            let mac = args.mandatory_positional(mac, parse::ether);
            Some(End { ip: ip?.into(), mac: mac? })
        };
        let (target, sender) = (end("DSTIP", "DSTETH"), end("SRCIP", "SRCETH"));
        let reply = Message { operation: REPLY, sender: sender?, target: target? };
        Some(ArpFaker { reply, is_here })
    })
}

impl Opaque for ArpFaker {}

impl Element for ArpFaker {
    fn start(&mut self, work: &mut Work<'_>) {
        if self.is_here {
            work.fire_at(work.now_ns() + FIRST_NS);
        }
    }

    fn fire(&mut self, work: &mut Work<'_>) {
        if let Some(mut packet) = work.make(&self.reply.frame(self.reply.target.mac)) {
            (packet.mac, packet.net) = (packet.data(), packet.data() + HEADER_BYTES as u16);
            work.emit(0, &packet);
        }
        work.fire_at(work.now_ns() + INTERVAL_NS);
    }
}
