//! `Idle` and `SimpleIdle`: never send a packet.

use element::{Class, Element, Opaque, PortCodes, StateScope, Work};
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "Idle",
    summary: "discards packets",
    page: "\
# Idle()

Drops every packet that comes in and never emits one: for ports that must be wired.

- **ports**: any number of inputs and outputs, agnostic
- **drop reasons**: `idle`
",
    codes: PortCodes { ports: "-/-", processing: "a/a", flow: "x/y" },
    state: StateScope::None,
    make: |cx| cx.opaque(|_| Some(Idle { tells: true })),
};

/// The class.
pub const SIMPLE: Class = Class {
    name: "SimpleIdle",
    page: "\
# SimpleIdle()

The same as Idle, but what pulls from it is `scheduled` all the same.

- **ports**: any number of inputs and outputs, agnostic
- **drop reasons**: `idle`
",
    make: |cx| cx.opaque(|_| Some(Idle { tells: false })),
    ..CLASS
};

struct Idle {
    /// Whether it tells what pulls from it that there is nothing to pull.
    tells: bool,
}

impl Opaque for Idle {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            batch.drop(index, 0);
        }
    }
}

impl Element for Idle {
    element::facts!(writes: false, reasons: &["idle"]);

    fn may_give(&self, _of_input: &dyn Fn(usize) -> bool) -> Option<bool> {
        Some(!self.tells)
    }
}
