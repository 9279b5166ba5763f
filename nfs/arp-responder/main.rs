//! Answers ARP requests and IPv6 neighbour solicitations for the configured addresses.

use millrace_nfs::Prefix;
use millrace_nfs::configuration::{interface, mac, read};
use nf::{Batch, Nf, Options, Packet};
use packet::view::ethernet::EthernetFacts;
use packet::view::nd::{self, Neighbor};
use packet::view::{Arp, Ethernet, Ipv6, arp, ethernet, icmp6, ipv6, protocol};
use packet::{Access, MacAddr, checksum, parse};
use std::net::{IpAddr, Ipv6Addr};

millrace_nfs::numbered! { REASONS from 1:
    ANSWERED "answered", NOT_OURS "not-ours", MALFORMED "malformed", NO_SLOT "no-slot",
}

millrace_nfs::numbered! { COUNTERS from 0:
    ARP_REPLIES "arp-replies", ADVERTISEMENTS "nd-advertisements", PASSED "passed",
}

struct Responder {
    addresses: Vec<Address>,
    /// Whether all other packets are dropped and not passed on.
    is_alone: bool,
}

struct Address {
    ip: Prefix,
    mac: MacAddr,
    interface: Option<usize>,
}

/// The kind of a packet for this NF.
enum Asked {
    /// A request, and the frame that answers it.
    Answer(Vec<u8>, usize),
    /// A request that another host answers, or another packet.
    Other,
    /// A malformed request.
    Wrong,
}

impl Responder {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Responder, String> {
        read(config, |keys| {
            let addresses = keys.tables("address", |keys| {
                let ip = keys.required("ip", str::parse);
                let mac = keys.required("mac", mac);
                let interface = keys.value("interface", interface(interfaces));
                Some(Address { ip: ip?, mac: mac?, interface })
            });
            if addresses.is_empty() {
                keys.mistake("there is nothing to answer for: name addresses in [[address]]");
            }
            let is_alone = keys.choice("others", &[("pass", false), ("drop", true)], false);
            Responder { addresses, is_alone }
        })
    }

    fn known(&self, ip: IpAddr, interface: usize) -> Option<&Address> {
        let is_here = |address: &&Address| address.interface.is_none_or(|number| number == interface);
        self.addresses.iter().filter(is_here).find(|address| address.ip.contains(ip))
    }

    fn asked(&self, packet: &Packet) -> Asked {
        match parse::frame(packet, 0) {
            layers if layers.vlan_count > 0 => Asked::Other,
            layers if layers.ethertype == ethernet::ARP => self.arp(packet),
            layers if layers.is_ipv6() && layers.ip_proto == Some(protocol::ICMP6) && !layers.is_fragment => {
                match layers.trans {
                    Some(trans) if packet.u8(trans) == Some(icmp6::NEIGHBOR_SOLICITATION) => {
                        self.solicitation(packet, trans, layers.end)
                    }
                    _ => Asked::Other,
                }
            }
            _ => Asked::Other,
        }
    }

    fn arp(&self, packet: &Packet) -> Asked {
        let Ok(asked) = Arp::at(ethernet::HEADER_BYTES).check(packet) else { return Asked::Wrong };
        if asked.op != arp::REQUEST {
            return Asked::Other;
        }
        // A request for the sender's own address is an announcement, or checks whether another host has it
        // (RFC 5227): with a sender of 0.0.0.0 it needs an answer.
        if asked.sender_ip == asked.target_ip {
            return Asked::Other;
        }
        let Some(&Address { mac, .. }) = self.known(asked.target_ip.into(), packet.interface()) else {
            return Asked::Other;
        };
        let mut frame = vec![0; ethernet::HEADER_BYTES + arp::MESSAGE_BYTES];
        let head = EthernetFacts { dst: asked.sender_mac, src: mac, ethertype: ethernet::ARP };
        let facts = arp::ArpFacts {
            op: arp::REPLY,
            sender_mac: mac,
            sender_ip: asked.target_ip,
            target_mac: asked.sender_mac,
            target_ip: asked.sender_ip,
        };
        let written = Ethernet::at(0).write(&mut frame, head)
            && Arp::at(ethernet::HEADER_BYTES).write(&mut frame, facts);
        if written { Asked::Answer(frame, ARP_REPLIES) } else { Asked::Wrong }
    }

