//! Network address and port translation for IPv4 (RFC 3022), with endpoint-independent mappings (RFC 4787,
//! RFC 5382, RFC 5508): many inside addresses share one outside address.

mod errors;
mod mappings;

use mappings::{Full, Mappings};
use millrace_nfs::configuration::{ipv4, ports, read};
use millrace_nfs::rewrite::{self, End};
use millrace_nfs::{Clock, Prefix, check_pair, tcp_flags};
use nf::{Batch, Handler, Link, Nf, Options, Packet};
use packet::view::{Icmp, Ipv4, icmp, ipv4::Ipv4Facts, protocol};
use packet::{Access, parse};
use std::net::{IpAddr, Ipv4Addr};

millrace_nfs::numbered! { REASONS from 1:
    NOT_IPV4 "not-ipv4", MALFORMED "malformed", FRAGMENT "fragment", NO_MAPPING "no-mapping",
    NOT_FOR_US "not-for-us", NO_PORT "no-port", TABLE_FULL "table-full", PROTOCOL "protocol",
    NOT_INSIDE "not-inside",
}

millrace_nfs::numbered! { COUNTERS from 0:
    OUT "out", IN "in", HAIRPINS "hairpins", ERRORS "errors-translated", MAPPINGS "mappings",
    MADE "mappings-made", EXPIRED "mappings-expired",
}

/// The interface of the inside; the other one is outside.
const INSIDE: usize = 0;

struct Napt {
    external: Ipv4Addr,
    inside: Vec<Prefix>,
    mappings: Mappings,
    clock: Clock,
}

/// The output and the counter of a packet; or a drop reason.
type Decision = Result<(usize, usize), usize>;

impl Napt {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Napt, String> {
        read(config, |keys| {
            check_pair(keys, interfaces, "a translator has two interfaces: the inside, then the outside");
            let external = keys.required("external", ipv4).unwrap_or(Ipv4Addr::UNSPECIFIED);
            let range = keys.value("ports", ports).unwrap_or((1024, 65_535));
            let most = keys.integer("mappings", 1..=1 << 20, 65_536) as u32;
            let inside = keys.list("inside", str::parse);
            let mappings = Mappings::new(external, range, most)?;
            Ok(Napt { external, inside, mappings, clock: Clock::default() })
        })?
    }

    fn translate(&mut self, packet: &mut Packet, now_ns: u64, link: &mut Link) -> Decision {
        let layers = parse::frame(packet, 0);
        let (Some(net), true) = (layers.net, layers.is_ipv4()) else { return Err(NOT_IPV4) };
        let ip = Ipv4::at(net).check(packet).map_err(|_| MALFORMED)?;
        ip.check_sum().map_err(|_| MALFORMED)?;
        if ip.is_fragment() {
            return Err(FRAGMENT);
        }
        let from = packet.interface();
        if is_error(packet, &ip) {
            let translated = errors::translate(packet, net, &ip, &mut self.mappings, from == INSIDE);
            return translated.map(|()| (1 - from.min(1), ERRORS));
        }
        if from == INSIDE {
            self.outward(packet, net, &ip, now_ns, link)
        } else {
            self.inward(packet, net, &ip, now_ns)
        }
    }

    /// Translates a packet from the inside.
    fn outward(
        &mut self,
        packet: &mut Packet,
        net: usize,
        ip: &Ipv4Facts,
        now_ns: u64,
        link: &mut Link,
    ) -> Decision {
        if !self.inside.is_empty() && !self.inside.iter().any(|prefix| prefix.contains(IpAddr::V4(ip.src))) {
            return Err(NOT_INSIDE);
        }
        let port = port_of(packet, ip, End::Source)?;
        let stays = stays_ns(packet, ip);
        let (outside, made) = self.mappings.outward(ip.protocol, (ip.src, port), now_ns + stays).map_err(
            |full| match full {
                Full::Ports => NO_PORT,
                Full::Table => TABLE_FULL,
            },
        )?;
        link.count(MADE, u64::from(made));
        rewrite::end(packet, net, ip, End::Source, (self.external, Some(outside)), false).ok_or(MALFORMED)?;
        if ip.dst != self.external {
            return Ok((1 - INSIDE, OUT));
        }
        // A packet to another inside host by its outside address (RFC 4787, REQ-9).
        let again = Ipv4::at(net).check(packet).map_err(|_| MALFORMED)?;
        self.inward(packet, net, &again, now_ns).map(|_| (INSIDE, HAIRPINS))
    }

    /// Translates a packet from the outside.
    fn inward(&mut self, packet: &mut Packet, net: usize, ip: &Ipv4Facts, now_ns: u64) -> Decision {
        if ip.dst != self.external {
            return Err(NOT_FOR_US);
        }
        let port = port_of(packet, ip, End::Destination)?;
        let stays = stays_ns(packet, ip);
        // Only packets from the inside extend a UDP mapping (RFC 4787, REQ-6).
        let due = (ip.protocol == protocol::TCP).then_some(now_ns + stays);
        let inside = self.mappings.inward(ip.protocol, port, due).ok_or(NO_MAPPING)?;
        let to = (inside.0, Some(inside.1));
        rewrite::end(packet, net, ip, End::Destination, to, false).ok_or(MALFORMED)?;
        Ok((INSIDE, IN))
    }
}

/// The lifetime of a mapping after a packet.
fn stays_ns(packet: &impl Access, ip: &Ipv4Facts) -> u64 {
    mappings::stays_ns(ip.protocol, tcp_flags(packet, ip.protocol, ip.payload, ip.end).unwrap_or(0))
}

/// Whether a packet is an ICMP error.
fn is_error(packet: &impl Access, ip: &Ipv4Facts) -> bool {
    let facts = Icmp::at(ip.payload).check(packet, ip.end);
    ip.protocol == protocol::ICMP && facts.is_ok_and(|facts| icmp::is_error(facts.kind))
}

/// The port of an end, or an ICMP query's identifier.
fn port_of(packet: &impl Access, ip: &Ipv4Facts, end: End) -> Result<u16, usize> {
    let bytes = ip.end.saturating_sub(ip.payload);
    let at = rewrite::port_at(ip.protocol, end).ok_or(PROTOCOL)?;
    if bytes < (if ip.protocol == protocol::TCP { 20 } else { 8 }) {
        return Err(MALFORMED);
    }
    if ip.protocol == protocol::ICMP {
        let kind = packet.u8(ip.payload).ok_or(MALFORMED)?;
        if !icmp::has_id(kind) {
            return Err(PROTOCOL);
        }
    }
    packet.u16(ip.payload + at).ok_or(MALFORMED)
}

impl Nf for Napt {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        while let Some(mut packet) = batch.next() {
            match self.translate(&mut packet, now_ns, batch.link()) {
                Ok((interface, counter)) => {
                    batch.link().count(counter, 1);
                    batch.send(packet, interface);
                }
                Err(reason) => batch.drop_for(packet, reason),
            }
        }
        let expired = self.mappings.expire(now_ns);
        batch.link().count(EXPIRED, expired);
        batch.link().set(MAPPINGS, self.mappings.len() as u64);
    }

    fn read(&mut self, _handler: &str) -> Result<String, String> {
        Ok(self.mappings.list())
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("napt").reasons(&REASONS).counters(&COUNTERS);
    nf::run_with(&options.handler(Handler::concat("mappings")), |link| {
        Napt::read(link.config(), link.interfaces())
    })
}
