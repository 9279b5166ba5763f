//! The rewriter classes.

use super::flavor::Flavor;
use super::flow::Kind;
use super::{page, rewriter};
use element::{Class, PortCodes, StateScope};
use packet::view::protocol::{DCCP, ICMP, TCP, UDP};

const IP: Flavor = Flavor {
    class: "IPRewriter",
    kind: Kind::Ports,
    protocols: &[TCP, UDP],
    other_protocol: "not-tcp-or-udp",
    has_tcp_timeouts: true,
    has_udp_timeouts: true,
    has_dst_anno: true,
    timeout_s: 300,
};

const TCP_ONLY: Flavor = Flavor {
    class: "TCPRewriter",
    protocols: &[TCP],
    other_protocol: "not-tcp",
    has_udp_timeouts: false,
    ..IP
};

const UDP_MOSTLY: Flavor =
    Flavor { class: "UDPRewriter", protocols: &[TCP, UDP, DCCP], has_tcp_timeouts: false, ..IP };

const PING: Flavor = Flavor {
    class: "ICMPPingRewriter",
    kind: Kind::Ping,
    protocols: &[ICMP],
    other_protocol: "not-icmp-echo",
    has_udp_timeouts: false,
    ..UDP_MOSTLY
};

const PAIR: Flavor = Flavor {
    class: "IPAddrPairRewriter",
    kind: Kind::Pair,
    protocols: &[],
    has_udp_timeouts: false,
    has_dst_anno: false,
    timeout_s: 7200,
    ..UDP_MOSTLY
};

const ADDRESS: Flavor = Flavor { class: "IPAddrRewriter", kind: Kind::Address, ..PAIR };

macro_rules! classes {
    ($($name:ident, $flavor:ident, $summary:literal, $page:expr;)*) => {$(
        #[doc = concat!("The class that ", $summary, ".")]
        pub const $name: Class = Class {
            name: $flavor.class,
            summary: $summary,
            page: $page,
            codes: PortCodes::new("1-/1-", "h/h"),
            state: StateScope::PerFlow,
            make: |cx| rewriter::make(cx, &const { $flavor }),
        };
    )*};
}

classes! {
    IP_REWRITER, IP, "rewrites TCP/UDP packets' addresses and ports", page::IP;
    TCP_REWRITER, TCP_ONLY, "rewrites TCP packets' addresses and ports", page::TCP;
    UDP_REWRITER, UDP_MOSTLY, "rewrites TCP/UDP packets' addresses and ports", page::UDP;
    PING_REWRITER, PING, "rewrites ICMP echo requests and replies", page::PING;
    PAIR_REWRITER, PAIR, "rewrites IP packets' addresses by address pair", page::PAIR;
    ADDRESS_REWRITER, ADDRESS, "rewrites IP packets' addresses", page::ADDRESS;
}
