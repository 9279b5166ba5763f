//! Rewriters whose tables are too small: which flows keep their mapping, in all execution modes, and by a model.

use super::{How, Observed, Setup, all_do_the_same, run};
use chain::FusedElements;
use packet::checksum;
use packet::view::tcp::{ACK, FIN, RST, SYN};
use proptest::prelude::*;
use worker::fusion::FlowCache;

/// How often [`run`] sends the frames.
const PASSES: usize = 8;

/// A packet of a flow: its number, whether it is TCP, whether the packet is a reply, its flags, and whether it has
/// payload.
#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: u16,
    is_tcp: bool,
    is_reply: bool,
    flags: u8,
    has_payload: bool,
}

fn frame(sent: Sent, id: u16) -> Vec<u8> {
    let Sent { flow, is_tcp, is_reply, flags, has_payload } = sent;
    let payload = if has_payload { 7 } else { 0 };
    let transport = if is_tcp { 20 } else { 8 };
    let ends = [([10, 0, (flow >> 8) as u8, flow as u8], 2000 + flow), ([198, 51, 100, 7], 80)];
    let [(src, sport), (dst, dport)] = if is_reply { [ends[1], ends[0]] } else { ends };
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((20 + transport + payload as u16).to_be_bytes());
    frame.extend(id.to_be_bytes());
    frame.extend([0, 0, 64, if is_tcp { 6 } else { 17 }, 0, 0]);
    frame.extend(src);
    frame.extend(dst);
    assert!(checksum::set_ipv4_header(frame.as_mut_slice(), 14, 20));
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    match is_tcp {
        true => frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0, 1, 0xbe, 0xef, 0, 0]),
        false => frame.extend([0, 8 + payload, 0, 0]),
    }
    frame.extend(std::iter::repeat_n(9, payload.into()));
    frame
}

/// When a new flow expires.
const NEW: u32 = 300;

/// A mapping of the model.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    flow: u16,
    is_tcp: bool,
    /// By direction: packets, SYN, packets without SYN, FIN and RST, payload, FIN.
    any: [bool; 2],
    syn: [bool; 2],
    plain: [bool; 2],
    payload: [bool; 2],
    fin: [bool; 2],
    rst: bool,
}

/// What a table of so many mappings has to do, one packet after the other, while the clock stands still.
#[derive(Default)]
struct Model {
    capacity: usize,
    is_guaranteed: bool,
    /// In the order in which they were made.
    known: Vec<Known>,
    evictions: u64,
    refused: u64,
    unknown: u64,
}

impl Known {
    fn count(&mut self, sent: Sent) {
        let from = usize::from(sent.is_reply);
        let is_rare = sent.is_tcp && sent.flags & (SYN | FIN | RST) != 0;
        self.any[from] = true;
        self.syn[from] |= sent.is_tcp && sent.flags & SYN != 0;
        self.plain[from] |= !is_rare;
        self.payload[from] |= sent.has_payload;
        self.rst |= sent.is_tcp && sent.flags & RST != 0;
        self.fin[from] |= sent.is_tcp && sent.flags & FIN != 0 && sent.flags & RST == 0;
    }

    /// Its kind and the end of its time, the first to go first; none for one that never goes.
    fn rank(&self) -> Option<(u8, u32)> {
        let is_answered = self.any[0] && self.any[1];
        match self {
            Known { is_tcp: false, .. } => Some((if is_answered { 2 } else { 1 }, NEW)),
            _ if self.rst || self.fin == [true; 2] => Some((0, 240)),
            _ if is_answered && self.plain != [false; 2] && self.syn == [true; 2] => None,
            _ => {
                let is_older = is_answered && self.plain != [false; 2];
                let due = if self.payload == [true; 2] { 86_400 } else { NEW };
                Some((if is_older { 2 } else { 1 }, due))
            }
        }
    }
}