    /// Handles a neighbour solicitation (RFC 4861, sections 7.1.1 and 7.2.4).
    fn solicitation(&self, packet: &Packet, trans: usize, end: usize) -> Asked {
        let (Ok(ethernet), Ok(ip), Ok(asked)) = (
            Ethernet::at(0).check(packet),
            Ipv6::at(ethernet::HEADER_BYTES).check(packet),
            Neighbor::check(packet, trans, end),
        ) else {
            return Asked::Wrong;
        };
        let bytes = end.saturating_sub(trans);
        let pseudo = checksum::pseudo_ipv6(ip.src, ip.dst, protocol::ICMP6, bytes as u32);
        let is_whole = checksum::verify_icmp6(packet, trans, bytes, pseudo) == checksum::Validity::Good;
        if ip.hop_limit != 255 || !is_whole {
            return Asked::Wrong;
        }
        let Some(&Address { mac, ip: own, .. }) = self.known(asked.target.into(), packet.interface()) else {
            return Asked::Other;
        };
        // A sender without an address can only be answered by multicast.
        let detects = ip.src.is_unspecified();
        let to = if detects { Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1) } else { ip.src };
        let to_mac = if detects { nd::multicast_mac(to) } else { asked.link_addr.unwrap_or(ethernet.src) };
        // An answer for a whole network must not override the hosts' own answers (RFC 4861, section 7.2.8).
        let overrides = if own.len() == 128 { nd::OVERRIDE } else { 0 };
        let answer = Neighbor {
            is_advertisement: true,
            flags: overrides | if detects { 0 } else { nd::SOLICITED },
            target: asked.target,
            link_addr: Some(mac),
        };
        let message_at = ethernet::HEADER_BYTES + ipv6::HEADER_BYTES;
        let mut frame = vec![0; message_at + answer.message_bytes()];
        let net = Ipv6::at(ethernet::HEADER_BYTES);
        let head = EthernetFacts { dst: to_mac, src: mac, ethertype: ethernet::IPV6 };
        let written = Ethernet::at(0).write(&mut frame, head)
            && frame.put_u8(ethernet::HEADER_BYTES, 0x60)
            && frame.put_u16(ethernet::HEADER_BYTES + 4, answer.message_bytes() as u16)
            && frame.put_u8(ethernet::HEADER_BYTES + 6, protocol::ICMP6)
            && frame.put_u8(ethernet::HEADER_BYTES + 7, 255)
            && net.set_src(&mut frame, asked.target)
            && net.set_dst(&mut frame, to)
            && answer.write(&mut frame, message_at, asked.target, to);
        if written { Asked::Answer(frame, ADVERTISEMENTS) } else { Asked::Wrong }
    }
}

impl Nf for Responder {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        while let Some(packet) = batch.next() {
            let interface = packet.interface();
            match self.asked(&packet) {
                Asked::Wrong => batch.drop_for(packet, MALFORMED),
                Asked::Other if self.is_alone => batch.drop_for(packet, NOT_OURS),
                Asked::Other => {
                    batch.link().count(PASSED, 1);
                    batch.link().pass(packet);
                }
                Asked::Answer(frame, counter) => match batch.link().make_from(&frame) {
                    Some(answer) => {
                        batch.send(answer, interface);
                        batch.link().count(counter, 1);
                        batch.drop_for(packet, ANSWERED);
                    }
                    None => batch.drop_for(packet, NO_SLOT),
                },
            }
        }
    }
}

fn main() -> Result<(), nf::NfError> {
    let options = Options::new("arp-responder").reasons(&REASONS).counters(&COUNTERS).makes_packets();
    nf::run_with(&options, |link| Responder::read(link.config(), link.interfaces()))
}
