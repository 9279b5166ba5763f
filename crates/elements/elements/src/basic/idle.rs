//! `Idle`: never sends a packet.

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
    make: |cx| cx.opaque(|_| Some(Idle)),
};

struct Idle;

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
        Some(false)
    }
}
