//! Frames built by etherparse, read here; and mutations of them, read by both.

mod harness;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv4Options, Ipv6Extensions,
    Ipv6FragmentHeader, Ipv6Header, Ipv6RawExtHeader, PacketBuilder, TcpOptionElement, VlanId,
};
use packet::checksum::{self, Validity};
use packet::view::{Ipv4, Ipv6, Tcp, tcp};
use packet::{FlowKey, parse};
use proptest::prelude::*;

/// What a frame is built from.
#[derive(Clone, Debug)]
struct Recipe {
    tags: usize,
    v6: bool,
    option_words: usize,
    extensions: u8,
    transport: u8,
    tcp_options: usize,
    addrs: (u128, u128),
    ports: (u16, u16),
    payload: Vec<u8>,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    (
        (0..3usize, any::<bool>(), 0..=10usize, 0..16u8, 0..3u8, 0..5usize),
        any::<(u128, u128)>(),
        any::<(u16, u16)>(),
        proptest::collection::vec(any::<u8>(), 0..200),
    )
        .prop_map(
            |((tags, v6, option_words, extensions, transport, tcp_options), addrs, ports, payload)| Recipe {
                tags,
                v6,
                option_words,
                extensions,
                transport,
                tcp_options,
                addrs,
                ports,
                payload,
            },
        )
}

impl Recipe {
    fn addrs(&self) -> (IpAddr, IpAddr) {
        let addr = |bits: u128| match self.v6 {
            true => IpAddr::V6(Ipv6Addr::from_bits(bits)),
            false => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        };
        (addr(self.addrs.0), addr(self.addrs.1))
    }

    fn protocol(&self) -> u8 {
        match (self.transport, self.v6) {
            (0, _) => 6,
            (1, _) => 17,
            (_, false) => 1,
            (_, true) => 58,
        }
    }