impl Model {
    /// Whether the packet passes.
    fn pass(&mut self, sent: Sent) -> bool {
        let is_same = |known: &&mut Known| (known.flow, known.is_tcp) == (sent.flow, sent.is_tcp);
        if let Some(known) = self.known.iter_mut().find(is_same) {
            known.count(sent);
            return true;
        }
        if sent.is_reply {
            self.unknown += 1;
            return false;
        }
        if self.known.len() == self.capacity {
            let ranks = self.known.iter().enumerate().filter_map(|(at, known)| Some((known.rank()?, at)));
            // Without a guarantee, a new flow goes that would expire before all that may go.
            let may_go = |((_, due), _): &((u8, u32), usize)| !self.is_guaranteed && *due <= NEW;
            let Some((_, first)) = ranks.min().filter(may_go) else {
                self.refused += 1;
                return false;
            };
            self.known.remove(first);
            self.evictions += 1;
        }
        let mut known = Known { flow: sent.flow, is_tcp: sent.is_tcp, ..Known::default() };
        known.count(sent);
        self.known.push(known);
        true
    }
}

fn chain(capacity: usize, more: &str) -> String {
    format!(
        "FromDevice(in) -> CheckIPHeader(14) -> side :: IPClassifier(src net 10.0.0.0/8, -);
         nat :: IPRewriter(keep 0 1, drop, MAPPING_CAPACITY {capacity}, SEED 1{more});
         side[0] -> [0]nat; side[1] -> [1]nat; nat[0] -> ToDevice(wan); nat[1] -> ToDevice(lan);"
    )
}

const NO_GUARANTEE: &str = ", TCP_GUARANTEE 0, UDP_GUARANTEE 0";

fn setup(capacity: usize, more: &str, packets: &[Sent], burst: usize) -> Setup {
    let frames = packets.iter().enumerate().map(|(at, sent)| frame(*sent, at as u16)).collect();
    Setup { text: chain(capacity, more), frames, burst, step_ns: 0, is_timed: false }
}

fn observed(setup: &Setup, fused: FusedElements, cache: FlowCache) -> Observed {
    let how = How { fused, evaluator: false, cache, pass_queues: true, one_by_one: false };
    run(setup, how).expect("frames").0
}

fn handler(seen: &Observed, name: &str) -> String {
    let found = seen.handlers.iter().find(|(known, _)| known == name);
    found.and_then(|(_, value)| value.clone().ok()).expect("a handler").trim().to_string()
}

/// Compares a run with the model.
fn does_as_the_model(setup: &Setup, packets: &[Sent], mut model: Model) {
    let mut wanted = [vec![], vec![]];
    for _ in 0..PASSES {
        for (sent, frame) in packets.iter().zip(&setup.frames) {
            if model.pass(*sent) {
                wanted[usize::from(sent.is_reply)].push(frame.clone());
            }
        }
    }
    let seen = observed(setup, FusedElements::Nothing, FlowCache::Never);
    for (port, wanted) in ["wan", "lan"].into_iter().zip(wanted) {
        let sent = seen.sent.get(port).cloned().unwrap_or_default();
        let differs = sent.iter().zip(&wanted).position(|(one, other)| one != other);
        assert_eq!((sent.len(), differs), (wanted.len(), None), "{port} of {}", setup.text);
    }
    let (_, _, _, drops) = seen.counters.iter().find(|book| book.0 == "nat").expect("the rewriter");
    let dropped = |reason: &str| drops.iter().find(|(name, _)| name == reason).map_or(0, |(_, count)| *count);
    assert_eq!((dropped("table-full"), dropped("no-mapping")), (model.refused, model.unknown));
    let counts = ["mapping_failures", "evictions", "nmappings", "size"];
    let counts = counts.map(|name| handler(&seen, &format!("nat.{name}")));
    let size = model.known.len().to_string();
    let wanted = [model.refused.to_string(), model.evictions.to_string(), size.clone(), size];
    assert_eq!(counts, wanted, "{}", setup.text);
}

