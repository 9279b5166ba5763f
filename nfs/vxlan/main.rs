//! A VXLAN gateway (RFC 7348): it encapsulates frames of the local network in UDP for the other end of the
//! tunnel, and decapsulates those from there.

use millrace_nfs::configuration::{ipv4, mac, read};
use millrace_nfs::{check_pair, pass_each};
use nf::{Batch, Nf, Options, Packet};
use packet::view::ethernet::EthernetFacts;
use packet::view::{Ethernet, Ipv4, Udp, ethernet, ipv4, protocol, udp};
use packet::{Access, FlowKey, MacAddr, checksum, parse};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;

millrace_nfs::numbered! { REASONS from 1:
    TOO_BIG "too-big", NO_HEADROOM "no-headroom", NOT_VXLAN "not-vxlan", MALFORMED "malformed",
    OTHER_VNI "other-vni", OTHER_END "other-end", FRAGMENT "fragment",
}

const COUNTERS: [&str; 2] = ["encapsulated", "decapsulated"];

/// The interface of the local network; the other one is the tunnel's.
const LAN: usize = 0;
const VXLAN_BYTES: usize = 8;
/// Bytes of all headers that encapsulation adds.
const OUTER_BYTES: usize = ethernet::HEADER_BYTES + ipv4::HEADER_BYTES + udp::HEADER_BYTES + VXLAN_BYTES;
/// The flag for a valid VNI.
const HAS_VNI: u8 = 0x08;

/// An end of the tunnel.
#[derive(Clone, Copy)]
struct TunnelEnd {
    ip: Ipv4Addr,
    mac: MacAddr,
}

struct Gateway {
    vni: u32,
    local: TunnelEnd,
    remote: TunnelEnd,
    port: u16,
    ttl: u8,
    /// The MTU of the outer IP packets.
    mtu: usize,
    id: u16,
}

impl Gateway {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Gateway, String> {
        let gateway = read(config, |keys| {
            check_pair(keys, interfaces, "a gateway has two interfaces: the local network, then the tunnel");
            let vni = keys.required("vni", |text| {
                let vni = text.parse().ok().filter(|vni| *vni < 1 << 24);
                vni.ok_or_else(|| format!("{text} is no network identifier: 0 to 16777215"))
            });
            let local = (keys.required("local", ipv4), keys.required("local-mac", mac));
            let remote = (keys.required("remote", ipv4), keys.required("remote-mac", mac));
            let port = keys.integer("port", 1..=65_535, 4789) as u16;
            let ttl = keys.integer("ttl", 1..=255, 64) as u8;
            let mtu = keys.integer("mtu", 68..=9000, 1500) as usize;
            let end = |(ip, mac): (Option<Ipv4Addr>, Option<MacAddr>)| Some(TunnelEnd { ip: ip?, mac: mac? });
            Some(Gateway { vni: vni?, local: end(local)?, remote: end(remote)?, port, ttl, mtu, id: 0 })
        })?;
        gateway.ok_or_else(|| "the tunnel's ends are not named".into())
    }

    /// A source port derived from the flow: routers on the path distribute flows by it.
    fn source_port(packet: &Packet) -> u16 {
        let hash = match FlowKey::of(packet, &parse::frame(packet, 0)) {
            Some(key) => key.table_hash(0),
            None => {
                let mut hasher = DefaultHasher::new();
                packet.get::<12>(0).hash(&mut hasher);
                hasher.finish()
            }
        };
        // A dynamic port, as RFC 7348 section 5 recommends.
        49_152 + (hash % 16_384) as u16
    }

