//! What the examples that print cycles per packet share: an element as machine code, and frames in slots in
//! front of it.
#![expect(unsafe_code, reason = "writes packet memory")]

use codegen::{CodeBuilder, Engine, Scratch};
use element::testing::{Library, configured};
use element::{BoxElement, Class, Shape};
use ir::eval::EvalState;
use shm::Packet;
use shm::burst::Exits;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, Pool, SharedPool};
pub use testkit::cycles::{deciles, now as cycles, per_ns};

/// Rounds that count; three before them do not.
pub const ROUNDS: usize = 31;
pub const WARM_UP: usize = 3;
const SLOTS: usize = 256;

struct Elements;

impl Library for Elements {
    fn find(name: &str) -> Option<&'static Class> {
        element::find(elements::CLASSES, name)
    }
}

/// A transparent element as a worker holds it.
pub struct Running {
    pub element: BoxElement,
    pub engine: Engine,
    pub exits: Exits,
    cells: Vec<u64>,
    scratch: Scratch,
}

impl Running {
    /// With one input.
    pub fn new(class: &str, config: &str, outputs: usize) -> Running {
        let shape = Shape { inputs: 1, outputs };
        let element = configured::<Elements>(class, config, shape);
        let program = element.lower(shape).expect("transparent").expect("valid");
        let mut builder = CodeBuilder::new().expect("this machine");
        let program = std::sync::Arc::new(program);
        let id = builder.add(&program).expect("compiles");
        let engine = Engine::Native(builder.finish().expect("memory").compiled(id));
        let cells = program.cells.iter().map(|cell| cell.init).collect();
        Running { element, engine, exits: Exits::with_capacity(8), cells, scratch: Scratch::default() }
    }

    #[inline(never)]
    pub fn run(&mut self, packets: &mut [Packet], list: &[u16], now_ns: u64) {
        let mut state = EvalState { cells: &mut self.cells, tables: &mut self.element, now_ns };
        let (scratch, exits) = (&mut self.scratch, &mut self.exits);
        let burst = shm::burst::Burst { input: 0, packets, list };
        codegen::run(&self.engine, burst, &mut state, scratch, exits);
    }

    /// Packets of the last burst that left by an output.
    pub fn emitted(&self) -> usize {
        let outputs = usize::from(self.engine.program().outputs);
        (0..outputs).map(|port| self.exits.output(port).len()).sum()
    }
}

/// An IPv4 frame of 60 bytes, as it lies in memory without its FCS: protocol, addresses and ports.
pub fn frame([src, dst, sport, dport, proto]: [u32; 5]) -> [u8; 64] {
    let mut frame = [0u8; 64];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&46u16.to_be_bytes());
    (frame[22], frame[23]) = (64, proto as u8);
    frame[26..30].copy_from_slice(&src.to_be_bytes());
    frame[30..34].copy_from_slice(&dst.to_be_bytes());
    frame[34..36].copy_from_slice(&(sport as u16).to_be_bytes());
    frame[36..38].copy_from_slice(&(dport as u16).to_be_bytes());
    frame
}

/// Frames that are received again and again, burst by burst.
pub struct Feed<P: Fn(&mut Packet, &[u8; 64])> {
    frames: Vec<[u8; 64]>,
    prepare: P,
    pool: PacketPool,
    slots: Vec<Packet>,
    at_frame: usize,
    at_slot: usize,
    /// The burst in hand.
    pub vector: Vec<Packet>,
    /// All of it.
    pub list: Vec<u16>,
}

impl<P: Fn(&mut Packet, &[u8; 64])> Feed<P> {
    /// `prepare` does with a new descriptor what elements before the one that is measured would have done.
    pub fn new(frames: Vec<[u8; 64]>, burst: usize, prepare: P) -> Feed<P> {
        let region = PacketRegion::create(RegionOptions::slots(1024)).expect("memory");
        let mut pool = PacketPool::Native(SharedPool::new(region).worker());
        let mut slots = vec![Packet::EMPTY; SLOTS];
        assert_eq!(pool.alloc(&mut slots), SLOTS);
        let (vector, list) = (vec![Packet::EMPTY; burst], (0..burst as u16).collect());
        Feed { frames, prepare, pool, slots, at_frame: 0, at_slot: 0, vector, list }
    }

    /// Copies the next burst into slots and makes its descriptors: the least that receiving costs.
    #[inline(never)]
    pub fn next(&mut self) {
        let burst = self.vector.len();
        self.at_frame = if self.at_frame + burst > self.frames.len() { 0 } else { self.at_frame };
        self.at_slot = if self.at_slot + burst > SLOTS { 0 } else { self.at_slot };
        let (slots, frames) = (&self.slots[self.at_slot..], &self.frames[self.at_frame..]);
        for ((packet, slot), frame) in self.vector.iter_mut().zip(slots).zip(frames) {
            *packet = *slot;
            assert!(packet.set_ends(packet.data(), 60));
            (packet.mac, packet.net, packet.trans) = (packet.data(), packet.data() + 14, packet.data() + 34);
            (self.prepare)(packet, frame);
            // SAFETY: the slot is ours, its buffer has more than `HEADROOM + 64` bytes.
            unsafe { ((packet.buf() + u64::from(packet.data())) as *mut [u8; 64]).write_unaligned(*frame) };
        }
        (self.at_frame, self.at_slot) = (self.at_frame + burst, self.at_slot + burst);
    }
}

impl<P: Fn(&mut Packet, &[u8; 64])> Drop for Feed<P> {
    fn drop(&mut self) {
        self.pool.free_all(&self.slots);
    }
}
