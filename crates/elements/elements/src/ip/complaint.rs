//! Counting, telling and sorting out bad packets, as all `Check…Header` elements do.
//!
//! Each reason has a cell. A bad packet leaves by output 1 where that is wired, else it is dropped
//! for the reason. With `VERBOSE` it takes a slow path first, which prints why. The reasons come first among
//! an element's own ([`element::Element::reasons`]), in the same order.

use click::config::{Args, parse};
use element::{Element, Handlers, Row, Transparent, Work};
use ir::{BlockId, Builder};
use packet::Access;
use shm::burst::Batch;
use shm::bytes::PacketBytes;

/// What an element has to complain of.
pub struct Faults {
    /// How a message begins, such as `IP header check failed`.
    pub what: &'static str,
    /// The element's drop reasons, those that it complains of first.
    pub names: &'static [&'static str],
    /// Click's words for the reasons that the element complains of.
    pub texts: &'static [&'static str],
}

/// The reasons of an element and what the user wants to know of them.
pub struct Complaints {
    /// What there is to complain of.
    pub faults: &'static Faults,
    /// The element's name.
    pub element: String,
    /// Whether every bad packet is told.
    pub verbose: bool,
    /// Whether counts by reason are shown.
    pub details: bool,
    /// Bad packets that the element's own code found, by reason: its program cannot count them.
    pub found: Vec<u64>,
}

/// Blocks for bad packets, by reason.
pub struct BadBlocks(Vec<BlockId>);

impl BadBlocks {
    /// The block for a reason.
    pub fn of(&self, reason: usize) -> BlockId {
        self.0[reason]
    }
}

impl Complaints {
    /// Reads the keywords `VERBOSE` and `DETAILS`.
    pub fn new(faults: &'static Faults, element: String, args: &mut Args<'_>) -> Complaints {
        let verbose = args.keyword("VERBOSE", parse::bool).unwrap_or(false);
        let details = args.keyword("DETAILS", parse::bool).unwrap_or(false);
        Complaints { verbose, details, ..Complaints::silent(faults, element) }
    }

    /// Without the keywords: nothing is told, counts by reason are not shown.
    pub fn silent(faults: &'static Faults, element: String) -> Complaints {
        let found = vec![0; faults.texts.len()];
        Complaints { faults, element, verbose: false, details: false, found }
    }

    /// Makes cells and a block for each reason; the current block stays. To be called before other
    /// cells and slow paths are made.
    fn blocks(&self, f: &mut Builder) -> BadBlocks {
        let complained_of = self.faults.texts.iter().zip(self.faults.names);
        let blocks = complained_of.map(|(_, reason)| {
            let cell = f.cell(reason, 0);
            f.aside(|f| {
                f.add_to_cell(cell, 1);
                if self.verbose { f.slow(reason) } else { f.emit_or_drop(1, reason) }
            })
        });
        BadBlocks(blocks.collect())
    }

    /// Tells of packets that took the slow path of a reason; false for other slow paths.
    fn tell(&self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) -> bool {
        if !self.verbose || path >= self.faults.texts.len() {
            return false;
        }
        batch.list().iter().for_each(|&index| self.send_off(index, path, batch, work));
        true
    }

    /// A packet that the element's own code found to be bad.
    pub fn complain(&mut self, index: u16, reason: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        self.found[reason] += 1;
        self.send_off(index, reason, batch, work);
    }

    fn send_off(&self, index: u16, reason: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        if self.verbose {
            let Faults { what, texts, .. } = self.faults;
            work.print(&format!("{}: {what}: {}", self.element, texts[reason]));
        }
        batch.emit_or_drop(index, 1, reason);
    }

    /// Cuts packets behind what `end_of` says is their end, where they are chains. One that cannot be cut is
    /// dropped for the reason behind those that are complained of: its segments contradict its length.
    pub fn trim(&self, batch: &mut Batch<'_>, end_of: impl Fn(&PacketBytes<'_>) -> usize) {
        batch.emit_if(self.faults.texts.len(), |packet| {
            let bytes = PacketBytes::new(packet);
            let excess = bytes.len().saturating_sub(end_of(&bytes));
            packet.take(excess)
        });
    }

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = if self.details { DETAILED } else { PLAIN };
        Handlers::of(self, rows)
    }

    /// Bad packets, by reason.
    fn counts(&self, cells: &[u64]) -> impl Iterator<Item = u64> {
        // An opaque element has no cells.
        let cells = cells.iter().copied().chain(std::iter::repeat(0));
        self.found.iter().zip(cells).map(|(found, counted)| found + counted)
    }

    fn details(&self, cells: &[u64]) -> Option<String> {
        let lines = self.counts(cells).zip(self.faults.texts);
        let lines: Vec<String> = lines.map(|(count, text)| format!("{count}\t{text}")).collect();
        Some(lines.join("\n"))
    }
}

/// An element that checks headers: `CheckIPHeader` and its kin.
pub struct Checker<C> {
    /// The class.
    pub class: &'static str,
    /// What it complains of.
    pub complaints: Complaints,
    /// What it checks.
    pub check: C,
}

/// What the program of a [`Checker`] checks.
pub trait Check: Send {
    /// Builds the program behind the blocks for bad packets.
    fn build(&self, f: &mut Builder, bad: &BadBlocks);

    /// Works on packets of its own slow paths.
    fn slow(&self, complaints: &mut Complaints, batch: &mut Batch<'_>, work: &mut Work<'_>);
}

impl<C: Check> Transparent for Checker<C> {
    fn build(&self, f: &mut Builder) {
        f.name(self.class);
        let bad = self.complaints.blocks(f);
        self.check.build(f, &bad);
    }

    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        if !self.complaints.tell(path, batch, work) {
            self.check.slow(&mut self.complaints, batch, work);
        }
    }
}

impl<C: Send> Element for Checker<C> {
    fn writes(&self) -> bool {
        false
    }

    fn reasons(&self) -> &'static [&'static str] {
        self.complaints.faults.names
    }

    fn handlers(&mut self) -> Handlers<'_> {
        self.complaints.handlers()
    }
}

/// The handler that every element with complaints has.
const PLAIN: &[Row<Complaints>] =
    &[Row::sum("drops", |complaints, cells| Some(complaints.counts(cells).sum::<u64>().to_string()))];
/// With the one that `DETAILS` adds.
const DETAILED: &[Row<Complaints>] = &[PLAIN[0], Row::concat("drop_details", Complaints::details)];
