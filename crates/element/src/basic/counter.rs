//! `Counter`: counts packets and bytes.

use crate::class::{Class, StateScope};
use crate::configure::{Configure, Shape};
use crate::element::Element;
use crate::handler::Handler;
use ir::verify::VerifyError;
use ir::{Builder, Inst, Program};

/// The class.
pub const CLASS: Class = Class {
    name: "Counter",
    summary: "measures packet count and rate",
    page: "\
# Counter()

Passes packets unchanged and counts them.

- **ports**: 1 input, 1 output, agnostic
- **handlers**: `count`, `byte_count` (read); `reset_counts`, `reset` (write)
- **difference**: Click's `rate` handlers and `COUNT_CALL` are not there yet
",
    ports: "1/1",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::PerWorker,
    make,
};

const COUNT: u16 = 0;
const BYTES: u16 = 1;

struct Counter;

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    cx.args().finish().then(|| Box::new(Counter) as Box<dyn Element>)
}

impl Element for Counter {
    fn lower(&self, shape: Shape) -> Option<Result<Program, VerifyError>> {
        let mut f = Builder::new("Counter", shape.outputs);
        let (count, bytes) = (f.cell("count", 0), f.cell("byte_count", 0));
        let (one, len) = (f.constant(1), f.value(Inst::Len));
        f.act(Inst::CellAdd(count, one));
        f.act(Inst::CellAdd(bytes, len));
        f.emit(0);
        Some(f.finish())
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::sum("count"),
                Handler::sum("byte_count"),
                Handler::write("reset_counts"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, cells: &[u64]) -> Option<String> {
        let cell = match handler {
            "count" => COUNT,
            "byte_count" => BYTES,
            _ => return None,
        };
        cells.get(usize::from(cell)).map(u64::to_string)
    }

    fn write(&mut self, handler: &str, _value: &str, cells: &mut [u64]) -> Result<(), String> {
        match handler {
            "reset_counts" | "reset" => cells.fill(0),
            _ => return Err(format!("there is no write handler `{handler}`")),
        }
        Ok(())
    }
}
