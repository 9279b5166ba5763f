//! Queues that packets pass.
//!
//! Click needs a queue in front of what pulls. Where that takes every burst at once, nothing ever waits in
//! the queue: packets pass it, on to the elements behind it, which are pushed into as if there was no queue.
//! This module finds those queues before the first packet; each other queue has a reason ([`WhyKept`]).
//!
//! The wires to pull by remain: a packet that cannot pass waits in the queue, and those that come later wait
//! behind it until the queue is empty. [`crate::Worker`] asks before each burst.
//!
//! - A queue whose reader has a program ([`element::Opaque::build_passing`]) can be part of a fused region,
//!   and so can the elements up to the reader.
//! - A fused region ends in front of the queue of a port: a full port is no reason to leave the region's
//!   program. The elements behind that queue run one by one.
//! - A loop through queues ends where it is too deep ([`crate::Worker`]): there packets wait in the queue.

use crate::graph::{End, Lowered, Node};
use codegen::Engine;
use element::{Shape, StateScope};
use ir::verify::VerifyError;
use std::fmt;
use std::sync::Arc;

/// A queue, and whether packets pass it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuePassage {
    /// The queue.
    pub queue: usize,
    /// The wires from it to the element that pulls from it, or why packets wait in it.
    pub path: Result<Vec<PullWire>, WhyKept>,
}

/// A wire by which packets are pulled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PullWire {
    /// The output.
    pub from: End,
    /// The input that pulls.
    pub to: End,
}

impl QueuePassage {
    /// The element that pulls from a queue that packets pass.
    pub fn reader(&self) -> Option<usize> {
        self.path.as_ref().ok()?.last().map(|wire| wire.to.node)
    }
}

/// Why packets wait in a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhyKept {
    /// The queue's own reason.
    Queue(&'static str),
    /// Nothing pulls from it.
    Unread,
    /// Several elements pull from it, or through one element behind it.
    SeveralReaders {
        /// Where they do.
        at: usize,
    },
    /// An element on the path that pulls decides when packets leave: a scheduler or a shaper.
    Decides {
        /// The element.
        by: usize,
    },
    /// What pulls does not take every burst at once.
    Reader {
        /// The element.
        by: usize,
        /// Its reason.
        why: &'static str,
    },
    /// Another worker has the state of an element behind it.
    OtherWorker {
        /// The element.
        at: usize,
    },
}

impl WhyKept {
    /// The element that is the reason, if it is not the queue.
    pub fn element(&self) -> Option<usize> {
        match self {
            WhyKept::Queue(_) | WhyKept::Unread => None,
            WhyKept::SeveralReaders { at } | WhyKept::OtherWorker { at } => Some(*at),
            WhyKept::Decides { by } | WhyKept::Reader { by, .. } => Some(*by),
        }
    }

    /// A sentence, without a full stop.
    pub fn describe(&self, nodes: &[Node]) -> impl fmt::Display {
        let named = |at: usize| format!("{} ({})", nodes[at].name, nodes[at].class.name);
        match self {
            WhyKept::Queue(why) => format!("it {why}"),
            WhyKept::Unread => "nothing pulls from it".into(),
            WhyKept::SeveralReaders { at } => format!("several elements pull from {}", named(*at)),
            WhyKept::Decides { by } => format!("{} decides when they leave", named(*by)),
            WhyKept::Reader { by, why } => format!("{} {why}", named(*by)),
            WhyKept::OtherWorker { at } => format!("one worker has the state of {}", named(*at)),
        }
    }
}

/// The queues of a graph. `burst` is the largest burst of the run's sources.
pub fn find(nodes: &mut [Node], workers: usize, burst: usize) -> Vec<QueuePassage> {
    let queues: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].class.is_queue()).collect();
    let passage = |queue| {
        let path = pull_path(nodes, workers, queue);
        let path = path.and_then(|path| will_pass(nodes, queue, &path, burst).map(|()| path));
        QueuePassage { queue, path }
    };
    queues.into_iter().map(passage).collect()
}

/// The wires from a queue to the element that pulls from it.
fn pull_path(nodes: &[Node], workers: usize, queue: usize) -> Result<Vec<PullWire>, WhyKept> {
    let (mut path, mut at) = (vec![], queue);
    // A loop of pulls has no task.
    while path.len() < nodes.len() {
        let wire = match &pulling(nodes, at)[..] {
            [] => break,
            [wire] => *wire,
            _ => return Err(WhyKept::SeveralReaders { at }),
        };
        path.push(wire);
        at = wire.to.node;
        let node = &nodes[at];
        if node.answers_pull || node.inputs.len() > 1 {
            return Err(WhyKept::Decides { by: at });
        }
        if workers > 1 && node.class.state == StateScope::OneWorker {
            return Err(WhyKept::OtherWorker { at });
        }
        if node.has_task {
            return Ok(path);
        }
    }
    Err(WhyKept::Unread)
}

/// The wires by which packets are pulled from a node.
fn pulling(nodes: &[Node], from: usize) -> Vec<PullWire> {
    let inputs = nodes.iter().enumerate().flat_map(|(node, this)| {
        let ups = this.inputs.iter().enumerate();
        ups.filter_map(move |(port, up)| Some(PullWire { from: (*up)?, to: End { node, port } }))
    });
    inputs.filter(|wire| wire.from.node == from).collect()
}

/// Whether a queue and the element that pulls from it let so many packets pass.
fn will_pass(nodes: &mut [Node], queue: usize, path: &[PullWire], packets: usize) -> Result<(), WhyKept> {
    let asked = nodes[queue].element.as_mut().and_then(|element| element.as_opaque());
    asked.map_or(Ok(()), |queue| queue.lets_pass(packets)).map_err(WhyKept::Queue)?;
    let by = path.last().map_or(queue, |wire| wire.to.node);
    let asked = nodes[by].element.as_mut().and_then(|element| element.task());
    asked.map_or(Ok(()), |task| task.takes_at_once(packets)).map_err(|why| WhyKept::Reader { by, why })
}

/// Lets packets pass these queues: sets the wires by which they are pushed on, and the programs for them.
///
/// # Errors
/// When a program is invalid: a bug.
pub fn open(nodes: &mut [Node], passages: &[QueuePassage]) -> Result<(), VerifyError> {
    for passage in passages {
        let (Ok(path), Some(reader)) = (&passage.path, passage.reader()) else { continue };
        let has_program = add_program(&mut nodes[reader])? && add_program(&mut nodes[passage.queue])?;
        for PullWire { from, to } in path {
            nodes[from.node].outputs[from.port] = Some(*to);
            nodes[from.node].is_in_passage = has_program;
            nodes[to.node].is_in_passage = has_program;
        }
        nodes[passage.queue].reader = Some(reader);
        nodes[reader].passed = Some(passage.queue);
        if let Some(task) = nodes[reader].element.as_mut().and_then(|element| element.task()) {
            task.note_passing();
        }
    }
    Ok(())
}

/// Gives a node the program for packets that pass a queue. Returns whether it has one.
fn add_program(node: &mut Node) -> Result<bool, VerifyError> {
    let shape = Shape { inputs: node.inputs.len(), outputs: node.outputs.len() };
    let program = node.element.as_ref().and_then(|element| element.lower_passing(shape)).transpose()?;
    if let Some(program) = program {
        let program = Arc::new(program);
        node.first_cells = program.cells.iter().map(|cell| cell.init).collect();
        node.lowered =
            Some(Lowered { engine: Engine::Evaluator(Arc::clone(&program)), program, own_reasons: 0 });
    }
    Ok(node.lowered.is_some())
}
