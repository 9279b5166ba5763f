//! NFs in processes of their own, as the elements that represent them see them.
//!
//! The host gives an element of class `ProcessNF` a link to its NF. The element enqueues packets and
//! processes their completions.

use shm::Packet;
use shm::channel::Completion;

/// The link of one worker to an NF in another process.
pub trait NfLink: Send {
    /// Makes the NF ready. Called once, before any packet.
    ///
    /// # Errors
    /// A sentence that states why the NF does not run.
    fn start(&mut self) -> Result<(), String>;

    /// Whether the NF runs.
    fn is_up(&self) -> bool;

    /// Enqueues packets from an input, from the front of the list, as many as fit. Returns their number.
    fn enqueue(&mut self, input: usize, packets: &[Packet], list: &[u16]) -> usize;

    /// Whether the NF reads the packets enqueued last in place while the chain forwards them: their
    /// descriptors need `shm::descriptor::flag::SHARED`.
    fn shares(&self) -> bool;

    /// Allows the NF to read packets in place, or gives the reason why it may not. Called before `start`.
    fn let_share(&mut self, why_not: Option<String>);

    /// The number of empty slots to grant to the NF, for packets that it makes.
    fn grants_wanted(&self) -> usize;

    /// Grants empty slots from the front of the list, as many as fit. Returns their number.
    fn grant(&mut self, packets: &[Packet], list: &[u16]) -> usize;

    /// Appends the completions of returned packets and of those that a dead NF held. Every enqueued packet
    /// has one.
    fn collect(&mut self, out: &mut Completions);

    /// Ends the NF, and appends the completions of all packets that it held.
    fn stop(&mut self, out: &mut Completions);

    /// New warnings, each returned once.
    fn take_warnings(&mut self) -> Vec<String>;

    /// The output opposite an input, if there is one.
    fn across(&self, input: usize) -> Option<usize>;

    /// Whether packets bypass an NF that does not run.
    fn is_bypassed(&self) -> bool;

    /// Whether the NF is an observer: it gets copies and returns nothing.
    fn observes(&self) -> bool;

    /// Whether packets wait for an NF that does not run.
    fn waits_when_down(&self) -> bool;

    /// Whether an NF that does not run is being started, and has not failed too often.
    fn is_coming(&self) -> bool;

    /// Whether the NF requests the end of the run.
    fn is_over(&self) -> bool;

    /// Whether a script in the NF's process runs or waits for a time, and has not requested the end.
    fn holds_run(&self) -> bool;

    /// Whether the NF runs and may have made packets that it has not returned.
    fn may_make(&self) -> bool;

    /// A value about the NF, by handler name: `state`, `restarts`, `pid`, `kind`, `drops`, `counters`,
    /// `bad-descriptors`, `copied`, `neighbours`.
    fn status(&self, what: &str) -> Option<String>;
}

/// Packets that the NF no longer has, each with its completion.
#[derive(Debug, Default)]
pub struct Completions {
    /// The first `count` items are in use, here and in `completions`; the rest is kept to avoid allocations.
    packets: Vec<Packet>,
    completions: Vec<Completion>,
    count: usize,
    /// Packets that the NF passed on directly, by output.
    passed: Vec<(usize, usize)>,
    /// Copies that an observer had not read when it ended.
    missed: usize,
}

impl Completions {
    /// With room for `most` packets, so that nothing is allocated while packets move.
    pub fn with_room(most: usize) -> Completions {
        let (packets, completions) = (Vec::with_capacity(most), Vec::with_capacity(most));
        Completions { packets, completions, ..Completions::default() }
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.count = 0;
        self.passed.clear();
        self.missed = 0;
    }

    /// Adds copies that an observer had not read when it ended.
    pub fn miss(&mut self, count: usize) {
        self.missed += count;
    }

    /// Copies that an observer had not read when it ended.
    pub fn missed(&self) -> usize {
        self.missed
    }

    /// Adds packets that the NF passed directly to the NF behind an output.
    pub fn pass(&mut self, output: usize, count: usize) {
        self.passed.push((output, count));
    }

    /// Outputs, and how many packets the NF passed on directly there.
    pub fn passed(&self) -> &[(usize, usize)] {
        &self.passed
    }

    /// Adds a packet.
    pub fn push(&mut self, packet: &Packet, completion: Completion) {
        self.fill(1, |packets, completions| {
            packets.fill(*packet);
            completions.fill(completion);
            1
        });
    }

    /// Lets `fill` write up to `most` packets and completions and return their number.
    pub fn fill(&mut self, most: usize, fill: impl FnOnce(&mut [Packet], &mut [Completion]) -> usize) {
        let (from, to) = (self.count, self.count + most);
        if self.packets.len() < to {
            self.packets.resize(to, Packet::EMPTY);
            self.completions.resize(to, Completion::Unused);
        }
        self.count += fill(&mut self.packets[from..to], &mut self.completions[from..to]).min(most);
    }

    /// The completions, in order.
    pub fn completions(&self) -> &[Completion] {
        &self.completions[..self.count]
    }

    /// Runs of packets with the same completion, in order.
    pub fn runs(&self) -> impl Iterator<Item = (Completion, &[Packet])> {
        let mut rest = &self.packets[..self.count];
        self.completions().chunk_by(|one, next| one == next).map(move |completions| {
            let (run, behind) = rest.split_at(completions.len());
            rest = behind;
            (completions[0], run)
        })
    }
}
