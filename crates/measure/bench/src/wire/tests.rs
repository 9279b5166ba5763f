//! Tests the tester with systems of known limits: a model between two ports in memory, and DPDK's ring
//! device.

use super::*;
use crate::load::Arrival;
use packet::access::Access;
use port::Port;
use port::{Moved, PortInfo, PortStats};
use shm::PacketPool;
use shm::{Packet, PacketBytesMut, PacketRegion, Pool, RegionOptions, SharedPool};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;
use traffic::{SizeMix, TrafficSpec};

/// A system with a queue, a rate, a delay, and faults at fixed intervals of frames.
#[derive(Default)]
struct Model {
    /// Service time of a frame, in nanoseconds.
    service_ns: u64,
    delay_ns: u64,
    /// Capacity of the queue, in frames.
    room: usize,
    /// The intervals, in frames, at which one is dropped, duplicated, held back behind the next three, or
    /// followed by a foreign one.
    drop_every: u64,
    twice_every: u64,
    late_every: u64,
    foreign_every: u64,
    start: Option<Instant>,
    came: u64,
    free_ns: u64,
    dropped: u64,
    /// Frames and the times at which they come out.
    out: VecDeque<(u64, Vec<u8>)>,
    held: Option<(u64, Vec<u8>)>,
}

impl Model {
    fn now_ns(&mut self) -> u64 {
        self.start.get_or_insert_with(Instant::now).elapsed().as_nanos() as u64
    }

    fn take(&mut self, frame: Vec<u8>) {
        let now = self.now_ns();
        self.came += 1;
        let nth = |every: u64| every > 0 && self.came.is_multiple_of(every);
        let waiting = self.free_ns.saturating_sub(now).div_ceil(self.service_ns.max(1)) as usize;
        if nth(self.drop_every) || (self.service_ns > 0 && waiting >= self.room) {
            self.dropped += 1;
            return;
        }
        self.free_ns = self.free_ns.max(now) + self.service_ns;
        let at = self.free_ns + self.delay_ns;
        let (twice, late, foreign) = (nth(self.twice_every), nth(self.late_every), nth(self.foreign_every));
        if foreign {
            self.out.push_back((at, [&[0xff; 6][..], &[2; 6], &[8, 6], &[0; 46]].concat()));
        }
        if let Some((_, held)) = self.held.take_if(|(due, _)| self.came >= *due) {
            self.out.push_back((at, held));
        }
        if late {
            self.held = Some((self.came + 3, frame));
            return;
        }
        if twice {
            self.out.push_back((at, frame.clone()));
        }
        self.out.push_back((at, frame));
    }
}

/// A port of the model.
struct End {
    model: Arc<Mutex<Model>>,
    /// The most frames that it accepts at a time.
    takes: usize,
}

impl Port for End {
    fn name(&self) -> &str {
        "end"
    }

    fn info(&self) -> PortInfo {
        PortInfo::default()
    }

    fn set_origin(&mut self, _: u16) {}

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let mut model = self.model.lock().expect("not broken");
        let now = model.now_ns();
        let mut moved = Moved::default();
        while moved.packets < out.len() && model.out.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, frame)) = model.out.pop_front() else { break };
            let packet = &mut out[moved.packets..=moved.packets];
            assert_eq!(pool.alloc(packet), 1, "slots leak");
            assert!(packet[0].put(frame.len()));
            assert!(PacketBytesMut::new(&mut packet[0]).copy_in(0, &frame));
            moved.packets += 1;
        }
        moved
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let list = &list[..list.len().min(self.takes)];
        let mut model = self.model.lock().expect("not broken");
        for at in list {
            model.take(shm::PacketBytes::new(&packets[usize::from(*at)]).to_vec());
        }
        pool.free(packets, list);
        Moved { packets: list.len(), bytes: 0 }
    }

    fn stats(&self) -> PortStats {
        PortStats::default()
    }
}

const FLOWS: u64 = 10;

/// Options with which all due frames are sent, however busy the machine is.
fn options() -> WireOptions {
    WireOptions { grace: 100.0, quiet: Duration::from_millis(100), ..WireOptions::default() }
}

fn frames(size: u16) -> Arc<FrameSet> {
    let spec = TrafficSpec { flows: FLOWS, size: SizeMix::fixed(size), ..TrafficSpec::default() };
    Arc::new(spec.prepare(FLOWS as usize).expect("frames"))
}

fn wire(model: Model) -> (Wire, Arc<Mutex<Model>>, Arc<SharedPool>) {
    wire_with(model, options())
}

