//! What all `Check…Header` elements do with bad packets.
//!
//! Each reason has a cell that counts. A bad packet leaves by output 1 if that is wired, else it is dropped
//! for the reason. With `VERBOSE` it takes a slow path first, which prints the reason. The reasons are the
//! first of the element's own ([`element::Element::reasons`]), in the same order.

use crate::program::counted_block;
use click::config::{Args, parse};
use element::{Element, Handlers, Row, Transparent, Work};
use ir::{BlockId, Builder};
use packet::Access;
use shm::burst::Batch;
use shm::bytes::PacketBytes;

/// The faults that an element checks for.
pub struct Faults {
    /// How a message begins, such as `IP header check failed`.
    pub what: &'static str,
    /// The element's drop reasons; those of its faults come first.
    pub names: &'static [&'static str],
    /// Click's words for the faults.
    pub texts: &'static [&'static str],
}

/// The faults that an element found, and what it prints of them.
pub struct Complaints {
    /// The faults that it checks for.
    pub faults: &'static Faults,
    /// The element's name.
    pub element: String,
    /// Whether every bad packet is printed.
    pub verbose: bool,
    /// Whether counts by reason are shown.
    pub details: bool,
    /// Bad packets by reason that Rust code found, and the program's cells do not count.
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

    /// Without the keywords: nothing is printed, and counts by reason are not shown.
    pub fn silent(faults: &'static Faults, element: String) -> Complaints {
        let found = vec![0; faults.texts.len()];
        Complaints { faults, element, verbose: false, details: false, found }
    }

    /// Declares a cell and a block for each reason; the current block stays. Must be called before other
    /// cells and slow paths are declared.
    fn blocks(&self, f: &mut Builder) -> BadBlocks {
        let complained_of = self.faults.texts.iter().zip(self.faults.names);
        let blocks = complained_of.map(|(_, reason)| {
            let cell = f.cell(reason, 0);
            counted_block(f, cell, |f| if self.verbose { f.slow(reason) } else { f.emit_or_drop(1, reason) })
        });
        BadBlocks(blocks.collect())
    }

    /// Prints and emits packets that took the slow path of a reason; false for other slow paths.
    fn tell(&self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) -> bool {
        if !self.verbose || path >= self.faults.texts.len() {
            return false;
        }
        batch.list().iter().for_each(|&index| self.send_off(index, path, batch, work));
        true
    }

    /// Counts, prints and emits a packet that Rust code found to be bad.
    pub fn complain(&mut self, index: u16, reason: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        self.found[reason] += 1;
        self.send_off(index, reason, batch, work);
    }

    fn send_off(&self, index: u16, reason: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        if self.verbose {
            let Faults { what, texts, .. } = self.faults;
            work.print_about(index, &format!("{}: {what}: {}", self.element, texts[reason]));
        }
        batch.emit_or_drop(index, 1, reason);
    }

    /// Whether it prints lines about packets.
    pub fn prints(&self) -> bool {
        self.verbose
    }

    /// Cuts packets in several segments at their `end_of`. A packet that cannot be cut is dropped for the
    /// reason behind those of the faults: its segments contradict its length.
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
    /// What becomes of bad packets.
    pub complaints: Complaints,
    /// The checks.
    pub check: C,
}

/// The checks of a [`Checker`].
pub trait Check: Send {
    /// Names the program, and builds the checks; bad packets continue at `bad`.
    fn build(&self, f: &mut Builder, bad: &BadBlocks);

    /// Works on packets of the checks' own slow paths, if there are any.
    fn slow(&self, _complaints: &mut Complaints, _batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        debug_assert!(false, "a slow path without a complaint");
    }
}

impl<C: Check> Transparent for Checker<C> {
    fn build(&self, f: &mut Builder) {
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

    fn prints(&self) -> bool {
        self.complaints.prints()
    }

    fn reasons(&self) -> &'static [&'static str] {
        self.complaints.faults.names
    }

    fn handlers(&mut self) -> Handlers<'_> {
        self.complaints.handlers()
    }
}

/// The handler that every such element has.
const PLAIN: &[Row<Complaints>] =
    &[Row::sum("drops", |complaints, cells| Some(complaints.counts(cells).sum::<u64>().to_string()))];
/// The handlers with `DETAILS`.
const DETAILED: &[Row<Complaints>] = &[PLAIN[0], Row::concat("drop_details", Complaints::details)];