    fn ip(&self) -> IpHeaders {
        match self.addrs() {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                // No-operation options: any number of words.
                let options = Ipv4Options::try_from(vec![1; self.option_words * 4].as_slice()).unwrap();
                let header = Ipv4Header {
                    options,
                    time_to_live: 64,
                    protocol: IpNumber(0),
                    source: src.octets(),
                    destination: dst.octets(),
                    ..Ipv4Header::default()
                };
                IpHeaders::Ipv4(header, Ipv4Extensions::default())
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let header = Ipv6Header {
                    hop_limit: 64,
                    source: src.octets(),
                    destination: dst.octets(),
                    ..Ipv6Header::default()
                };
                let raw = |wanted: u8, len: usize| {
                    (self.extensions & wanted != 0)
                        .then(|| Ipv6RawExtHeader::new_raw(IpNumber(0), &vec![0; len]).unwrap())
                };
                let atomic = Ipv6FragmentHeader::new(IpNumber(0), IpFragOffset::ZERO, false, 7);
                let extensions = Ipv6Extensions {
                    hop_by_hop_options: raw(1, 6),
                    destination_options: raw(2, 14),
                    fragment: (self.extensions & 4 != 0).then_some(atomic),
                    ..Ipv6Extensions::default()
                };
                IpHeaders::Ipv6(header, extensions)
            }
            _ => unreachable!("both of one family"),
        }
    }

    fn build(&self) -> Vec<u8> {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let id = |id| VlanId::try_new(id).unwrap();
        let ip = match self.tags {
            0 => link.ip(self.ip()),
            1 => link.single_vlan(id(100)).ip(self.ip()),
            _ => link.double_vlan(id(200), id(100)).ip(self.ip()),
        };
        let mut frame = Vec::new();
        let (src, dst) = self.ports;
        match (self.transport, self.v6) {
            (0, _) => {
                let options = [
                    TcpOptionElement::MaximumSegmentSize(1460),
                    TcpOptionElement::SelectiveAcknowledgementPermitted,
                    TcpOptionElement::Noop,
                    TcpOptionElement::Timestamp(1, 2),
                ];
                let tcp = ip.tcp(src, dst, 1, 4096).options(&options[..self.tcp_options]).unwrap();
                tcp.write(&mut frame, &self.payload).unwrap();
            }
            (1, _) => ip.udp(src, dst).write(&mut frame, &self.payload).unwrap(),
            (_, false) => ip.icmpv4_echo_request(src, dst).write(&mut frame, &self.payload).unwrap(),
            (_, true) => ip.icmpv6_echo_request(src, dst).write(&mut frame, &self.payload).unwrap(),
        }
        frame
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_frame_built_by_etherparse_reads_as_it_was_built(recipe in recipe(), padding in 0..20usize) {
        let mut frame = recipe.build();
        let end = frame.len();
        frame.extend(vec![0xee; padding]);
        let layers = parse::frame(&frame, 0);
        prop_assert_eq!(layers.error, None);
        prop_assert_eq!(layers.vlan_count, recipe.tags);
        prop_assert_eq!(layers.net, Some(14 + 4 * recipe.tags));
        prop_assert_eq!(layers.end, end, "padding is not part of the packet");
        prop_assert_eq!(layers.ip_proto, Some(recipe.protocol()));
        prop_assert!(!layers.is_fragment);
        let key = FlowKey::of(&frame, &layers).unwrap();
        prop_assert_eq!((key.src, key.dst), recipe.addrs());
        let icmp = (recipe.ports.0, recipe.ports.0);
        prop_assert_eq!((key.src_port, key.dst_port), if recipe.transport < 2 { recipe.ports } else { icmp });

        let (net, trans) = (layers.net.unwrap(), layers.trans.unwrap());
        let len = layers.trans_bytes();
        let pseudo = if recipe.v6 {
            let facts = Ipv6::at(net).check(&frame).unwrap();
            checksum::pseudo_ipv6(facts.src, facts.dst, recipe.protocol(), len as u32)
        } else {
            let facts = Ipv4::at(net).check(&frame).unwrap();
            prop_assert!(facts.check_sum().is_ok());
            prop_assert_eq!(facts.options().iter().count(), recipe.option_words * 4);
            checksum::pseudo_ipv4(facts.src, facts.dst, recipe.protocol(), len as u16)
        };
        let verdict = match (recipe.transport, recipe.v6) {
            (0, _) => checksum::verify_tcp(&frame, trans, len, pseudo),
            (1, _) => checksum::verify_udp(&frame, trans, len, pseudo),
            (_, false) => checksum::verify_icmp(&frame, trans, len),
            (_, true) => checksum::verify_icmp6(&frame, trans, len, pseudo),
        };
        prop_assert_eq!(verdict, Validity::Good);
        if recipe.transport == 0 && recipe.tcp_options == 4 {
            let options = Tcp::at(trans).check(&frame, end).unwrap().options;
            let read: Vec<_> = options.iter().map(|option| tcp::TcpOption::from(option.unwrap())).collect();
            prop_assert_eq!(&read[..3], &[tcp::TcpOption::Mss(1460), tcp::TcpOption::SackPermitted, tcp::TcpOption::Nop]);
            prop_assert_eq!(read[3], tcp::TcpOption::Timestamps(1, 2));
        }
    }

    #[test]
    fn mutations_are_read_alike(
        recipe in recipe(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        header_changes in proptest::collection::vec((12..80usize, prop_oneof![any::<u8>(), 0..=60u8]), 0..4),
        cut in any::<prop::sample::Index>(), cuts in any::<bool>(),
    ) {
        let mut frame = recipe.build();
        for (index, byte) in changes {
            *index.get_mut(&mut frame) = byte;
        }
        for (at, byte) in header_changes {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        }
        if cuts {
            frame.truncate(cut.index(frame.len()));
        }
        harness::packet_views(&frame);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        harness::packet_views(&bytes);
    }

    #[test]
    fn no_bytes_behind_a_plausible_start_panic(
        ethertype in proptest::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x0806, 0x88e5]),
        first in prop_oneof![Just(0x45u8), Just(0x60), Just(0x4f), any::<u8>()],
        rest in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut frame = vec![2; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.push(first);
        frame.extend(rest);
        harness::packet_views(&frame);
    }
}
