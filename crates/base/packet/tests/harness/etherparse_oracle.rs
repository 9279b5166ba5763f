//! The parse against etherparse, an independent reader.
//!
//! Known differences, all deliberate, and each asserted to be the only reason for a disagreement:
//!
//! | frame | here | etherparse |
//! |---|---|---|
//! | three tags | refused | followed |
//! | MACsec | another EtherType | followed |
//! | more than 8 IPv6 extension headers | refused | followed |
//! | mobility, HIP, Shim6 headers | followed (RFC 7045) | the payload |
//! | IPv4 protocol 51 (AH) | the payload | followed |
//! | IPv6 payload length 0 | no payload | all that is there (jumbograms) |
//! | behind a later IPv6 fragment's header | not read | read as headers |
//! | transport of a first fragment | found | not read |
//! | transport header cut off or with a bad length | found, and judged by the view's `check` | refused |
//! | UDP length 0 | refused by `check` | all that is there |

use etherparse::err::{Layer, packet::SliceError};
use etherparse::{EtherType, LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use packet::view::ipv6::extension::is_extension;
use packet::view::{Icmp, Icmp6, Tcp, Udp};
use packet::{Error, Header, Layers};

const MACSEC: u16 = 0x88e5;
const AUTH: u8 = 51;

/// Where a part of `data` begins.
fn place(data: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - data.as_ptr() as usize
}

/// Asserts that both read `data` alike, as far as both accept it.
pub fn compare(data: &[u8], ours: &Layers) {
    if ours.ethertype == MACSEC {
        return;
    }
    let theirs = match SlicedPacket::from_ethernet(data) {
        Ok(theirs) => theirs,
        Err(error) => return we_refuse_too(ours, &error),
    };
    if theirs.link_exts.len() == SlicedPacket::LINK_EXTS_CAP {
        assert_eq!(ours.error, Some(Error::TooMany { header: Header::Vlan, limit: 2 }));
        return;
    }
    let tags = theirs.link_exts.iter().filter(|tag| matches!(tag, LinkExtSlice::Vlan(_)));
    assert_eq!(tags.count(), ours.vlan_count);
    let tci = |index: usize| match theirs.link_exts.get(index) {
        Some(LinkExtSlice::Vlan(tag)) => u16::from_be_bytes([tag.slice()[0], tag.slice()[1]]),
        _ => 0,
    };
    assert_eq!([tci(0), tci(1)], ours.vlan);
    let last = theirs.link_exts.last().and_then(|tag| tag.ether_payload()).map(|behind| behind.ether_type);
    let outer = theirs.link.as_ref().and_then(|link| link.ether_payload()).map(|behind| behind.ether_type);
    assert_eq!(last.or(outer), Some(EtherType(ours.ethertype)));
    match &theirs.net {
        Some(NetSlice::Ipv4(ip)) => {
            assert_eq!(ours.net, Some(place(data, ip.header().slice())));
            assert_eq!(ours.error, None);
            assert_eq!(ours.ip_proto, Some(ip.header().protocol().0));
            assert_eq!(ours.is_fragment, ip.header().is_fragmenting_payload());
            let payload = ip.payload();
            assert_eq!(ours.end, place(data, payload.payload) + payload.payload.len());
            if ours.ip_proto != Some(AUTH) {
                transport(data, ours, payload.payload, &theirs.transport);
            }
        }
        Some(NetSlice::Ipv6(ip)) => {
            assert_eq!(ours.net, Some(place(data, ip.header().slice())));
            if ip.header().payload_length() == 0 {
                return;
            }
            let payload = ip.payload();
            let unfollowed = is_extension(payload.ip_number.0);
            match ours.error {
                Some(Error::TooMany { header: Header::Ipv6Extension, limit: 8 }) => return,
                // Cut off inside a header that etherparse does not follow, or a later fragment's data
                // that looks like one.
                Some(_) => assert!(unfollowed, "{:?}", ours.error),
                None => {}
            }
            if unfollowed {
                return;
            }
            assert_eq!(ours.is_fragment, payload.fragmented);
            assert_eq!(ours.end, place(data, payload.payload) + payload.payload.len());
            let is_later = ours.is_fragment && !ours.is_first_fragment;
            if !is_later || !ours.ip_proto.is_some_and(is_extension) {
                assert_eq!(ours.ip_proto, Some(payload.ip_number.0));
            }
            transport(data, ours, payload.payload, &theirs.transport);
        }
        Some(NetSlice::Arp(arp)) => {
            assert_eq!(ours.net, Some(place(data, arp.slice())));
            assert_eq!((ours.ip_proto, ours.trans, ours.error), (None, None, None));
        }
        None => assert_eq!((ours.ip_proto, ours.trans, ours.error), (None, None, None)),
    }
}

fn transport(data: &[u8], ours: &Layers, payload: &[u8], theirs: &Option<TransportSlice<'_>>) {
    let is_later = ours.is_fragment && !ours.is_first_fragment;
    let expected = (!is_later && !payload.is_empty()).then(|| place(data, payload));
    assert_eq!(ours.trans, expected);
    let Some(at) = ours.trans else { return };
    match theirs {
        Some(TransportSlice::Tcp(tcp)) => {
            let facts = Tcp::at(at).check(data, ours.end).expect("etherparse takes it");
            assert_eq!((facts.src_port, facts.dst_port), (tcp.source_port(), tcp.destination_port()));
            assert_eq!((facts.seq, facts.ack), (tcp.sequence_number(), tcp.acknowledgment_number()));
            assert_eq!(facts.options.bytes(), tcp.options());
            assert_eq!(facts.payload, place(data, tcp.payload()));
        }
        Some(TransportSlice::Udp(udp)) if udp.length() == 0 => {
            assert_eq!(
                Udp::at(at).check(data, ours.end),
                Err(Error::BadLength { header: Header::Udp, found_bytes: 0 })
            );
        }
        Some(TransportSlice::Udp(udp)) => {
            let facts = Udp::at(at).check(data, ours.end).expect("etherparse takes it");
            assert_eq!((facts.src_port, facts.dst_port), (udp.source_port(), udp.destination_port()));
            assert_eq!((facts.len, facts.checksum), (usize::from(udp.length()), udp.checksum()));
            assert_eq!(facts.end, facts.payload + udp.payload().len());
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            let facts = Icmp::at(at).check(data, ours.end).expect("etherparse takes it");
            assert_eq!((facts.kind, facts.code), (icmp.type_u8(), icmp.code_u8()));
            assert_eq!((facts.checksum, facts.word.to_be_bytes()), (icmp.checksum(), icmp.bytes5to8()));
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            let facts = Icmp6::at(at).check(data, ours.end).expect("etherparse takes it");
            assert_eq!((facts.kind, facts.code), (icmp.type_u8(), icmp.code_u8()));
        }
        _ => {}
    }
}

/// What etherparse refuses below the transport header, the parse refuses as well.
fn we_refuse_too(ours: &Layers, theirs: &SliceError) {
    let is_ours = match theirs {
        SliceError::Len(error) => matches!(
            error.layer,
            Layer::Ethernet2Header
                | Layer::VlanHeader
                | Layer::Ipv4Header
                | Layer::Ipv4Packet
                | Layer::Ipv6Header
                | Layer::Ipv6Packet
        ),
        SliceError::Ip(_) | SliceError::Ipv4(_) | SliceError::Ipv6(_) => true,
        _ => false,
    };
    assert!(!is_ours || ours.error.is_some(), "taken here, refused by etherparse: {theirs:?} {ours:?}");
}
