//! What runs as an NF of its own, seen from the element that stands for it.
//!
//! The host gives an element of class `ProcessNF` a link to its NF; the element enqueues packets and settles
//! what becomes of each.

use shm::Packet;
use shm::channel::Completion;

/// A way to an NF that runs elsewhere, for one worker.
pub trait NfLink: Send {
    /// Makes the NF ready. Called once, before any packet.
    ///
    /// # Errors
    /// A sentence that says why the NF does not run.
    fn start(&mut self) -> Result<(), String>;

    /// Whether there is an NF to enqueue to.
    fn is_up(&self) -> bool;

    /// Enqueues packets that came in by an input, the front ones of the list, as many as can be; how many.
    fn enqueue(&mut self, input: usize, packets: &[Packet], list: &[u16]) -> usize;

    /// Whether packets that were enqueued last are read where they lie, while they go on: whoever has them is to say so
    /// by `shm::descriptor::flag::SHARED`.
    fn shares(&self) -> bool {
        false
    }

    /// Whether packets may be read where they lie while they go on; else a sentence why not. Called before `start`.
    fn let_share(&mut self, _why_not: Option<String>) {}

    /// How many empty slots the NF should get, to make packets in.
    fn grants_wanted(&self) -> usize;

    /// Grants empty slots, the front ones of the list, as many as can be; how many.
    fn grant(&mut self, packets: &[Packet], list: &[u16]) -> usize;

    /// Appends what came back, and what a dead NF held. Every packet that was enqueued comes up once.
    fn collect(&mut self, out: &mut Completions);

    /// Ends the NF, and appends everything that it still held.
    fn stop(&mut self, out: &mut Completions);

    /// What is worth telling, in sentences; each once.
    fn take_findings(&mut self) -> Vec<String>;

    /// The output across from an input, where there is one.
    fn across(&self, _input: usize) -> Option<usize> {
        None
    }

    /// Whether packets pass by an NF that does not run.
    fn is_bypassed(&self) -> bool {
        false
    }

    /// Whether the NF only looks: what is enqueued to it are copies, and nothing comes back.
    fn observes(&self) -> bool {
        false
    }

    /// Whether packets wait for an NF that does not run.
    fn waits_when_down(&self) -> bool {
        false
    }

    /// Whether one that does not run is about to: it is being started, and has not failed at that too often.
    fn is_coming(&self) -> bool {
        false
    }

    /// Whether the NF asks for the end of the run.
    fn is_over(&self) -> bool {
        false
    }

    /// Something that is known of the NF, as handlers are called: `state`, `restarts`, `pid`, `kind`, `drops`,
    /// `counters`, `bad-descriptors`, `copied`, `neighbours`.
    fn status(&self, _what: &str) -> Option<String> {
        None
    }
}

/// Packets that are the host's again, and what became of each.
#[derive(Debug, Default)]
pub struct Completions {
    /// As many as there ever were at a time, of which `count` are meant; so with `completions`.
    packets: Vec<Packet>,
    completions: Vec<Completion>,
    count: usize,
    /// Packets that went on without coming back, by output.
    passed: Vec<(usize, usize)>,
    /// Copies that an observer had not looked at when it ended.
    missed: usize,
}

impl Completions {
    /// With room for so many, so that no memory is asked for while packets move. Memory that is never used costs
    /// nothing.
    pub fn with_room(most: usize) -> Completions {
        let (packets, completions) = (Vec::with_capacity(most), Vec::with_capacity(most));
        Completions { packets, completions, ..Completions::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all: they went elsewhere.
    pub fn clear(&mut self) {
        self.count = 0;
        self.passed.clear();
        self.missed = 0;
    }

    /// Adds copies that an observer had not looked at when it ended.
    pub fn miss(&mut self, count: usize) {
        self.missed += count;
    }

    /// Copies that an observer had not looked at when it ended.
    pub fn missed(&self) -> usize {
        self.missed
    }

    /// Adds packets that the NF handed to the NF behind an output: that one has them now.
    pub fn pass(&mut self, output: usize, count: usize) {
        self.passed.push((output, count));
    }

    /// Packets that went on without coming back: outputs, and how many.
    pub fn passed(&self) -> &[(usize, usize)] {
        &self.passed
    }

    /// Adds one.
    pub fn push(&mut self, packet: &Packet, completion: Completion) {
        self.fill(1, |packets, completions| {
            packets.fill(*packet);
            completions.fill(completion);
            1
        });
    }

    /// Has `fill` write up to `most` packets, and what became of each, into free places, and say how many.
    pub fn fill(&mut self, most: usize, fill: impl FnOnce(&mut [Packet], &mut [Completion]) -> usize) {
        let (from, to) = (self.count, self.count + most);
        if self.packets.len() < to {
            self.packets.resize(to, Packet::EMPTY);
            self.completions.resize(to, Completion::Unused);
        }
        self.count += fill(&mut self.packets[from..to], &mut self.completions[from..to]).min(most);
    }

    /// What became of each.
    pub fn completions(&self) -> &[Completion] {
        &self.completions[..self.count]
    }

    /// Packets in a row that became of the same, in order.
    pub fn runs(&self) -> impl Iterator<Item = (Completion, &[Packet])> {
        let mut rest = &self.packets[..self.count];
        self.completions().chunk_by(|one, next| one == next).map(move |completions| {
            let (run, behind) = rest.split_at(completions.len());
            rest = behind;
            (completions[0], run)
        })
    }
}
