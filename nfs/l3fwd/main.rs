//! Forwards IPv4 and IPv6 packets by the longest prefix: it decrements TTL and hop limit, and sets the next
//! hop's MAC address, which a route names or the platform resolves. It reports undeliverable packets to their
//! senders by ICMP.

mod icmp;
mod routes;
mod waiting;

use millrace_nfs::{Clock, SECOND_NS};
use nf::{Batch, Link, Neighbour, Nf, Options, Packet};
use packet::checksum::{IPV4_CHECK, update16};
use packet::view::{Ethernet, Ipv4, Ipv6, ethernet};
use packet::{Access, MacAddr};
use routes::{Interface, Next, Routes};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use waiting::Waiting;

millrace_nfs::numbered! { REASONS from 1:
    NOT_IP "not-ip", MALFORMED "malformed", BAD_CHECKSUM "bad-checksum", NO_ROUTE "no-route",
    TTL_EXPIRED "ttl-expired", NOT_FOR_US "not-for-us", LINK_SCOPE "link-scope", NO_NEIGHBOUR "no-neighbour",
}

millrace_nfs::numbered! { COUNTERS from 0:
    _ "forwarded4", _ "forwarded6", ERRORS "icmp-errors", SUPPRESSED "icmp-errors-suppressed",
    // Packets that were held until their next hop was resolved or unreachable.
    WAITED "waited",
}

/// ICMP errors a second at most (RFC 1812, section 4.3.2.8, and RFC 4443, section 2.4 f).
const ERRORS_PER_S: u64 = 1000;

#[derive(Default)]
struct Router {
    routes: Routes,
    waiting: Waiting,
    clock: Clock,
    /// ICMP errors sent in this second.
    errors: u64,
    second: u64,
}

/// The reason why a packet is not forwarded.
enum Stop {
    /// Dropped without an ICMP error.
    Drop(usize),
    /// Dropped with an ICMP error to the sender.
    Tell(usize, icmp::Why),
}

/// The output of a packet, and its counter.
struct Decision {
    interface: usize,
    to: Recipient,
    counter: usize,
}

/// The next hop.
enum Recipient {
    Known(MacAddr),
    Neighbour(IpAddr),
}

impl Router {
    fn start(link: &mut Link) -> Result<Router, String> {
        let names = link.interfaces().iter().enumerate();
        let interfaces: Vec<Interface<'_>> =
            names.map(|(number, name)| Interface { name, facts: link.l3_interface(number) }).collect();
        Ok(Router { routes: Routes::read(link.config(), &interfaces)?, ..Router::default() })
    }

    /// Looks up a packet's next hop, and updates the packet except for its Ethernet addresses.
    fn forward(&self, packet: &mut Packet) -> Result<Decision, Stop> {
        let Ok(head) = Ethernet::at(0).check(packet) else { return Err(Stop::Drop(MALFORMED)) };
        if head.dst.is_multicast() || head.dst != self.routes.mac(packet.interface()) {
            return Err(Stop::Drop(NOT_FOR_US));
        }
        let net = ethernet::HEADER_BYTES;
        let (hop, destination, counter) = match head.ethertype {
            ethernet::IPV4 => self.ipv4(packet, net).map(|(hop, to)| (hop, IpAddr::V4(to), 0))?,
            ethernet::IPV6 => self.ipv6(packet, net).map(|(hop, to)| (hop, IpAddr::V6(to), 1))?,
            _ => return Err(Stop::Drop(NOT_IP)),
        };
        let to = match hop.next {
            Next::Mac(mac) => Recipient::Known(mac),
            Next::Gateway(gateway) => Recipient::Neighbour(gateway),
            Next::Destination => Recipient::Neighbour(destination),
            Next::Nobody => return Err(Stop::Drop(NOT_FOR_US)),
        };
        Ok(Decision { interface: hop.interface, to, counter })
    }

    /// Sets a packet's Ethernet addresses and sends it.
    fn leave(&self, mut packet: Packet, interface: usize, to: MacAddr, link: &mut Link) {
        let own = self.routes.mac(interface);
        if Ethernet::at(0).set_dst(&mut packet, to) && Ethernet::at(0).set_src(&mut packet, own) {
            link.send(packet, interface);
        } else {
            link.drop_for(packet, MALFORMED);
        }
    }

    /// Sends a packet to a neighbour, or holds it until the neighbour is resolved.
    fn leave_by(&mut self, packet: Packet, interface: usize, next: IpAddr, now_ns: u64, link: &mut Link) {
        match link.neighbour(interface, next) {
            Neighbour::Known(mac) => self.leave(packet, interface, mac, link),
            Neighbour::Unreachable => self.give_up(packet, now_ns, link),
            Neighbour::Resolving => match self.waiting.keep((interface, next), packet, link, now_ns) {
                Ok(()) => link.count(WAITED, 1),
                Err(packet) => link.drop_for(packet, NO_NEIGHBOUR),
            },
        }
    }

