//! An element in a worker's graph, where its packets go, and how its program is run.
//!
//! What goes in and out of it is counted in [`crate::counters`].

use crate::counters::NodeCounters;
use element::steering::FlowSteering;
use element::work::NodeCounter;
use element::{Class, Element};
use ir::Verified;
use std::ops::Range;
use std::sync::Arc;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The node.
    pub node: usize,
    /// Its port.
    pub port: usize,
}

/// Where packets enter a fused region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionEntry {
    /// The fused region, by its number.
    pub region: usize,
    /// The input of its program.
    pub input: usize,
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
    /// For each input at which packets enter a fused region, where.
    pub entries: Vec<Option<RegionEntry>>,
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
    pub steering: Option<FlowSteering>,
    /// What goes in and out of it.
    pub counters: Arc<NodeCounters>,
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
    pub fn count(&self, account: NodeCounter, count: usize) {
        self.counters.accounts[account as usize].add(count);
    }
}

/// The text form of a node's program.
pub fn program_text(lowered: &Lowered) -> String {
    ir::text::print(&lowered.program)
}
