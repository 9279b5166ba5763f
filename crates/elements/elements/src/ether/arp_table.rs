//! `ARPTable`: a table of neighbours that several queriers use.

use super::neighbours::{Limits, Neighbours};
use element::class::{Class, StateScope};
use element::configure::{Configure, Scope};
use element::element::Element;
use element::handler::Handler;
use element::value::no_such_handler;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The class.
pub const CLASS: Class = Class {
    name: "ARPTable",
    summary: "stores IP-to-Ethernet mappings",
    page: "\
# ARPTable([keywords CAPACITY, ENTRY_CAPACITY, ENTRY_PACKET_CAPACITY, CAPACITY_SLIM_FACTOR, TIMEOUT])

Holds the ARP table of one or more ARPQueriers, which name it with TABLE. All workers share it.

- **ports**: none
- **arguments**: `CAPACITY` (default 2048): packets that wait for answers, 0 for no limit;
  `ENTRY_CAPACITY` (default 0, no limit): entries; `ENTRY_PACKET_CAPACITY` (default 0, no limit): packets
  that wait for one answer; `CAPACITY_SLIM_FACTOR` (default 2): when there are too many packets, one of so
  many is dropped; `TIMEOUT` (default 5 minutes): life of an entry, 0 for ever
- **handlers**: `table` (read): a line for each entry: IP address, whether it is known, Ethernet address,
  age in seconds; `drops`, `count` (entries), `length` (waiting packets) (read); `insert` (`IP ETH`),
  `delete` (`IP`), `clear` (write)
- **difference**: packets wait at the worker that they came by, and `CAPACITY` holds for each worker
",
    ports: "0/0",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::Shared,
    make,
};

struct ArpTable {
    neighbours: Arc<Neighbours>,
    now_ns: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let limits = Limits::read(&mut args);
    if !args.finish() {
        return None;
    }
    let neighbours = table(cx, cx.name)?;
    neighbours.set_limits(limits);
    Some(Box::new(ArpTable { neighbours, now_ns: 0 }))
}

/// The table of the element with that name: an `ARPTable`, or a querier with a table of its own.
pub(super) fn table(cx: &mut Configure<'_>, element: &str) -> Option<Arc<Neighbours>> {
    cx.shared(Scope::AllWorkers, element, Neighbours::default)
}

impl Element for ArpTable {
    fn tick(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.neighbours.tick(now_ns);
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::read("drops"),
                Handler::read("count"),
                Handler::read("length"),
                Handler::write("insert"),
                Handler::write("delete"),
                Handler::write("clear"),
            ]
        }
    }

    fn read(&self, handler: &str, _cells: &[u64]) -> Option<String> {
        match handler {
            "drops" => Some(self.neighbours.drops.load(Relaxed).to_string()),
            _ => self.neighbours.read(handler, self.now_ns),
        }
    }

    fn write(&mut self, handler: &str, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        self.neighbours.write(handler, value, self.now_ns).unwrap_or_else(|| no_such_handler(handler))
    }
}
