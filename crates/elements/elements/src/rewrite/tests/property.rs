//! Properties of translation, over flows at random.

use super::{ACK, SECOND_NS, seen, tcp, udp};
use crate::testing::{Exit, Rig, TestPacket};
use proptest::prelude::*;
use std::collections::HashMap;

const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "192.168.255.254"];
const REMOTES: [&str; 3] = ["198.51.100.1", "198.51.100.2", "8.8.8.8"];

/// A flow: source, source port, destination, destination port, whether TCP.
type Flow = (usize, u16, usize, u16, bool);

fn packet(flow: Flow, payload: &[u8]) -> TestPacket {
    let (src, sport, dst, dport, is_tcp) = flow;
    let (from, to) = ((ADDRESSES[src], sport), (REMOTES[dst], dport));
    if is_tcp { tcp(from, to, ACK, payload) } else { udp(from, to, payload) }
}

fn flows() -> impl Strategy<Value = Vec<Flow>> {
    prop::collection::vec((0..4usize, 1..40u16, 0..3usize, 1..4u16, any::<bool>()), 1..80)
}

fn configs() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "pattern 203.0.113.1 20-80 - - 0 1, drop, SEED 1",
        "pattern 203.0.113.1 20-80# - - 0 1, drop, SEED 1",
        "pattern 203.0.113.1 20-5000? - - 0 1, drop, SEED 1",
        "pattern 203.0.113.1 20-80 - - 0 1, drop, SEED 1, MAPPING ENDPOINT_INDEPENDENT",
        "pattern 203.0.113.1 1-65535 - - 0 1, drop, SEED 1, MAPPING_CAPACITY 20, UDP_GUARANTEE 0, TCP_GUARANTEE 0",
    ])
}

/// The packet's addresses and ports changed places.
fn turned(bytes: &[u8]) -> TestPacket {
    let mut reply = bytes.to_vec();
    reply[12..20].rotate_left(4);
    reply[20..24].rotate_left(2);
    TestPacket::ip(&reply)
}

/// Addresses and ports outside, and whether TCP.
type Outside = ((String, u16, String, u16), bool);

/// What the tables still hold is what must stay unlike.
fn live(rig: &mut Rig, mut outside: HashMap<Outside, Flow>) -> HashMap<Outside, Flow> {
    let live = [rig.read("udp_table"), rig.read("tcp_table")];
    outside.retain(|((src, sport, dst, dport), is_tcp), _| {
        live[usize::from(*is_tcp)].contains(&format!("=> ({src}, {sport}, {dst}, {dport})"))
    });
    outside
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reply_comes_back_to_where_the_flow_began(flows in flows(), config in configs(), payload in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut rig = Rig::new("IPRewriter", config, 2, 2);
        for flow in flows {
            let sent = packet(flow, &payload);
            let out = rig.push_one(0, &sent);
            if out.exit != Exit::Port(0) {
                // Established connections are not replaced by new ones.
                let is_full = config.contains("MAPPING_CAPACITY");
                let reason = if is_full { "table-full" } else { "port-exhausted" };
                prop_assert_eq!(out.exit, Exit::Dropped(reason.into()));
                continue;
            }
            seen(&out.packet.bytes);
            let back = rig.push_one(1, &turned(&out.packet.bytes));
            prop_assert_eq!(back.exit, Exit::Port(1));
            seen(&back.packet.bytes);
            prop_assert_eq!(back.packet.bytes, turned(&sent.bytes).bytes);
        }
    }

    #[test]
    fn no_two_live_flows_look_alike_outside(flows in flows(), config in configs(), seconds in 0..400u64) {
        let mut rig = Rig::new("IPRewriter", config, 2, 2);
        let mut outside: HashMap<_, Flow> = HashMap::new();
        for (number, flow) in flows.into_iter().enumerate() {
            let out = rig.push_one(0, &packet(flow, b""));
            // In a full table, the flow has replaced another one.
            if config.contains("MAPPING_CAPACITY") {
                outside = live(&mut rig, outside);
            }
            if out.exit == Exit::Port(0) {
                let who = outside.insert((seen(&out.packet.bytes), flow.4), flow);
                prop_assert!(who.is_none_or(|who| who == flow), "{:?} and {:?}", who, flow);
            }
            if number % 16 == 15 {
                rig.advance(seconds * SECOND_NS / 8);
                outside = live(&mut rig, outside);
            }
        }
    }
}
