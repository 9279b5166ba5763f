//! `IPReassembler`: reassembles fragments.
//!
//! - [`datagram`]: a packet in the making
//!
//! The first fragment that arrives is held as the *carrier*. All others are merged as they come: their bytes
//! are copied and their slots freed, so that fragments cannot exhaust the pool.

mod datagram;

use click::config::parse;
use datagram::{Datagram, Fragment, Key};
use element::value::annotation;
use element::{BoxElement, Class, Configure, Element, PortCodes, Row, StateScope, Transparent, Work};
use ir::Builder;
use ir::expr::load;
use packet::anno::Anno;
use packet::field::{Base, IP_OFF};
use shm::Packet;
use shm::burst::Batch;
use shm::chain::write_frame;
use shm::pool::Pool;
use std::collections::HashMap;

/// The class.
pub const CLASS: Class = Class {
    name: "IPReassembler",
    summary: "reassembles fragmented IP packets",
    page: "\
# IPReassembler([keywords HIMEM, MAX_MTU_ANNO])

Holds fragments of IP packets until the packet is complete, which then leaves by output 0; other packets pass. A
packet that is incomplete 30 seconds after its last fragment leaves by output 1, as one packet with its
fragments in their places, or is dropped. Output 1 may lead to ICMPError(..., timeexceeded, reassembly).

- **ports**: 1 input, 1 or 2 outputs, agnostic; incomplete packets are pushed out of output 1
- **arguments**: `HIMEM` (default 262144): bytes of fragments above which the oldest are given up, down
  to three quarters of it; `MAX_MTU_ANNO`: an annotation of 2 bytes for the longest fragment's length
- **annotations**: those of the fragment with offset 0; needs the network header
- **handlers**: `dump` (read): counts, and the packets that are incomplete
- **drop reasons**: `incomplete`: of the packet that stands for all fragments; `bad-fragment`: lengths or
  offsets contradict each other; `no-ip-header`: the network header is not set or cut off; `no-buffer`
- **state**: of each worker; all fragments of a packet must reach the same one, as they do where packets
  are dispatched by addresses
- **difference**: fragments are kept 30 seconds after the last one, as Click's page says (its code
  counts from the first in order); the IPREASSEMBLER annotation is not used
",
    codes: PortCodes::CHECK,
    state: StateScope::PerFlow,
    make,
};

element::reasons!(
    INCOMPLETE = "incomplete",
    BAD_FRAGMENT = "bad-fragment",
    NO_IP_HEADER = "no-ip-header",
    NO_BUFFER = "no-buffer",
);

const SECOND_NS: u64 = 1_000_000_000;
/// Fragments are given up after this time without a new one.
const TIMEOUT_NS: u64 = 30 * SECOND_NS;
/// How often the element looks for timeouts.
const INTERVAL_NS: u64 = 10 * SECOND_NS;
/// More fragments, or an offset.
const FRAGMENT: u64 = 0x3fff;

#[derive(Default)]
struct IpReassembler {
    outputs: usize,
    most_bytes: usize,
    mtu_anno: Option<Anno>,
    datagrams: HashMap<Key, Datagram>,
    used_bytes: usize,
    seen: u64,
    completed: u64,
    failed: u64,
    bad: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.transparent(|args| {
        let most_bytes = args.keyword("HIMEM", parse::u32).unwrap_or(256 * 1024) as usize;
        let mtu_anno = args.keyword("MAX_MTU_ANNO", annotation(2));
        Some(IpReassembler { outputs, most_bytes, mtu_anno, ..IpReassembler::default() })
    })
}

/// What was done with a fragment.
enum Outcome {
    /// It is the carrier of a new datagram.
    Held,
    /// It was merged into one.
    Merged,
    /// It completed one: the descriptor is now that of the whole packet.
    Whole,
    /// It is dropped.
    Dropped(usize),
}

impl IpReassembler {
    fn take_in(&mut self, packet: &mut Packet, work: &mut Work<'_>) -> Outcome {
        let Some(fragment) = Fragment::read(packet) else { return Outcome::Dropped(NO_IP_HEADER) };
        self.seen += 1;
        if !fragment.is_sound() {
            self.bad += 1;
            return Outcome::Dropped(BAD_FRAGMENT);
        }
        let now_ns = work.now_ns();
        if self.used_bytes > self.most_bytes {
            self.give_up_oldest(now_ns, work);
        }
        let key = fragment.key;
        let Some(datagram) = self.datagrams.get_mut(&key) else {
            let datagram = Datagram::new(&fragment, packet, now_ns);
            self.used_bytes += datagram.cost();
            if self.datagrams.is_empty() {
                work.fire_at(now_ns + INTERVAL_NS);
            }
            self.datagrams.insert(key, datagram);
            return Outcome::Held;
        };
        let before = datagram.cost();
        if !datagram.add(&fragment, packet, now_ns) {
            self.bad += 1;
            return Outcome::Dropped(BAD_FRAGMENT);
        }
        self.used_bytes += datagram.cost() - before;
        if !datagram.is_complete() {
            return Outcome::Merged;
        }
        let Some(mut whole) = self.take_out(&key, work) else {
            return Outcome::Dropped(NO_BUFFER);
        };
        whole.timestamp_ns = packet.timestamp_ns;
        self.completed += 1;
        work.merge(1);
        work.pool().free_all(&[*packet]);
        *packet = whole;
        Outcome::Whole
    }