    /// Encapsulates a frame; else a drop reason.
    fn wrap(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let udp_bytes = udp::HEADER_BYTES + VXLAN_BYTES + packet.len();
        let ip_bytes = ipv4::HEADER_BYTES + udp_bytes;
        // The outer packet must not be fragmented (RFC 7348, section 4.3).
        if ip_bytes > self.mtu {
            return Err(TOO_BIG);
        }
        let source_port = Gateway::source_port(packet);
        let mut outer = [0; OUTER_BYTES];
        let head = EthernetFacts { dst: self.remote.mac, src: self.local.mac, ethertype: ethernet::IPV4 };
        self.id = self.id.wrapping_add(1);
        let net = ethernet::HEADER_BYTES;
        let ip = Ipv4::at(net);
        let trans = net + ipv4::HEADER_BYTES;
        let vxlan = trans + udp::HEADER_BYTES;
        let written = Ethernet::at(0).write(&mut outer, head)
            && outer.put_u8(net, 0x45)
            && outer.put_u16(net + 2, ip_bytes as u16)
            && outer.put_u16(net + 4, self.id)
            && outer.put_u16(net + 6, 0x4000) // Don't fragment.
            && ip.set_ttl(&mut outer, self.ttl)
            && outer.put_u8(net + 9, protocol::UDP)
            && ip.set_src(&mut outer, self.local.ip)
            && ip.set_dst(&mut outer, self.remote.ip)
            && checksum::set_ipv4_header(&mut outer, net, ipv4::HEADER_BYTES)
            && outer.put_u16(trans, source_port)
            && outer.put_u16(trans + 2, self.port)
            // No checksum: the inner frame has its own.
            && outer.put_u16(trans + 4, udp_bytes as u16)
            && outer.put_u8(vxlan, HAS_VNI)
            && outer.put_u32(vxlan + 4, self.vni << 8);
        if !written {
            return Err(MALFORMED);
        }
        if packet.push(&outer) { Ok(()) } else { Err(NO_HEADROOM) }
    }

    /// Decapsulates a frame; else a drop reason.
    fn unwrap(&self, packet: &mut Packet) -> Result<(), usize> {
        let head = Ethernet::at(0).check(packet).map_err(|_| MALFORMED)?;
        if head.ethertype != ethernet::IPV4 {
            return Err(NOT_VXLAN);
        }
        let ip = Ipv4::at(ethernet::HEADER_BYTES).check(packet).map_err(|_| MALFORMED)?;
        ip.check_sum().map_err(|_| MALFORMED)?;
        if ip.protocol != protocol::UDP {
            return Err(NOT_VXLAN);
        }
        if ip.dst != self.local.ip || ip.src != self.remote.ip {
            return Err(OTHER_END);
        }
        if ip.is_fragment() {
            return Err(FRAGMENT);
        }
        let udp = Udp::at(ip.payload).check(packet, ip.end).map_err(|_| MALFORMED)?;
        if udp.dst_port != self.port {
            return Err(NOT_VXLAN);
        }
        let pseudo = checksum::pseudo_ipv4(ip.src, ip.dst, protocol::UDP, udp.len as u16);
        if !checksum::verify_udp(packet, ip.payload, udp.len, pseudo).is_acceptable() {
            return Err(MALFORMED);
        }
        let header = packet.get::<VXLAN_BYTES>(udp.payload).ok_or(MALFORMED)?;
        let inner = udp.payload + VXLAN_BYTES;
        if header[0] & HAS_VNI == 0 || inner + ethernet::HEADER_BYTES > udp.end {
            return Err(MALFORMED);
        }
        if u32::from_be_bytes([0, header[4], header[5], header[6]]) != self.vni {
            return Err(OTHER_VNI);
        }
        // Bytes after the UDP packet are padding of the outer frame.
        packet.truncate(udp.end);
        if packet.pull(inner) { Ok(()) } else { Err(MALFORMED) }
    }
}

impl Nf for Gateway {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        pass_each(batch, |packet, _| {
            let wraps = packet.interface() == LAN;
            let done = if wraps { self.wrap(packet) } else { self.unwrap(packet) };
            done.map(|()| usize::from(!wraps))
        });
    }
}

fn main() -> Result<(), nf::NfError> {
    nf::run_with(&Options::new("vxlan").reasons(&REASONS).counters(&COUNTERS), |link| {
        Gateway::read(link.config(), link.interfaces())
    })
}
