//! Bounded parse of a frame: the start and kind of each header.
//!
//! The parse never fails and never loops: it follows at most two tags and eight IPv6 extension headers,
//! records the first error in [`Layers::error`], and keeps the layers before it. It reads each byte at most
//! once.
//!
//! It is for steering and for descriptions: it checks no checksums, and finds a transport header without
//! checking it. An invalid frame still has the layers that can be trusted:
//!
//! - a total length past the packet's end is an error, but `trans` is set (captures cut frames off);
//! - a wrong version, a wrong header length or a truncated header leaves `trans` unset.

use crate::view::ethernet::{self, Ethernet};
use crate::view::ipv4::Ipv4;
use crate::view::ipv6::{Ipv6, extension};
use crate::view::vlan;
use crate::{Access, Error, Header};

/// The layers of a frame. Offsets are in bytes from the start of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    /// Where the Ethernet header begins, if the packet has one.
    pub mac: Option<usize>,
    /// Where the network header begins: the first byte after Ethernet and its tags. Unset if the frame ends
    /// there or has an 802.3 length.
    pub net: Option<usize>,
    /// Where the transport header begins. Unset for later fragments, for headers that are not IP, and if the
    /// IP payload is empty.
    pub trans: Option<usize>,
    /// Where the IP packet ends: its announced end or the end of the packet, whichever comes first.
    /// Padding follows. The end of the packet if it is not IP.
    pub end: usize,
    /// VLAN tag control information, outermost first.
    pub vlan: [u16; vlan::MAX_TAGS],
    /// Number of tags.
    pub vlan_count: usize,
    /// EtherType after the tags, or the 802.3 length; 0 if the frame is too short.
    pub ethertype: u16,
    /// IPv4 protocol, or IPv6 next header after the extension headers. Set for IP only. For a later fragment,
    /// the protocol of the last known header.
    pub ip_proto: Option<u8>,
    /// Whether it is an IP fragment (an atomic IPv6 fragment is whole).
    pub is_fragment: bool,
    /// Whether it is the fragment with offset 0.
    pub is_first_fragment: bool,
    /// The first error.
    pub error: Option<Error>,
}

impl Layers {
    /// Whether the network header is a valid IPv4 header.
    #[inline]
    pub const fn is_ipv4(&self) -> bool {
        self.ip_proto.is_some() && self.ethertype == ethernet::IPV4
    }

    /// Whether the network header is a valid IPv6 header.
    #[inline]
    pub const fn is_ipv6(&self) -> bool {
        self.ip_proto.is_some() && self.ethertype == ethernet::IPV6
    }

    /// Bytes of the IP payload that are present, from the transport header on.
    #[inline]
    pub fn trans_bytes(&self) -> usize {
        self.trans.map_or(0, |trans| self.end.saturating_sub(trans))
    }

    /// Sets `trans` where a payload begins, unless it is empty.
    #[inline]
    fn found_payload(&mut self, at: usize) {
        self.trans = (at < self.end).then_some(at);
    }
}

/// Parses a frame whose Ethernet header begins at `mac`.
#[inline]
pub fn frame<A: Access + ?Sized>(packet: &A, mac: usize) -> Layers {
    let none = Layers { mac: Some(mac), end: packet.len(), ..Layers::default() };
    let ethertype = match Ethernet::at(mac).check(packet) {
        Ok(facts) => facts.ethertype,
        Err(error) => return Layers { mac: None, error: Some(error), ..none },
    };
    let tags = match vlan::walk(packet, mac + ethernet::HEADER_BYTES, ethertype) {
        Ok(tags) => tags,
        Err(error) => return Layers { ethertype, error: Some(error), ..none },
    };
    let behind = Layers { vlan: tags.tci, vlan_count: tags.count, ethertype: tags.ethertype, ..none };
    if tags.ethertype < ethernet::FIRST_TYPE {
        return behind;
    }
    with_network(packet, tags.payload, behind)
}

/// Parses a packet without Ethernet header, whose network header begins at `net` and has the given type.
#[inline]
pub fn network<A: Access + ?Sized>(packet: &A, net: usize, ethertype: u16) -> Layers {
    with_network(packet, net, Layers { end: packet.len(), ethertype, ..Layers::default() })
}

/// Parses a packet that begins with an IPv4 or IPv6 header, depending on its version.
#[inline]
pub fn raw_ip<A: Access + ?Sized>(packet: &A) -> Layers {
    match packet.u8(0).map(|byte| byte >> 4) {
        Some(6) => network(packet, 0, ethernet::IPV6),
        // The IPv4 check reports an unknown version.
        _ => network(packet, 0, ethernet::IPV4),
    }
}

#[inline]
fn with_network<A: Access + ?Sized>(packet: &A, net: usize, mut layers: Layers) -> Layers {
    if net >= packet.len() {
        layers.error = match layers.ethertype {
            ethernet::IPV4 => Some((Header::Ipv4, 20)),
            ethernet::IPV6 => Some((Header::Ipv6, 40)),
            _ => None,
        }
        .map(|(header, need_bytes)| Error::Truncated { header, need_bytes, have_bytes: 0 });
        return layers;
    }
    layers.net = Some(net);
    let result = match layers.ethertype {
        ethernet::IPV4 => with_ipv4(packet, net, &mut layers),
        ethernet::IPV6 => with_ipv6(packet, net, &mut layers),
        _ => Ok(()),
    };
    layers.error = result.err();
    layers
}

#[inline]
fn with_ipv4<A: Access + ?Sized>(packet: &A, net: usize, layers: &mut Layers) -> Result<(), Error> {
    let ip = Ipv4::at(net).check_header(packet, usize::MAX)?;
    let have_bytes = layers.end - net;
    layers.end = layers.end.min(ip.end);
    layers.ip_proto = Some(ip.protocol);
    layers.is_fragment = ip.is_fragment();
    layers.is_first_fragment = layers.is_fragment && ip.fragment_offset == 0;
    if ip.fragment_offset == 0 {
        layers.found_payload(ip.payload);
    }
    if have_bytes < ip.total_len {
        return Err(Error::Truncated { header: Header::Ipv4, need_bytes: ip.total_len, have_bytes });
    }
    Ok(())
}

#[inline]
fn with_ipv6<A: Access + ?Sized>(packet: &A, net: usize, layers: &mut Layers) -> Result<(), Error> {
    let ip = Ipv6::at(net).check_header(packet, usize::MAX)?;
    let have_bytes = layers.end - net;
    layers.end = layers.end.min(ip.end);
    layers.ip_proto = Some(ip.next_header);
    let extensions = extension::walk(packet, ip.payload, layers.end, ip.next_header)?;
    layers.ip_proto = Some(extensions.next_header);
    layers.is_fragment = extensions.fragment.is_some_and(extension::Fragment::is_partial);
    layers.is_first_fragment = layers.is_fragment && !extensions.is_later_fragment();
    if !extensions.is_later_fragment() {
        layers.found_payload(extensions.payload);
    }
    let need_bytes = 40 + ip.payload_len;
    if have_bytes < need_bytes {
        return Err(Error::Truncated { header: Header::Ipv6, need_bytes, have_bytes });
    }
    Ok(())
}