fn packets(flows: u16) -> impl Strategy<Value = Vec<Sent>> {
    let flags = prop::sample::select(vec![SYN, SYN | ACK, ACK, ACK, ACK, FIN | ACK, RST]);
    let one = (0..flows, prop::bool::weighted(0.7), any::<bool>(), flags, any::<bool>());
    let one = one.prop_map(|(flow, is_tcp, is_reply, flags, has_payload)| Sent {
        flow,
        is_tcp,
        is_reply,
        flags: if flags == SYN | ACK && !is_reply { SYN } else { flags },
        has_payload,
    });
    prop::collection::vec(one, 20..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_tables_keep_who_is_established(
        (capacity, packets) in prop::sample::select(vec![(8, 14), (16, 30), (64, 110)])
            .prop_flat_map(|(capacity, flows)| (Just(capacity), packets(flows))),
        burst in prop::sample::select(vec![1usize, 7, 32, 200]),
        is_guaranteed in prop::bool::weighted(0.2),
    ) {
        let more = if is_guaranteed { "" } else { NO_GUARANTEE };
        let setup = setup(capacity, more, &packets, burst);
        does_as_the_model(&setup, &packets, Model { capacity, is_guaranteed, ..Model::default() });
        all_do_the_same(&setup);
    }
}

const fn tcp(flow: u16, is_reply: bool, flags: u8) -> Sent {
    Sent { flow, is_tcp: true, is_reply, flags, has_payload: false }
}

/// A handshake of each of these flows.
fn handshakes(flows: std::ops::Range<u16>) -> Vec<Sent> {
    let of = |flow| [tcp(flow, false, SYN), tcp(flow, true, SYN | ACK), tcp(flow, false, ACK)];
    flows.flat_map(of).collect()
}

/// Connections go on through a flood of SYNs, some of which are answered, at any size of the table.
#[test]
fn a_flood_of_syns_ends_no_connection() {
    for (capacity, kept) in [(8, 6), (16, 16), (64, 50), (1500, 900)] {
        let mut packets = handshakes(0..kept);
        for at in 0..4 * kept {
            packets.push(tcp(3000 + at, false, SYN));
            packets.extend((at % 3 == 0).then(|| tcp(3000 + at, true, SYN | ACK)));
            packets.push(tcp(at % kept, at % 2 == 0, ACK));
        }
        let setup = setup(capacity, NO_GUARANTEE, &packets, 32);
        let seen = observed(&setup, FusedElements::All, FlowCache::Eager);
        let is_kept = |sent: &&Sent| sent.flow < kept;
        for (port, is_reply) in [("wan", false), ("lan", true)] {
            let wanted =
                packets.iter().filter(is_kept).filter(|sent| sent.is_reply == is_reply).count() * PASSES;
            let of_kept = |frame: &&Vec<u8>| {
                let at = if is_reply { 30 } else { 26 };
                u16::from_be_bytes([frame[at + 2], frame[at + 3]]) < kept
            };
            let passed = seen.sent[port].iter().filter(of_kept).count();
            assert_eq!(passed, wanted, "{port}, of {capacity}");
        }
        let shortened = all_do_the_same(&setup);
        assert!(
            shortened.hits > 10,
            "the flow cache works in a full table, too: {shortened:?}, of {capacity}"
        );
    }
}

/// A table of nothing but connections refuses new ones, until one of them ends.
#[test]
fn new_flows_are_refused_while_all_are_established() {
    for capacity in [8, 64] {
        let mut packets = handshakes(0..capacity);
        packets.extend((500..510).map(|flow| tcp(flow, false, SYN)));
        packets.extend([tcp(3, true, RST), tcp(600, false, SYN), tcp(601, false, SYN), tcp(3, false, ACK)]);
        let setup = setup(capacity.into(), NO_GUARANTEE, &packets, 32);
        let model = Model { capacity: capacity.into(), ..Model::default() };
        does_as_the_model(&setup, &packets, model);
        all_do_the_same(&setup);
    }
}
