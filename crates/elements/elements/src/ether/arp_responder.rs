//! `ARPResponder`: answers ARP requests.

use super::arp_message::{self, FRAME_BYTES, Message, REPLY, REQUEST};
use click::config::{Ip4Prefix, Names, Parsed, parse, split_words};
use diag::{Diagnostic, Spanned};
use element::value::{ether_text, written};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::Access;
use shm::burst::Batch;
use std::collections::HashSet;
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "ARPResponder",
    summary: "generates responses to ARP queries",
    page: "\
# ARPResponder(IP/MASK [IP/MASK ...] ETH, ...)

Answers ARP requests for its addresses. Each argument is a list of prefixes and the Ethernet address to reply
for them: a host's own, or that of a router that answers for others (proxy ARP). The longest prefix with the
address counts. All other packets leave by output 1.

- **ports**: 1 input, 1 or 2 outputs, agnostic; what is not answered is pushed out of output 1
- **arguments**: `IP/MASK`: address or prefix; `ETH`: Ethernet address. A name for both is enough
- **annotations**: replies keep the `VLAN_TCI` annotation of the query and lose all others
- **handlers**: `table` (read): a line for each prefix; `lookup IP` (read): the Ethernet address that it replies
  for an address; `add` (`IP/MASK [IP/MASK ...] ETH`), `remove` (`IP/MASK`) (write)
- **drop reasons**: `not-for-us`: not a request that it answers
- **difference**: the reply overwrites the query's packet
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ResponderEntry {
    /// Its address has no bits outside of the mask.
    network: Ip4Prefix,
    mac: [u8; 6],
}

struct ArpResponder {
    /// Longer prefixes come first.
    entries: Vec<ResponderEntry>,
}

/// Reads `IP/MASK [IP/MASK ...] ETH`.
fn entries(text: &Spanned, names: &dyn Names) -> Parsed<Vec<ResponderEntry>> {
    let words = split_words(text);
    let (mut prefixes, mut mac): (Vec<Ip4Prefix>, Option<[u8; 6]>) = (vec![], None);
    for word in &words {
        match (parse::ip4_or_prefix(word, names), parse::ether(word, names)) {
            (Ok(prefix), _) => prefixes.push(prefix),
            (Err(_), Ok(_)) if mac.is_some() => {
                return Err(Diagnostic::error(word.span, "more than one Ethernet address"));
            }
            (Err(_), Ok(address)) => mac = Some(address),
            (Err(mistake), Err(_)) => return Err(mistake),
        }
    }
    // A name may mean both addresses.
    let mac = mac.or_else(|| words.iter().find_map(|word| parse::ether(word, names).ok()));
    let Some(mac) = mac else { return Err(Diagnostic::error(text.span, "an Ethernet address is missing")) };
    if prefixes.is_empty() {
        return Err(Diagnostic::error(text.span, "an IP address or prefix is missing"));
    }
    Ok(prefixes.into_iter().map(|prefix| ResponderEntry { network: network(prefix), mac }).collect())
}

fn network(prefix: Ip4Prefix) -> Ip4Prefix {
    Ip4Prefix { address: prefix.network(), ..prefix }
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let mut all = vec![];
        for argument in args.rest() {
            all.extend(args.read(&argument, entries).unwrap_or_default());
        }
        let mut responder = ArpResponder { entries: vec![] };
        responder.add(all);
        Some(responder)
    })
}

impl ArpResponder {
    /// Adds entries; the later of two for one prefix counts.
    fn add(&mut self, new: Vec<ResponderEntry>) {
        self.entries.extend(new);
        let mut seen = HashSet::new();
        self.entries.reverse();
        self.entries.retain(|ResponderEntry { network, .. }| seen.insert((network.address, network.mask)));
        self.entries.reverse();
        self.entries.sort_by_key(|entry| std::cmp::Reverse(entry.network.mask.to_bits().count_ones()));
    }

    fn lookup(&self, ip: u32) -> Option<[u8; 6]> {
        let ip = Ipv4Addr::from_bits(ip);
        self.entries
            .iter()
            .find(|entry| ip & entry.network.mask == entry.network.address)
            .map(|entry| entry.mac)
    }

    /// The reply to a frame, if the frame is a request for an address in the list.
    fn reply<A: Access + ?Sized>(&self, frame: &A) -> Option<[u8; FRAME_BYTES]> {
        let request = Message::read(frame).filter(|message| message.operation == REQUEST)?;
        let mut sender = request.target;
        sender.mac = self.lookup(sender.ip)?;
        let reply = Message { operation: REPLY, sender, target: request.sender };
        Some(reply.frame(request.sender.mac))
    }
}

impl Opaque for ArpResponder {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let Some(reply) = self.reply(&batch.bytes(index)) else {
                batch.emit_or_drop(index, 1, 0);
                continue;
            };
            arp_message::answer(batch, index, &reply);
            batch.emit(index, 0);
        }
    }
}

impl Element for ArpResponder {
    element::facts!(reasons: &["not-for-us"], handlers: HANDLERS);
}

impl ArpResponder {
    fn table(&self, _cells: &[u64]) -> Option<String> {
        let line = |entry: &ResponderEntry| format!("{} {}", entry.network, ether_text(entry.mac));
        Some(self.entries.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// The Ethernet address for an address, empty without one. `None` if the text is no address.
    fn look_up(&self, ip: &str) -> Option<String> {
        let ip: Ipv4Addr = ip.trim().parse().ok()?;
        Some(self.lookup(ip.to_bits()).map(ether_text).unwrap_or_default())
    }

    fn remove(&mut self, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        let prefix = written(value, parse::ip4_or_prefix)?;
        let at = self.entries.iter().position(|entry| entry.network == network(prefix));
        self.entries.remove(at.ok_or_else(|| format!("{prefix} not found"))?);
        Ok(())
    }
}

const HANDLERS: &[Row<ArpResponder>] = &[
    Row::read("table", ArpResponder::table),
    Row::ask("lookup", ArpResponder::look_up),
    Row::write("add", |responder, value, _| written(value, entries).map(|new| responder.add(new))),
    Row::write("remove", ArpResponder::remove),
];
