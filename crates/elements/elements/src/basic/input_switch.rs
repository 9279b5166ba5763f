//! `InputSwitch`: lets the packets of one input pass.

use super::switch::choice;
use click::config::parse;
use element::value::written;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::{Batch, Vector};

/// The class.
pub const CLASS: Class = Class {
    name: "InputSwitch",
    summary: "passes packets from settable input",
    page: "\
# InputSwitch([INPUT])

Passes packets from input INPUT, and drops packets from other inputs. On a pull path it pulls from input INPUT.
A negative INPUT passes no packets.

- **ports**: any number of inputs, 1 output, agnostic
- **arguments**: `INPUT` (integer, default 0)
- **handlers**: `switch` (read/write): INPUT; a number without input becomes -1
- **drop reasons**: `other-input`
",
    codes: PortCodes::new("-/1", "a/a"),
    state: StateScope::PerWorker,
    make,
};

struct InputSwitch {
    input: i32,
    inputs: usize,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| Some(InputSwitch { input: choice(args, "INPUT", inputs), inputs }))
}

impl Opaque for InputSwitch {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        let passes = usize::try_from(self.input) == Ok(input);
        for &index in batch.list() {
            if passes {
                batch.emit(index, 0);
            } else {
                batch.drop(index, 0);
            }
        }
    }

    fn answers_pull(&self) -> bool {
        true
    }

    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        match usize::try_from(self.input) {
            Ok(input) if input < self.inputs => work.pull(input, most, into),
            _ => 0,
        }
    }
}

impl Element for InputSwitch {
    element::facts!(writes: false, reasons: &["other-input"], handlers: HANDLERS);
}

const HANDLERS: &[Row<InputSwitch>] = &[Row::read_write(
    "switch",
    |switch, _| Some(switch.input.to_string()),
    |switch, value, _| {
        let input = written(value, parse::i32)?;
        switch.input = if i64::from(input) >= switch.inputs as i64 { -1 } else { input };
        Ok(())
    },
)];
