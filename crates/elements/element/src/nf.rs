//! What runs as an NF of its own, seen from the element that stands for it.
//!
//! The host gives an element of class `ProcessNF` a link to its NF; the element lends packets and settles
//! what becomes of each.

use shm::Packet;

/// A way to an NF that runs elsewhere, for one worker.
pub trait NfLink: Send {
    /// Makes the NF ready. Called once, before any packet.
    ///
    /// # Errors
    /// A sentence that says why the NF does not run.
    fn start(&mut self) -> Result<(), String>;

    /// Whether there is an NF to lend to.
    fn is_up(&self) -> bool;

    /// Lends packets that came in by an input, the front ones of the list, as many as can be; how many.
    fn lend(&mut self, input: usize, packets: &[Packet], list: &[u16]) -> usize;

    /// Whether packets that were lent last are read where they lie, while they go on: whoever has them is to say so by
    /// `shm::descriptor::flag::SHARED`.
    fn shares(&self) -> bool {
        false
    }

    /// Whether packets may be read where they lie while they go on; else a sentence why not. Called before `start`.
    fn let_share(&mut self, _why_not: Option<String>) {}

    /// How many empty slots the NF should get, to make packets in.
    fn grants_wanted(&self) -> usize;

    /// Grants empty slots, the front ones of the list, as many as can be; how many.
    fn grant(&mut self, packets: &[Packet], list: &[u16]) -> usize;

    /// Appends what came back, and what a dead NF held. Every packet that was lent comes up once.
    fn collect(&mut self, out: &mut Backs);

    /// Ends the NF, and appends everything that it still held.
    fn stop(&mut self, out: &mut Backs);

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

    /// Whether the NF only looks: what is lent to it are copies, and nothing comes back.
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
    /// `counters`, `bad-claims`, `copied`, `neighbours`.
    fn status(&self, _what: &str) -> Option<String> {
        None
    }
}

/// Packets that are the host's again, and what became of each.
#[derive(Debug, Default)]
pub struct Backs {
    /// As many as there ever were at a time: those that count are as many as there are fates.
    packets: Vec<Packet>,
    fates: Vec<Fate>,
    /// Packets that went on without coming back, by output.
    passed: Vec<(usize, usize)>,
    /// Copies that an observer had not looked at when it ended.
    missed: usize,
}

impl Backs {
    /// With room for so many, so that no memory is asked for while packets move. Memory that is never used costs nothing.
    pub fn with_room(most: usize) -> Backs {
        let (packets, fates) = (Vec::with_capacity(most), Vec::with_capacity(most));
        Backs { packets, fates, ..Backs::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.fates.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fates.is_empty()
    }

    /// Forgets all: they went elsewhere.
    pub fn clear(&mut self) {
        self.fates.clear();
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
    pub fn push(&mut self, packet: &Packet, fate: Fate) {
        self.fill(1, |place, fates| {
            place.fill(*packet);
            fates.push(fate);
        });
    }

    /// Has `fill` write up to `most` packets into free places, and add what became of each to the fates.
    pub fn fill(&mut self, most: usize, fill: impl FnOnce(&mut [Packet], &mut Vec<Fate>)) {
        let (from, to) = (self.fates.len(), self.fates.len() + most);
        if self.packets.len() < to {
            self.packets.resize(to, Packet::EMPTY);
        }
        fill(&mut self.packets[from..to], &mut self.fates);
        // Every fate is one of a packet.
        self.fates.truncate(to);
    }

    /// What became of each.
    pub fn fates(&self) -> &[Fate] {
        &self.fates
    }

    /// Packets in a row that became of the same, in order.
    pub fn runs(&self) -> impl Iterator<Item = (Fate, &[Packet])> {
        let mut rest = &self.packets[..self.fates.len()];
        self.fates.chunk_by(|one, next| one == next).map(move |fates| {
            let (run, behind) = rest.split_at(fates.len());
            rest = behind;
            (fates[0], run)
        })
    }
}

/// What became of a packet that was lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The NF sends it out of an output.
    Output(usize),
    /// The NF dropped it.
    Dropped,
    /// The NF died, and had not taken it.
    NotTaken,
    /// The NF died with it.
    Lost,
    /// The NF had it kept for later, and died.
    Kept,
    /// The NF made it in a slot that was granted, and sends it out of an output.
    Made(usize),
    /// A slot that was granted and is not needed any more: no packet.
    Unused,
}
