//! A learning bridge over any number of interfaces (IEEE 802.1D without a spanning tree).

use millrace_nfs::configuration::{interface, mac, read};
use millrace_nfs::{Clock, SECOND_NS};
use nf::{Batch, Handler, Link, Nf, Options, Packet};
use packet::MacAddr;
use packet::view::Ethernet;
use std::collections::HashMap;

millrace_nfs::numbered! { REASONS from 1:
    MALFORMED "malformed", BAD_SOURCE "bad-source", SAME_INTERFACE "same-interface", LINK_LOCAL "link-local",
    NOWHERE "nowhere",
}

millrace_nfs::numbered! { COUNTERS from 0:
    FORWARDED "forwarded", FLOODED "flooded", COPIES "copies", MISSED "copies-missed", ADDRESSES "addresses",
    MOVED "moved", NOT_LEARNED "not-learned",
}

/// The first five bytes of addresses that bridges never forward (IEEE 802.1D, table 7-10); the sixth is at
/// most 0x0f.
const RESERVED: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

#[derive(Default)]
struct Bridge {
    known: HashMap<MacAddr, MacEntry>,
    /// The host's names of the interfaces.
    interfaces: Vec<String>,
    most: usize,
    age_ns: u64,
    /// The destination MAC address that frames get, by output interface.
    next: Vec<Option<MacAddr>>,
    clock: Clock,
    swept_ns: u64,
    /// The buffer for a copied frame.
    copy: Vec<u8>,
}

struct MacEntry {
    interface: usize,
    /// When it was last seen; a configured address does not expire.
    seen_ns: u64,
    stays: bool,
}

/// The decision about a frame.
enum Decision {
    To(usize),
    Flood,
    Nowhere(usize),
}

impl Bridge {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Bridge, String> {
        read(config, |keys| {
            let most = keys.integer("addresses", 1..=1 << 24, 65_536) as usize;
            let age_ns = keys.integer("age-s", 1..=1_000_000, 300) * SECOND_NS;
            let known = keys.tables("static", |keys| {
                let address = keys.required("mac", mac);
                let interface = keys.required("interface", interface(interfaces));
                Some((address?, MacEntry { interface: interface?, seen_ns: 0, stays: true }))
            });
            let hosts = keys.tables("next", |keys| {
                let interface = keys.required("interface", interface(interfaces));
                let address = keys.required("mac", mac);
                Some((interface?, address?))
            });
            let mut next = vec![None; interfaces.len()];
            for (interface, address) in hosts {
                next[interface] = Some(address);
            }
            let (known, interfaces) = (known.into_iter().collect(), interfaces.to_vec());
            Bridge { known, interfaces, most, age_ns, next, ..Bridge::default() }
        })
    }

    /// Decides about a frame, and learns its source address.
    fn decide(&mut self, packet: &Packet, now_ns: u64, link: &mut Link) -> Decision {
        let Ok(head) = Ethernet::at(0).check(packet) else { return Decision::Nowhere(MALFORMED) };
        if head.src.is_multicast() || head.src == MacAddr::ZERO {
            return Decision::Nowhere(BAD_SOURCE);
        }
        self.learn(head.src, packet.interface(), now_ns, link);
        if head.dst.0[..5] == RESERVED && head.dst.0[5] <= 0x0f {
            return Decision::Nowhere(LINK_LOCAL);
        }
        match self.known.get(&head.dst).filter(|place| place.stays || now_ns - place.seen_ns <= self.age_ns) {
            _ if head.dst.is_multicast() => Decision::Flood,
            Some(place) if place.interface == packet.interface() => Decision::Nowhere(SAME_INTERFACE),
            Some(place) => Decision::To(place.interface),
            None => Decision::Flood,
        }
    }

    fn learn(&mut self, address: MacAddr, interface: usize, now_ns: u64, link: &mut Link) {
        let room = self.known.len() < self.most;
        match self.known.get_mut(&address) {
            Some(place) if place.stays => {}
            Some(place) => {
                link.count(MOVED, u64::from(place.interface != interface));
                (place.interface, place.seen_ns) = (interface, now_ns);
            }
            None if room => {
                self.known.insert(address, MacEntry { interface, seen_ns: now_ns, stays: false });
            }
            None => link.count(NOT_LEARNED, 1),
        }
    }

    fn send(&self, mut packet: Packet, to: usize, link: &mut Link) {
        if let Some(Some(next)) = self.next.get(to) {
            // The Ethernet header was checked before.
            let _ = Ethernet::at(0).set_dst(&mut packet, *next);
        }
        link.send(packet, to);
    }

    /// Sends a frame out of all interfaces but its own: itself out of the last one, copies out of the others.
    fn flood(&mut self, packet: Packet, link: &mut Link) {
        let from = packet.interface();
        let interfaces = link.interfaces().len();
        let Some(last) = (0..interfaces).rev().find(|to| *to != from) else {
            return link.drop_for(packet, NOWHERE);
        };
        self.copy.clear();
        if interfaces > 2 {
            packet.copy_to(&mut self.copy);
        }
        for to in (0..last).filter(|to| *to != from) {
            match link.make_from(&self.copy) {
                Some(copy) => {
                    self.send(copy, to, link);
                    link.count(COPIES, 1);
                }
                None => link.count(MISSED, 1),
            }
        }
        self.send(packet, last, link);
        link.count(FLOODED, 1);
    }

    /// Periodically removes addresses that were not seen for a long time.
    fn sweep(&mut self, now_ns: u64) {
        if now_ns - self.swept_ns > self.age_ns.min(SECOND_NS) {
            self.swept_ns = now_ns;
            self.known.retain(|_, place| place.stays || now_ns - place.seen_ns <= self.age_ns);
        }
    }
}

impl Nf for Bridge {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        while let Some(packet) = batch.next() {
            match self.decide(&packet, now_ns, batch.link()) {
                Decision::To(interface) => {
                    self.send(packet, interface, batch.link());
                    batch.link().count(FORWARDED, 1);
                }
                Decision::Flood => self.flood(packet, batch.link()),
                Decision::Nowhere(reason) => batch.drop_for(packet, reason),
            }
        }
        self.sweep(now_ns);
        batch.link().set(ADDRESSES, self.known.len() as u64);
    }

    fn read(&mut self, _handler: &str) -> Result<String, String> {
        let now_ns = self.clock.now_ns();
        let line = |(address, place): (&MacAddr, &MacEntry)| {
            let interface = self.interfaces.get(place.interface).map_or("?", String::as_str);
            let silent_s = now_ns.saturating_sub(place.seen_ns) / SECOND_NS;
            let age = if place.stays { "static".into() } else { format!("{silent_s} s") };
            format!("{address} {interface} {age}\n")
        };
        let mut lines: Vec<String> = self.known.iter().map(line).collect();
        lines.sort_unstable();
        Ok(lines.concat())
    }

    fn write(&mut self, _handler: &str, value: &str, link: &mut Link) -> Result<(), String> {
        let one = match value.trim() {
            "" => None,
            text => Some(text.parse::<MacAddr>().map_err(|error| format!("`{text}`: {error}"))?),
        };
        self.known.retain(|address, place| place.stays || one.is_some_and(|one| one != *address));
        link.set(ADDRESSES, self.known.len() as u64);
        Ok(())
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("l2fwd").reasons(&REASONS).counters(&COUNTERS).makes_packets();
    let options = options.handler(Handler::concat("table")).handler(Handler::write("forget"));
    nf::run_with(&options, |link| Bridge::read(link.config(), link.interfaces()))
}
