//! What went where: the counters of all workers, added up.

use crate::counters::NodeCounters;
use crate::graph::Node;
use element::work::NodeCounter;
use port::PortStats;
use serde::Serialize;
use std::sync::Arc;

/// What went in and out of one element, over all workers.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct NodeReport {
    /// Flat name.
    pub name: String,
    /// Class.
    pub class: String,
    /// Packets in.
    pub input: u64,
    /// Received from a port or file.
    pub received: u64,
    /// Made by the element.
    pub made: u64,
    /// Out, by port.
    pub outputs: Vec<u64>,
    /// Sent by a port or to a file.
    pub sent: u64,
    /// Went into other packets.
    pub merged: u64,
    /// Kept now; see [`NodeCounters::held`].
    pub held: i64,
    /// Dropped, by reason; those that never happened are left out.
    pub dropped: Vec<(String, u64)>,
    /// Handed over to another worker.
    pub handed_over: u64,
}

impl NodeReport {
    /// Adds a worker's counters.
    pub fn add(&mut self, counters: &NodeCounters) {
        let account = |account: NodeCounter| counters.accounts[account as usize].get();
        self.input += counters.input.get();
        self.received += account(NodeCounter::Received);
        self.made += account(NodeCounter::Made);
        self.sent += account(NodeCounter::Sent);
        self.merged += account(NodeCounter::Merged);
        self.held += counters.held();
        self.handed_over += counters.handed_over.get();
        self.outputs.resize(self.outputs.len().max(counters.outputs.len()), 0);
        self.outputs.iter_mut().zip(&counters.outputs).for_each(|(sum, count)| *sum += count.get());
        for (reason, count) in counters.reasons.iter().zip(&counters.dropped) {
            let count = count.get();
            if count == 0 {
                continue;
            }
            match self.dropped.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += count,
                None => self.dropped.push((reason.clone(), count)),
            }
        }
    }

    /// Packets dropped, all reasons.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }

    /// In + received + made less out + dropped + sent + merged + held: 0 when nothing was lost. Packets
    /// that were handed over come in at both workers and are counted once.
    pub fn imbalance(&self) -> i128 {
        let left = self.input + self.received + self.made - self.handed_over.min(self.input);
        let out: u64 = self.outputs.iter().sum();
        i128::from(left)
            - i128::from(out + self.dropped_total() + self.sent + self.merged)
            - i128::from(self.held)
    }
}

/// A port's counters and the elements that use it.
#[derive(Clone, Debug, Serialize)]
pub struct PortReport {
    /// The port.
    pub name: String,
    /// The element; of several that use one queue in one direction all, with commas between.
    pub element: String,
    /// Packets and bytes received.
    pub received: (u64, u64),
    /// Packets and bytes sent.
    pub sent: (u64, u64),
    /// Packets that the driver lost on the way in.
    pub rx_lost: u64,
    /// Packets that the port gave up.
    pub tx_errors: u64,
}

impl PortReport {
    /// From a port's counters.
    pub fn new(name: String, element: String, stats: &PortStats) -> PortReport {
        PortReport {
            name,
            element,
            received: (stats.rx_packets, stats.rx_bytes),
            sent: (stats.tx_packets, stats.tx_bytes),
            rx_lost: stats.rx_dropped.total(),
            tx_errors: stats.tx_errors,
        }
    }

    /// Adds what another element of the same queue told. The queue counts for all of them: which packets of
    /// a file are whose is not known when it is full.
    pub fn add(&mut self, other: PortReport) {
        self.element = format!("{}, {}", self.element, other.element);
        let sum = |one: (u64, u64), two: (u64, u64)| (one.0 + two.0, one.1 + two.1);
        self.received = sum(self.received, other.received);
        self.sent = sum(self.sent, other.sent);
        self.rx_lost += other.rx_lost;
        self.tx_errors += other.tx_errors;
    }
}

/// The accounts of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Every element.
    pub nodes: Vec<NodeReport>,
    /// Seconds from the first to the last packet.
    pub busy_s: f64,
    /// Seconds of that in which workers had nothing to do, all workers together.
    pub waited_s: f64,
    /// Number of workers.
    pub workers: usize,
}

/// The counters of all workers, readable while they run.
#[derive(Clone, Default)]
pub struct Ledger {
    nodes: Vec<(String, String, Vec<Arc<NodeCounters>>)>,
}

impl Ledger {
    /// Of these graphs, which are alike.
    pub fn new(graphs: &[Vec<Node>]) -> Ledger {
        let mut nodes: Vec<(String, String, Vec<Arc<NodeCounters>>)> = vec![];
        for graph in graphs {
            for (at, node) in graph.iter().enumerate() {
                if nodes.len() <= at {
                    nodes.push((node.name.clone(), node.class.name.to_string(), vec![]));
                }
                nodes[at].2.push(Arc::clone(&node.counters));
            }
        }
        Ledger { nodes }
    }

    /// The accounts now.
    pub fn nodes(&self) -> Vec<NodeReport> {
        let sum = |(name, class, counters): &(String, String, Vec<Arc<NodeCounters>>)| {
            let mut report = NodeReport { name: name.clone(), class: class.clone(), ..NodeReport::default() };
            counters.iter().for_each(|counters| report.add(counters));
            report
        };
        self.nodes.iter().map(sum).collect()
    }
}

impl Report {
    /// Packets that came in from ports and files.
    pub fn received(&self) -> u64 {
        self.nodes.iter().map(|node| node.received).sum()
    }

    /// Packets that went out to ports and files.
    pub fn sent(&self) -> u64 {
        self.nodes.iter().map(|node| node.sent).sum()
    }

    /// Packets dropped anywhere.
    pub fn dropped(&self) -> u64 {
        self.nodes.iter().map(NodeReport::dropped_total).sum()
    }

    /// Elements whose books do not balance; none in a sound run.
    pub fn unbalanced(&self) -> impl Iterator<Item = &NodeReport> {
        self.nodes.iter().filter(|node| node.imbalance() != 0)
    }

    /// Received + made − sent − dropped − merged − held over the whole chain; 0 when nothing was lost.
    pub fn imbalance(&self) -> i128 {
        let made: u64 = self.nodes.iter().map(|node| node.made).sum();
        let merged: u64 = self.nodes.iter().map(|node| node.merged).sum();
        let held: i64 = self.nodes.iter().map(|node| node.held).sum();
        let left = i128::from(self.received() + made) - i128::from(held);
        left - i128::from(self.sent() + self.dropped() + merged)
    }
}
