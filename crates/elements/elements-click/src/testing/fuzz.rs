//! Hostile packets through elements, for fuzzing.
//!
//! Input: a byte that chooses one of [`SETUPS`], then steps of a head of four bytes ([`Step`]) and a
//! packet's bytes. The rig of a setup is built once, because compiling is slow; each input starts with a
//! new element, so that it shows the same whatever ran before.

use super::{Rig, TestPacket};
use element::configure::Shape;
use packet::anno;
use packet::checksum;
use packet::view::protocol::{ICMP, TCP, UDP};
use shm::descriptor::HEADROOM;
use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::net::Ipv4Addr;

/// Class, configuration, wired inputs and outputs. Stored inputs name them by their place: new ones go to
/// the end.
const SETUPS: &[(&str, &str, usize, usize)] = &[
    ("CheckIPHeader", "BADSRC 10.0.0.255, DETAILS true", 1, 2),
    ("CheckIPHeader", "14, VERBOSE true", 1, 1),
    ("IPReassembler", "HIMEM 3000, MAX_MTU_ANNO 46", 1, 2),
    ("IPFragmenter", "68, false", 1, 2),
    ("IPFragmenter", "576", 1, 1),
    ("ICMPError", "192.0.2.1, parameterproblem, erroratptr", 1, 1),
    ("ICMPError", "192.0.2.1, redirect, host, 10.0.0.255, MTU 200", 1, 1),
    ("ICMPError", "192.0.2.1, unreachable, needfrag, PMTU 1400", 1, 1),
    ("IPRewriter", "pattern 203.0.113.1 1024-1027# - - 0 1, pass 1, SEED 1", 2, 2),
    (
        "IPRewriter",
        "pattern 203.0.113.1 1024-1027# - - 0 1, drop, MAPPING ENDPOINT_INDEPENDENT, SEED 1",
        2,
        2,
    ),
    ("ICMPPingRewriter", "pattern 203.0.113.1 1024-65535# - - 0 1, drop", 2, 2),
    ("TCPRewriter", "pattern 203.0.113.1 1024-65535# - - 0 1, pass 1", 2, 2),
    ("IPAddrPairRewriter", "pattern 203.0.113.1-203.0.113.9# - 0 1, keep 1 0", 2, 2),
    ("ARPResponder", "10.0.0.1 10.1.0.0/16 02:00:00:00:00:aa, 0/0 02:00:00:00:00:bb", 1, 2),
    ("ARPQuerier", "10.0.0.1/24, 02:00:00:00:00:aa, ENTRY_PACKET_CAPACITY 2, CAPACITY 3", 2, 2),
    ("IPGWOptions", "18.26.4.24, 18.26.4.25 18.26.4.26", 1, 2),
    ("CheckTCPHeader", "DETAILS true", 1, 2),
    ("CheckUDPHeader", "VERBOSE true", 1, 1),
    ("CheckICMPHeader", "VERBOSE true, DETAILS true", 1, 2),
    ("ICMPPingResponder", "", 1, 2),
    ("CheckIP6Header", "", 1, 2),
    ("ICMP6Error", "2001:db8::ff, 4, 1", 1, 1),
    ("ICMP6Error", "2001:db8::ff, 2, 0", 1, 1),
    ("IP6NDAdvertiser", "2001:db8::5 00:00:C0:AE:67:EF, 2001:db8:5::/48 2:0:0:0:0:9", 1, 1),
    ("IP6NDSolicitor", "2001:db8::1, 00:00:C0:AE:67:EF", 2, 2),
    ("IPFilter", "allow dst tcp port 80 and tcp opt syn, deny icmp type 8, allow ip frag, drop all", 1, 2),
    ("IPClassifier", "src net 10.0.0.0/8 and udp, ip[8] < 0x20, -", 1, 3),
    ("DecIPTTL", "", 1, 2),
    ("VLANDecap", "", 1, 1),
    ("SetTCPChecksum", "", 1, 1),
    ("IPPrint", "hostile, PAYLOAD HEX, ETHER true, ID true, LENGTH true", 1, 1),
    ("ARPPrint", "", 1, 1),
    ("EtherSwitch", "TIMEOUT 2", 2, 2),
    ("Peel", "vlan, mpls, gre, vxlan, geneve, vlan", 1, 1),
    ("Peel", "qinq, geneve, STRICT true", 1, 2),
    ("Dispatch", "vlan 1 or 2, vxlan and not vlan, mpls and not vlan", 1, 3),
    ("Dispatch", "all, tcp, vxlan 42 or net 10.0.0.0/8, qinq", 1, 4),
    ("FlowSwitch", "", 1, 3),
    ("OriginSwitch", "0, 1, OTHERWISE 2", 1, 3),
    ("Resolver", "lan, 10.0.0.1/24, 2001:db8::5/64, MAC 00:00:C0:AE:67:EF", 1, 2),
    ("IPInputCombo", "3, INTERFACES 10.0.0.7/24", 1, 1),
    ("IPOutputCombo", "3, 18.26.4.9, 200", 1, 5),
    ("EtherVLANEncap", "0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2, ANNO, NATIVE_VLAN 1", 1, 1),
    ("StripEtherVLANHeader", "NATIVE_VLAN -1", 1, 1),
    ("ICMPIPEncap", "10.0.0.1, 10.0.0.2, timestamp", 1, 1),
    ("UnstripIPHeader", "", 1, 1),
    ("ResetIPChecksum", "L4 true", 1, 1),
    ("Pad", "", 1, 1),
    ("Pad", "1500, RANDOM true", 1, 1),
    ("StoreData", "20, \\<01 02 03 04>, MASK \\<0f>, GROW true", 1, 1),
    ("NumberPacket", "60", 1, 1),
    ("CheckNumberPacket", "40, 1000", 1, 2),
    ("AddressTranslator", "1, false, 2001:db8::1 2001:db8:ffff::1, false", 2, 2),
    ("AddressTranslator", "0, true, true, false, 2001:db8:ffff::9 5000 5001", 2, 2),
    ("ProtocolTranslator46", "PREFIX 2001:db8:100::/40", 1, 2),
    ("ProtocolTranslator64", "PREFIX 2001:db8::/32, ERROR_SOURCE 1.2.3.4", 1, 1),
    ("AggregateIP", "tcp seq & 0xff0, INCREMENTAL true", 1, 2),
    ("AggregateIP", "data[0:4]", 1, 1),
    ("AggregateIPAddrPair", "", 1, 2),
    ("RegexClassifier", "\"[\\\\x00-\\\\x40]{3}(a|b)*\", \".\", PAYLOAD_ONLY true", 1, 2),
    ("AggregateCounter", "BYTES true, IP_BYTES true", 1, 2),
    ("ICMPPingSource", "10.0.0.1, 10.0.0.2", 1, 1),
    ("CheckIP6Header", "PROCESS_EH true", 1, 2),
    ("IP6Mirror", "", 1, 1),
    ("SetIP6FlowLabel", "0x12345", 1, 1),
    ("SetTransportChecksumIP6", "", 1, 1),
    ("UDPIP6Encap", "2001:db8::1, 1, DST_ANNO, 2", 1, 1),
    ("IP6Print", "hostile, CONTENTS true", 1, 1),
    ("ForceIP", "", 1, 1),
    ("ForceTCP", "0, true", 1, 1),
    ("ForceUDP", "", 1, 1),
    ("ForceICMP", "unreachable, host", 1, 1),
];