fn wire_with(model: Model, options: WireOptions) -> (Wire, Arc<Mutex<Model>>, Arc<SharedPool>) {
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(2_048)).expect("memory"));
    let model = Arc::new(Mutex::new(model));
    let end = |takes| Box::new(End { model: Arc::clone(&model), takes });
    let worker = PacketPool::Native(pool.worker());
    // The sending port accepts fewer frames at a time than it is given.
    let ends = Ends { send: end(7), receive: Some(end(64)), pool: worker };
    let wire = Wire::new(ends, frames(64), options).expect("a tester");
    (wire, model, pool)
}

#[test]
fn all_comes_through_a_cable() {
    let (mut wire, _, pool) = wire(Model::default());
    for arrival in [Arrival::Even, Arrival::Bursts(50)] {
        let offer = Offer { arrival, ..Offer::stamped(20_000.0, 0.1) };
        let observed = wire.offer(&offer).expect("a trial");
        assert_eq!((observed.intended, observed.arrived, observed.sent), (2_000, 2_000, 2_000));
        assert_eq!(observed.loss_ratio(wire.passed()), 0.0);
        let seen = observed.seen.expect("stamped");
        assert_eq!((seen.frames, seen.duplicates, seen.reordered, seen.strangers), (2_000, 0, 0, 0));
        let pacing = observed.pacing.expect("measured");
        assert_eq!(pacing.len(), 2_000);
        // A frame comes out no sooner than it was sent, and is recorded within a turn.
        assert!(seen.latency.max() + 1_000 >= pacing.min());
        assert!(!wire.counts().turns.is_empty());
    }
    drop(wire);
    assert_eq!(PacketPool::Native(pool.worker()).in_use(), 0, "no slot is lost");
}

#[test]
fn loss_is_counted_exactly() {
    let (mut wire, model, _) = wire(Model { drop_every: 8, ..Model::default() });
    let observed = wire.offer(&Offer::stamped(40_000.0, 0.1)).expect("a trial");
    assert_eq!((observed.arrived, observed.sent), (4_000, 3_500));
    assert_eq!(model.lock().expect("not broken").dropped, 500);
    assert!((observed.loss_ratio(1.0) - 0.125).abs() < 1e-9);
    // Frames that the system drops on purpose are not loss.
    wire.warm_up().expect("something comes through");
    assert!((wire.passed() - 0.875).abs() < 0.01, "{}", wire.passed());
    let observed = wire.offer(&Offer::stamped(40_000.0, 0.1)).expect("a trial");
    assert!(observed.loss_ratio(wire.passed()) < 0.005);
}

#[test]
fn a_limit_is_seen_as_it_is() {
    // 20,000 frames a second, and a queue of 20.
    let (mut wire, model, _) = wire(Model { service_ns: 50_000, room: 20, ..Model::default() });
    let start = Instant::now();
    let observed = wire.offer(&Offer::stamped(40_000.0, 0.2)).expect("a trial");
    let most = start.elapsed().as_nanos() as u64 / 50_000 + 20;
    let dropped = model.lock().expect("not broken").dropped;
    assert_eq!(observed.arrived, 8_000);
    assert_eq!(observed.sent, 8_000 - dropped, "what the system says it dropped is what is missing");
    // It serves what its rate and its queue allow for as long as the trial took, however busy the machine is.
    assert!(observed.sent <= most, "{} of {most}", observed.sent);
    assert!(dropped + most >= 8_000, "{dropped}");
}

#[test]
fn latency_is_the_delay_and_what_the_tester_says_of_itself() {
    let delay_ns = 5_000_000;
    let (mut wire, _, _) = wire(Model { delay_ns, ..Model::default() });
    let observed = wire.offer(&Offer::stamped(5_000.0, 0.2)).expect("a trial");
    assert_eq!(observed.sent, 1_000, "what is under way at the end still counts");
    let (latency, pacing) = (observed.seen.expect("stamped").latency, observed.pacing.expect("measured"));
    // Never less than the delay, and more by at most the tester's delay in sending and polling.
    assert!(latency.min() as f64 >= delay_ns as f64 * 0.998, "{}", latency.min());
    let error_ns = pacing.max() + wire.counts().turns.max();
    assert!(latency.max() as f64 <= (delay_ns + error_ns) as f64 * 1.002 + 10_000.0, "{}", latency.max());
}

