//! An element in a worker's graph, and its books.
//!
//! Invariant, for each node whenever no burst is under way: packets in + received + made =
//! out + dropped + sent + merged + held, where held is what was kept less what was released. The books
//! are written by the worker alone and read by anybody.

use crate::fused::Entry;
use element::steering::Spread;
use element::work::Account;
use element::{Class, Element};
use ir::Verified;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and others read.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds; only the owning worker may.
    #[inline]
    pub fn add(&self, count: usize) {
        // A plain load and store: there is one writer, and a locked add would cost twenty cycles.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count as u64), Ordering::Relaxed);
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What went in and out of a node.
#[derive(Debug, Default)]
pub struct Books {
    /// Packets that came in, all inputs.
    pub input: Count,
    /// By [`Account`].
    pub accounts: [Count; 6],
    /// Packets that left, by port.
    pub outputs: Vec<Count>,
    /// Packets dropped, by reason.
    pub dropped: Vec<Count>,
    /// Names of the reasons.
    pub reasons: Vec<String>,
    /// Packets handed over to the worker that owns the element's state.
    pub handed_over: Count,
}

impl Books {
    /// Packets that the node keeps now. Below 0 for a moment where NFs pass packets on by themselves: that one gave a
    /// packet back may be known before that it came from another.
    pub fn held(&self) -> i64 {
        let account = |account: Account| self.accounts[account as usize].get();
        account(Account::Held).wrapping_sub(account(Account::Released)) as i64
    }
}

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The node.
    pub node: usize,
    /// Its port.
    pub port: usize,
}

/// How a node's program is run.
pub struct Lowered {
    /// The program.
    pub program: Arc<Verified>,
    /// How.
    pub engine: codegen::Engine,
    /// Where the element's own reasons start among the node's.
    pub own_reasons: usize,
}

/// What is done where packets are pulled out of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pulled {
    /// The element answers.
    Answers,
    /// It works on what it pulls itself.
    Through,
    /// One of these, with probes.
    Probed,
}

impl Pulled {
    /// Without probes.
    pub fn of(answers: bool) -> Pulled {
        if answers { Pulled::Answers } else { Pulled::Through }
    }
}

/// An element in a graph.
pub struct Node {
    /// Its flat name.
    pub name: String,
    /// Its class.
    pub class: &'static Class,
    /// Its configuration string.
    pub config: String,
    /// The element; taken out while it runs.
    pub element: Option<Box<dyn Element>>,
    /// For transparent elements: the program.
    pub lowered: Option<Lowered>,
    /// What the program's state cells start with; how many there are.
    pub first_cells: Vec<u64>,
    /// Where they lie among the worker's.
    pub cells: Range<usize>,
    /// For each input at which packets enter a stretch, where.
    pub entries: Vec<Option<Entry>>,
    /// Where packets pushed out of each output go.
    pub outputs: Vec<Option<End>>,
    /// Where packets for each input are pulled from; `None` for push inputs.
    pub inputs: Vec<Option<End>>,
    /// Whether the element answers pulls itself; else it stands in a pull path and works on what it
    /// pulls from its first input.
    pub answers_pull: bool,
    /// Whether its task runs on this worker.
    pub has_task: bool,
    /// What is done where packets are pulled out of it.
    pub pulled: Pulled,
    /// Whether another worker owns its state.
    pub elsewhere: bool,
    /// Whether packets that are pushed into it take another way than straight into the element: to another worker, or
    /// past probes.
    pub has_detour: bool,
    /// Where its task leaves packets of several workers: whose they are.
    pub spread: Option<Spread>,
    /// Its books.
    pub books: Arc<Books>,
}

impl Node {
    /// Puts its cells behind the worker's others.
    pub(crate) fn settle_in(&mut self, cells: &mut Vec<u64>) {
        let start = cells.len();
        cells.extend(&self.first_cells);
        self.cells = start..cells.len();
    }

    /// Adds to an account.
    #[inline]
    pub fn account(&self, account: Account, count: usize) {
        self.books.accounts[account as usize].add(count);
    }
}

/// The text form of a node's program.
pub fn program_text(lowered: &Lowered) -> String {
    ir::text::print(&lowered.program)
}