/// Slots of a rig's pool: enough for what steps put in and elements hold.
const SLOTS: u32 = 512;
/// Packets that one input pushes at most, and those that one burst has.
const MOST_PACKETS: usize = 48;
const BURST: usize = 16;
/// An Ethernet header without tags.
const ETHER_BYTES: i32 = 14;
/// What a long packet has behind its bytes: more than a slot holds.
const TAIL_BYTES: usize = 2300;

thread_local! {
    /// Never dropped: when a thread ends, what a pool keeps for the thread may be gone already. That holds for
    /// the map, too, because a rig that nothing leads to would be a leak to AddressSanitizer.
    static RIGS: ManuallyDrop<RefCell<HashMap<usize, Rig>>> = ManuallyDrop::new(RefCell::new(HashMap::new()));
}

/// The head of a step.
struct Step {
    /// Modulo 8: 0 moves the clock by `value` half seconds; 1 is a frame; 2 an IP packet with its header
    /// annotations; 3 a frame with them; 4 a packet with headers anywhere, from `value` and `how`. Others
    /// as 2.
    kind: u8,
    /// Bits, see [`flag`].
    how: u8,
    value: u8,
}

mod flag {
    /// Goes into the second input.
    pub const SECOND_INPUT: u8 = 1;
    /// Has a long tail: a chain of slots.
    pub const LONG: u8 = 2;
    /// Gets right checksums.
    pub const CHECKSUMS: u8 = 4;
    /// What was gathered so far is pushed.
    pub const PUSH: u8 = 8;
    /// Has its length in its IP header.
    pub const LENGTH: u8 = 16;
    /// The pool is empty while this burst is worked on.
    pub const STARVED: u8 = 32;
    /// Has annotations made of the value.
    pub const ANNOTATIONS: u8 = 64;
    /// Its packet type is the value.
    pub const PACKET_TYPE: u8 = 128;
}

impl Step {
    fn has(&self, bit: u8) -> bool {
        self.how & bit != 0
    }

