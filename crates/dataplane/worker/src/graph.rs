//! An element in a worker's graph, the wires of its ports, and the engine of its program.
//!
//! [`crate::counters`] has its counters.

use crate::counters::NodeCounters;
use element::steering::FlowSteering;
use element::work::NodeCounter;
use element::{BoxElement, Class};
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
    /// The number of the fused region.
    pub region: usize,
    /// The input of its program.
    pub input: usize,
}

/// A node's program and the engine that runs it.
pub struct Lowered {
    /// The program.
    pub program: Arc<Verified>,
    /// The engine.
    pub engine: codegen::Engine,
    /// The index of the first of the element's own reasons among the node's.
    pub own_reasons: usize,
}

/// What a pull from a node calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pulled {
    /// The element's own `pull`.
    Answers,
    /// The element's processing of the packets that it pulls from its input.
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
    /// The number of its NF in the run.
    pub nf: usize,
    /// Its class.
    pub class: &'static Class,
    /// Its configuration string.
    pub config: String,
    /// The element; taken out while it runs.
    pub element: Option<BoxElement>,
    /// For transparent elements: the program. For a queue that packets pass, and what pulls from it: the
    /// program for those packets.
    pub lowered: Option<Lowered>,
    /// The initial values of the program's state cells.
    pub first_cells: Vec<u64>,
    /// Their range among the worker's cells.
    pub cells: Range<usize>,
    /// For each input at which packets enter a fused region, the entry.
    pub entries: Vec<Option<RegionEntry>>,
    /// For each output, the input that pushed packets enter.
    pub outputs: Vec<Option<End>>,
    /// For each input, the output from which packets are pulled; `None` for push inputs.
    pub inputs: Vec<Option<End>>,
    /// Whether the element answers pulls itself. Else it is in a pull path and processes the packets that it
    /// pulls from its first input.
    pub answers_pull: bool,
    /// For a queue that packets pass ([`crate::passage`]): the element that pulls from it.
    pub reader: Option<usize>,
    /// For the element that pulls from it: that queue.
    pub passed: Option<usize>,
    /// Whether its task has nothing to do until a packet waits in the queue or in the element.
    pub rests: bool,
    /// Whether it is such a queue, what pulls from it, or between the two, and a fused region can have it.
    pub is_in_passage: bool,
    /// Whether its task runs on this worker.
    pub has_task: bool,
    /// Whether the packets that its task makes are as a port delivers them ([`ir::Program::from_ports`]).
    pub is_from_port: bool,
    /// What a pull from the node calls.
    pub pulled: Pulled,
    /// Whether the first worker owns its state, and this is another worker.
    pub elsewhere: bool,
    /// Whether pushed packets pass a hook in front of the element: the handover to another worker, or probes.
    pub is_hooked: bool,
    /// Finds the owner workers of the packets that its task returns, if they can belong to several workers.
    pub steering: Option<FlowSteering>,
    /// Its counters.
    pub counters: Arc<NodeCounters>,
}

impl Node {
    /// Appends its cells to the worker's.
    pub(crate) fn settle_in(&mut self, cells: &mut Vec<u64>) {
        let start = cells.len();
        cells.extend(&self.first_cells);
        self.cells = start..cells.len();
    }

    /// Adds packets to a node counter.
    #[inline]
    pub fn count(&self, counter: NodeCounter, count: usize) {
        self.counters.counts[counter as usize].add(count);
    }
}