#[test]
fn frames_that_are_late_there_twice_or_of_others_are_told_apart() {
    let model = Model { twice_every: 10, late_every: 25, foreign_every: 100, ..Model::default() };
    let (mut wire, _, _) = wire(model);
    let observed = wire.offer(&Offer::stamped(20_000.0, 0.1)).expect("a trial");
    // Frames that are held back are not duplicated, and the last of them never comes out. A frame after three
    // of other flows is not reordered.
    let seen = observed.seen.expect("stamped");
    assert_eq!((observed.sent, seen.frames, seen.duplicates), (1_999, 1_999, 160));
    assert_eq!((seen.reordered, wire.counts().foreign), (0, 20));
    // All frames are one flow.
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(2_048)).expect("memory"));
    let model = Arc::new(Mutex::new(Model { late_every: 25, ..Model::default() }));
    let end = || Box::new(End { model: Arc::clone(&model), takes: 64 });
    let ends = Ends { send: end(), receive: Some(end()), pool: PacketPool::Native(pool.worker()) };
    let one = Arc::new(TrafficSpec { flows: 1, ..TrafficSpec::default() }.prepare(1).expect("a frame"));
    let mut wire = Wire::new(ends, one, options()).expect("a tester");
    let seen = wire.offer(&Offer::stamped(20_000.0, 0.1)).expect("a trial").seen.expect("stamped");
    // The last frame that was held back never came out.
    assert_eq!((seen.frames, seen.reordered), (1_999, 79));
}

#[test]
fn frames_of_an_earlier_trial_are_not_taken_for_those_of_this() {
    let (mut wire, _, _) = wire(Model { delay_ns: 150_000_000, ..Model::default() });
    let first = wire.offer(&Offer::stamped(5_000.0, 0.02)).expect("a trial");
    assert_eq!(first.sent, 0, "they take longer than the tester waits");
    wire.options.quiet = Duration::from_millis(300);
    let second = wire.offer(&Offer::stamped(5_000.0, 0.02)).expect("a trial");
    assert_eq!((second.sent, wire.counts().stale), (100, 100));
}

#[test]
fn what_the_tester_cannot_send_did_not_arrive() {
    // No tester sends this many.
    let (mut wire, model, _) = wire_with(Model::default(), WireOptions::default());
    let observed = wire.offer(&Offer::stamped(1e9, 0.02)).expect("a trial");
    assert!(observed.arrived < observed.intended);
    assert_eq!(observed.arrived, model.lock().expect("not broken").came, "all that went out, and no more");
    assert_eq!(observed.sent, observed.arrived);
}

#[test]
fn nothing_that_comes_through_is_told() {
    let (mut wire, _, _) = wire(Model { drop_every: 1, ..Model::default() });
    let told = wire.warm_up().expect_err("nothing to measure").to_string();
    assert!(told.contains("0 came through"), "{told}");
}

#[test]
fn frames_without_room_for_a_stamp_are_refused() {
    assert!(FrameSet::new(Vec::<Vec<u8>>::new()).is_err(), "a tester always has frames");
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(512)).expect("memory"));
    let ends = Ends {
        send: Box::new(port::MemoryPort::sink("sink")),
        receive: None,
        pool: PacketPool::Native(pool.worker()),
    };
    let short = Arc::new(FrameSet::new([[0; 59]]).expect("a frame"));
    let refused = Wire::new(ends, short, options()).err().expect("refused").to_string();
    assert!(refused.contains("64 bytes and more") && refused.contains("stamps"), "{refused}");
}

/// DPDK's ring device returns what is sent: a virtual device, with one port for both directions.
#[test]
fn a_ring_of_dpdk_is_tested() {
    if !port::dpdk::BUILT_WITH_DPDK {
        eprintln!("SKIP: built without DPDK (install libdpdk-dev and build again)");
        return;
    }
    let mut devices = Devices::start(&[]).expect("DPDK starts");
    let ends = devices.open("net_ring0", "net_ring0", devices::Means::AfPacket, None).expect("a ring");
    let mut wire = Wire::new(ends, frames(128), options()).expect("a tester");
    let observed = wire.warm_up().expect("all comes back");
    assert_eq!(wire.passed(), 1.0);
    assert_eq!(observed.sent, observed.arrived);
    let observed = wire.offer(&Offer::stamped(100_000.0, 0.1)).expect("a trial");
    let seen = observed.seen.expect("stamped");
    assert_eq!((seen.frames, seen.duplicates, seen.reordered), (observed.arrived, 0, 0));
    let told = devices.open("net_nonsense7", "net_nonsense7", devices::Means::AfPacket, None);
    assert!(told.is_err());
}