    fn packet(&self, bytes: &[u8]) -> TestPacket {
        let mut bytes = bytes.to_vec();
        if self.has(flag::LONG) {
            bytes.resize(bytes.len() + TAIL_BYTES, 0x5a);
        }
        let net = if matches!(self.kind, 1 | 3) { 14 } else { 0 };
        if let Some(ip) = bytes.get_mut(net..) {
            mend(ip, self.has(flag::LENGTH), self.has(flag::CHECKSUMS));
        }
        let header = |at: usize| bytes.get(at).map_or(20, |first| i32::from(first & 15) * 4);
        let mut packet = match self.kind {
            1 => TestPacket::frame(&bytes),
            3 => TestPacket { net: Some(14), trans: Some(14 + header(14)), ..TestPacket::frame(&bytes) },
            4 => {
                let net = i32::from(self.value as i8).max(ETHER_BYTES - HEADROOM as i32);
                TestPacket {
                    mac: Some(net - ETHER_BYTES),
                    net: Some(net),
                    trans: Some(net + i32::from(self.how)),
                    ..TestPacket::frame(&bytes)
                }
            }
            _ => TestPacket { mac: Some(-ETHER_BYTES), ..TestPacket::ip(&bytes) },
        };
        packet.timestamp_ns = 7;
        if self.has(flag::PACKET_TYPE) {
            packet.packet_type = self.value & 7;
        }
        if self.has(flag::ANNOTATIONS) {
            let next_hop = u32::from_ne_bytes([10, 0, 0, self.value]);
            packet =
                packet.with_anno(anno::DST_IP, next_hop.into()).with_anno(anno::PAINT, self.value.into());
            packet = packet.with_anno(anno::ICMP_PARAMPROB, self.value.into());
        }
        packet
    }
}

/// Writes right lengths and checksums into an IPv4 packet, as far as it is one.
fn mend(ip: &mut [u8], length: bool, checksums: bool) {
    if ip.len() < 20 || ip[0] >> 4 != 4 {
        return;
    }
    if length {
        let total = u16::try_from(ip.len()).unwrap_or(u16::MAX);
        ip[2..4].copy_from_slice(&total.to_be_bytes());
    }
    if !checksums {
        return;
    }
    let header = usize::from(ip[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]])).min(ip.len());
    if !checksum::set_ipv4_header(ip, 0, header) || total < header {
        return;
    }
    let bytes = total - header;
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let pseudo = checksum::pseudo_ipv4(address(12), address(16), ip[9], bytes as u16);
    let (at, sum) = match ip[9] {
        TCP => (header + 16, checksum::tcp(ip, header, bytes, pseudo)),
        UDP => (header + 6, checksum::udp(ip, header, bytes, pseudo)),
        ICMP => (header + 2, checksum::icmp(ip, header, bytes)),
        _ => return,
    };
    if let (Some(field), Some(sum)) = (ip.get_mut(at..at + 2), sum) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Pushes what was gathered for each input.
fn push(rig: &mut Rig, gathered: &mut [Vec<TestPacket>; 2], inputs: usize, starved: bool) {
    rig.starve(starved);
    for (input, packets) in gathered.iter_mut().enumerate() {
        let packets = std::mem::take(packets);
        rig.push(input % inputs, &packets);
    }
    rig.starve(false);
}

/// Pushes hostile packets through an element.
///
/// # Panics
/// When a promise is broken: a packet that is lost or doubled, counters that do not balance, slots that do
/// not come back, machine code that does other than the evaluator. Anything else that panics is a bug, too.
pub fn fuzz_packets(data: &[u8]) {
    let Some((&which, mut rest)) = data.split_first() else { return };
    let which = usize::from(which) % SETUPS.len();
    let (class, config, inputs, outputs) = SETUPS[which];
    RIGS.with(|rigs| {
        let mut rigs = rigs.borrow_mut();
        let rig = rigs.entry(which).or_insert_with(|| {
            Rig::with_slots(class, config, Shape { inputs, outputs }, SLOTS)
                .unwrap_or_else(|mistakes| panic!("{class}({config}): {mistakes}"))
        });
        rig.renew(class, config);
        let mut gathered = [vec![], vec![]];
        let mut packets = 0;
        while let Some((&[kind, how, value, bytes], tail)) = rest.split_first_chunk() {
            let step = Step { kind: kind % 8, how, value };
            let (bytes, next) = tail.split_at(tail.len().min(bytes.into()));
            rest = next;
            if step.kind == 0 {
                push(rig, &mut gathered, inputs, false);
                rig.advance(u64::from(value) * 500_000_000);
                continue;
            }
            packets += 1;
            if packets > MOST_PACKETS {
                break;
            }
            let input = usize::from(step.has(flag::SECOND_INPUT));
            gathered[input].push(step.packet(bytes));
            if step.has(flag::PUSH) || gathered[input].len() == BURST {
                push(rig, &mut gathered, inputs, step.has(flag::STARVED));
            }
        }
        push(rig, &mut gathered, inputs, false);
        rig.read_all();
        // What it still keeps goes back to the pool now, so that a mistake in that shows with its input.
        rig.renew(class, config);
    });
}

#[cfg(test)]
mod tests {
    /// The inputs that fuzzing starts from, and every one that it once found wrong.
    #[test]
    fn seeds_and_regressions_of_fuzzing_hold() {
        testkit::replay::replay("element_packets", 20, super::fuzz_packets);
    }

    #[test]
    fn every_setup_is_sound() {
        for which in 0..super::SETUPS.len() {
            super::fuzz_packets(&[which as u8, 1, 4 | 16, 0, 0]);
        }
    }
}
