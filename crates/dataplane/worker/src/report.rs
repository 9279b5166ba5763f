//! The report of a run: the node counters of all workers, added up.

use crate::counters::NodeCounters;
use crate::graph::Node;
use element::work::NodeCounter;
use port::PortStats;
use serde::Serialize;
use std::sync::Arc;

/// The counters of one element, added up over all workers.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct NodeReport {
    /// Flat name of the element.
    pub name: String,
    /// Class of the element.
    pub class: String,
    /// Packets that entered the element.
    pub input: u64,
    /// Received from a port or file.
    pub received: u64,
    /// Packets that the element made.
    pub made: u64,
    /// Packets that left, by port.
    pub outputs: Vec<u64>,
    /// Sent by a port or to a file.
    pub sent: u64,
    /// Bytes of the received packets.
    pub received_bytes: u64,
    /// Bytes of the sent packets.
    pub sent_bytes: u64,
    /// Packets that became part of other packets.
    pub merged: u64,
    /// Packets that the element keeps now; see [`NodeCounters::held`].
    pub held: i64,
    /// Packets that were dropped, by reason; reasons without drops are left out.
    pub dropped: Vec<(String, u64)>,
    /// Packets that were handed over to another worker.
    pub handed_over: u64,
}

impl NodeReport {
    /// Adds a worker's counters.
    pub fn add(&mut self, counters: &NodeCounters) {
        let count = |counter: NodeCounter| counters.counts[counter as usize].get();
        self.input += counters.input.get();
        self.received += count(NodeCounter::Received);
        self.made += count(NodeCounter::Made);
        self.sent += count(NodeCounter::Sent);
        self.received_bytes += count(NodeCounter::ReceivedBytes);
        self.sent_bytes += count(NodeCounter::SentBytes);
        self.merged += count(NodeCounter::Merged);
        self.held += counters.held();
        self.handed_over += counters.handed_over.get();
        self.outputs.resize(self.outputs.len().max(counters.outputs.len()), 0);
        self.outputs.iter_mut().zip(&counters.outputs).for_each(|(sum, count)| *sum += count.get());
        for (reason, count) in counters.reasons.iter().zip(&counters.dropped) {
            if count.get() > 0 {
                add_named(&mut self.dropped, reason, count.get());
            }
        }
    }

    /// Packets that were dropped, for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }

    /// In + received + made less out + dropped + sent + merged + held: 0 when no packet was lost. Packets
    /// that were handed over are counted as input at both workers, and once here.
    pub fn imbalance(&self) -> i128 {
        let left = self.input + self.received + self.made - self.handed_over.min(self.input);
        let out: u64 = self.outputs.iter().sum();
        i128::from(left)
            - i128::from(out + self.dropped_total() + self.sent + self.merged)
            - i128::from(self.held)
    }
}

/// Adds a named number to the sum with its name.
pub fn add_named(sums: &mut Vec<(String, u64)>, name: &str, number: u64) {
    match sums.iter_mut().find(|(known, _)| known == name) {
        Some((_, sum)) => *sum += number,
        None => sums.push((name.to_string(), number)),
    }
}

/// A port's counters and the elements that use it.
#[derive(Clone, Debug, Serialize)]
pub struct PortReport {
    /// Name of the port.
    pub name: String,
    /// The element. If several elements use one queue in one direction: all of them, separated by commas.
    pub element: String,
    /// Packets and bytes received.
    pub received: (u64, u64),
    /// Packets and bytes sent.
    pub sent: (u64, u64),
    /// Packets that the driver lost on reception.
    pub rx_lost: u64,
    /// Packets that the port could not send.
    pub tx_errors: u64,
}

impl PortReport {
    /// A report of a port's counters.
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

    /// Adds the counters of another element of the same queue. The queue counts for all of them: after a full
    /// file, the packets cannot be attributed to single elements.
    pub fn add(&mut self, other: PortReport) {
        self.element = format!("{}, {}", self.element, other.element);
        let sum = |one: (u64, u64), two: (u64, u64)| (one.0 + two.0, one.1 + two.1);
        self.received = sum(self.received, other.received);
        self.sent = sum(self.sent, other.sent);
        self.rx_lost += other.rx_lost;
        self.tx_errors += other.tx_errors;
    }
}

/// The packet accounting of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The counters of every element.
    pub nodes: Vec<NodeReport>,
    /// Seconds from the first to the last packet.
    pub busy_s: f64,
    /// Seconds of that in which workers were idle, summed over the workers.
    pub waited_s: f64,
    /// Number of workers.
    pub workers: usize,
}

/// The node counters of all workers, readable while they run.
#[derive(Clone, Default)]
pub struct NodeCounterReader {
    nodes: Vec<(String, String, Vec<Arc<NodeCounters>>)>,
}

impl NodeCounterReader {
    /// The counters of these graphs, which have the same nodes.
    pub fn new(graphs: &[Vec<Node>]) -> NodeCounterReader {
        let node = |(at, node): (usize, &Node)| {
            let counters = graphs.iter().map(|graph| Arc::clone(&graph[at].counters)).collect();
            (node.name.clone(), node.class.name.to_string(), counters)
        };
        NodeCounterReader { nodes: graphs.iter().take(1).flatten().enumerate().map(node).collect() }
    }

    /// The current counters of every element.
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
    /// Packets received from ports and files.
    pub fn received(&self) -> u64 {
        self.nodes.iter().map(|node| node.received).sum()
    }

    /// Packets sent to ports and files.
    pub fn sent(&self) -> u64 {
        self.nodes.iter().map(|node| node.sent).sum()
    }

    /// Packets dropped anywhere.
    pub fn dropped(&self) -> u64 {
        self.nodes.iter().map(NodeReport::dropped_total).sum()
    }

    /// Elements whose counters do not balance; none in a correct run.
    pub fn unbalanced(&self) -> impl Iterator<Item = &NodeReport> {
        self.nodes.iter().filter(|node| node.imbalance() != 0)
    }

    /// Received + made − sent − dropped − merged − held over the whole chain; 0 when no packet was lost.
    pub fn imbalance(&self) -> i128 {
        let made: u64 = self.nodes.iter().map(|node| node.made).sum();
        let merged: u64 = self.nodes.iter().map(|node| node.merged).sum();
        let held: i64 = self.nodes.iter().map(|node| node.held).sum();
        let left = i128::from(self.received() + made) - i128::from(held);
        left - i128::from(self.sent() + self.dropped() + merged)
    }
}
