//! `ARPTable`: a table of neighbours that several queriers share.

use super::neighbours::{Limits, Neighbours};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, Scope, StateScope};
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
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::Shared,
    make,
};

struct ArpTable {
    neighbours: Arc<Neighbours>,
    now_ns: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let limits = cx.read(|args| Some(Limits::read(args)))?;
    let neighbours = table(cx, cx.name)?;
    neighbours.set_limits(limits);
    Some(BoxElement::opaque(ArpTable { neighbours, now_ns: 0 }))
}

/// The table of the element with that name: an `ARPTable`, or a querier with a table of its own.
pub(super) fn table(cx: &mut Configure<'_>, element: &str) -> Option<Arc<Neighbours>> {
    cx.shared(Scope::AllWorkers, element, Neighbours::default)
}

impl Opaque for ArpTable {}

impl Element for ArpTable {
    element::facts!(handlers: HANDLERS);

    fn tick(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.neighbours.tick(now_ns);
    }
}

const HANDLERS: &[Row<ArpTable>] = &[
    Row::read("table", |table, _| Some(table.neighbours.text(table.now_ns))),
    Row::read("drops", |table, _| Some(table.neighbours.drops.load(Relaxed).to_string())),
    Row::read("count", |table, _| Some(table.neighbours.count().to_string())),
    Row::read("length", |table, _| Some(table.neighbours.waiting.load(Relaxed).to_string())),
    Row::write("insert", |table, value, _| table.neighbours.insert_written(value, table.now_ns)),
    Row::write("delete", |table, value, _| table.neighbours.delete_written(value, table.now_ns)),
    Row::button("clear", |table, _| table.neighbours.clear()),
];