    /// Ends a datagram: what there is of it becomes a packet, and the carrier is freed. Drops the carrier if
    /// there is no buffer.
    fn take_out(&mut self, key: &Key, work: &mut Work<'_>) -> Option<Packet> {
        let datagram = self.datagrams.remove(key)?;
        self.used_bytes -= datagram.cost();
        let Some(mut packet) = write_frame(work.pool(), &datagram.frame()) else {
            work.drop_held(NO_BUFFER, &[datagram.carrier]);
            return None;
        };
        work.release(1);
        work.pool().free_all(&[datagram.carrier]);
        datagram.describe(&mut packet, self.mtu_anno);
        packet.timestamp_ns = datagram.carrier.timestamp_ns;
        Some(packet)
    }

    /// Gives up datagrams that are at least 10 s old, then 5 s, then any, until enough memory is free.
    fn give_up_oldest(&mut self, now_ns: u64, work: &mut Work<'_>) {
        let enough = self.most_bytes / 4 * 3;
        for age_ns in [10 * SECOND_NS, 5 * SECOND_NS, 0] {
            for key in self.older(now_ns, age_ns) {
                if self.used_bytes <= enough {
                    return;
                }
                self.give_up(&key, work);
            }
        }
    }

    /// The datagrams without a new fragment for so long, oldest first.
    fn older(&self, now_ns: u64, age_ns: u64) -> Vec<Key> {
        let is_old = |datagram: &&Datagram| now_ns.saturating_sub(datagram.last_ns) >= age_ns;
        let old = self.datagrams.iter().filter(|(_, datagram)| is_old(datagram));
        let mut keys: Vec<(u64, Key)> = old.map(|(key, datagram)| (datagram.last_ns, *key)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// Gives up a datagram: what there is of it leaves by output 1, or is dropped.
    fn give_up(&mut self, key: &Key, work: &mut Work<'_>) {
        self.failed += 1;
        match self.take_out(key, work) {
            None => {}
            Some(partial) if self.outputs > 1 => work.emit(1, &partial),
            Some(partial) => work.drop(INCOMPLETE, &[partial]),
        }
    }
}

impl Transparent for IpReassembler {
    fn build(&self, f: &mut Builder) {
        f.name("IPReassembler");
        let (headless, fragment) = (f.drop_block("no-ip-header"), f.slow_block("fragments"));
        f.need(Base::Net, 20, headless);
        f.leave_if(load(IP_OFF) & FRAGMENT, fragment);
        f.emit(0);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            work.place_before(index);
            match self.take_in(batch.packet_mut(index), work) {
                Outcome::Held => work.hold(1),
                Outcome::Merged => {
                    work.merge(1);
                    work.pool().free_all(&[*batch.packet(index)]);
                }
                Outcome::Whole => batch.emit(index, 0),
                Outcome::Dropped(reason) => batch.drop(index, reason),
            }
        }
    }
}

impl Element for IpReassembler {
    element::facts!(reasons: REASONS, handlers: HANDLERS);

    fn fire(&mut self, work: &mut Work<'_>) {
        let now_ns = work.now_ns();
        self.older(now_ns, TIMEOUT_NS).iter().for_each(|key| self.give_up(key, work));
        if !self.datagrams.is_empty() {
            work.fire_at(now_ns + INTERVAL_NS);
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        for (_, datagram) in self.datagrams.drain() {
            work.drop_held(INCOMPLETE, &[datagram.carrier]);
        }
        self.used_bytes = 0;
    }
}

impl IpReassembler {
    fn dump(&self, _cells: &[u64]) -> Option<String> {
        let mut text = format!(
            "frags seen total:    {}\ngood reassemblies:   {}\nfailed reassemblies: {}\n\
             bad fragments seen:  {}\ncached chunk data:",
            self.seen, self.completed, self.failed, self.bad
        );
        let mut lines: Vec<String> =
            self.datagrams.iter().map(|(key, datagram)| datagram.show(key)).collect();
        lines.sort_unstable();
        for line in lines {
            text.push('\n');
            text.push_str(&line);
        }
        Some(text)
    }
}

const HANDLERS: &[Row<IpReassembler>] = &[Row::concat("dump", IpReassembler::dump)];