    /// Drops a packet whose next hop does not answer.
    fn give_up(&mut self, packet: Packet, now_ns: u64, link: &mut Link) {
        self.tell(&packet, icmp::Why::Unreachable, now_ns, link);
        link.drop_for(packet, NO_NEIGHBOUR);
    }

    /// Sends or drops the held packets whose next hop is known or unreachable.
    fn settle(&mut self, now_ns: u64, link: &mut Link) {
        for (interface, came, packets) in self.waiting.settle(link, now_ns) {
            for packet in packets {
                match came {
                    Some(mac) => self.leave(packet, interface, mac, link),
                    None => self.give_up(packet, now_ns, link),
                }
            }
        }
    }

    fn ipv4(&self, packet: &mut Packet, net: usize) -> Result<(routes::Hop, Ipv4Addr), Stop> {
        let Ok(ip) = Ipv4::at(net).check(packet) else { return Err(Stop::Drop(MALFORMED)) };
        if ip.check_sum().is_err() {
            return Err(Stop::Drop(BAD_CHECKSUM));
        }
        if ip.dst.is_multicast() || ip.dst.is_broadcast() || ip.dst.is_loopback() || ip.src.is_loopback() {
            return Err(Stop::Drop(LINK_SCOPE));
        }
        if ip.ttl <= 1 {
            return Err(Stop::Tell(TTL_EXPIRED, icmp::Why::Expired));
        }
        let to = self.routes.hop(IpAddr::V4(ip.dst)).ok_or(Stop::Tell(NO_ROUTE, icmp::Why::NoRoute))?;
        // TTL and protocol are one word of the checksum.
        let word = |ttl: u8| u16::from_be_bytes([ttl, ip.protocol]);
        let check = update16(ip.checksum, word(ip.ttl), word(ip.ttl - 1));
        let done = Ipv4::at(net).set_ttl(packet, ip.ttl - 1) && packet.put_u16(net + IPV4_CHECK, check);
        if done { Ok((to, ip.dst)) } else { Err(Stop::Drop(MALFORMED)) }
    }

    fn ipv6(&self, packet: &mut Packet, net: usize) -> Result<(routes::Hop, Ipv6Addr), Stop> {
        let Ok(ip) = Ipv6::at(net).check(packet) else { return Err(Stop::Drop(MALFORMED)) };
        let is_local = |address: std::net::Ipv6Addr| address.is_unicast_link_local() || address.is_loopback();
        if ip.dst.is_multicast() || is_local(ip.dst) || is_local(ip.src) {
            return Err(Stop::Drop(LINK_SCOPE));
        }
        if ip.hop_limit <= 1 {
            return Err(Stop::Tell(TTL_EXPIRED, icmp::Why::Expired));
        }
        let to = self.routes.hop(IpAddr::V6(ip.dst)).ok_or(Stop::Tell(NO_ROUTE, icmp::Why::NoRoute))?;
        let done = packet.put_u8(net + 7, ip.hop_limit - 1);
        if done { Ok((to, ip.dst)) } else { Err(Stop::Drop(MALFORMED)) }
    }

    /// Sends an ICMP error to the sender of a packet, if one may be sent.
    fn tell(&mut self, packet: &Packet, why: icmp::Why, now_ns: u64, link: &mut Link) {
        let second = now_ns / SECOND_NS;
        if self.second != second {
            (self.second, self.errors) = (second, 0);
        }
        let interface = packet.interface();
        let error = icmp::error(packet, why, &self.routes, interface);
        let told = error.filter(|_| self.errors < ERRORS_PER_S).and_then(|frame| link.make_from(&frame));
        match told {
            Some(error) => {
                self.errors += 1;
                link.send(error, interface);
                link.count(ERRORS, 1);
            }
            None => link.count(SUPPRESSED, 1),
        }
    }
}

impl Nf for Router {
    fn idle(&mut self, link: &mut Link) {
        self.settle(self.clock.now_ns(), link);
    }

    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        let mut forwarded = [0; 2];
        // No packet may overtake a waiting one.
        if self.waiting.is_due(batch.link()) {
            self.settle(now_ns, batch.link());
        }
        while let Some(mut packet) = batch.next() {
            match self.forward(&mut packet) {
                Ok(Decision { interface, to, counter }) => {
                    forwarded[counter] += 1;
                    match to {
                        Recipient::Known(mac) => self.leave(packet, interface, mac, batch.link()),
                        Recipient::Neighbour(next) => {
                            self.leave_by(packet, interface, next, now_ns, batch.link());
                        }
                    }
                }
                Err(Stop::Drop(reason)) => batch.drop_for(packet, reason),
                Err(Stop::Tell(reason, why)) => {
                    self.tell(&packet, why, now_ns, batch.link());
                    batch.drop_for(packet, reason);
                }
            }
        }
        forwarded.iter().enumerate().for_each(|(counter, by)| batch.link().count(counter, *by));
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("l3fwd").reasons(&REASONS).counters(&COUNTERS).makes_packets();
    nf::run_with(&options, Router::start)
}
