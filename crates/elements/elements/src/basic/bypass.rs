//! `Bypass`: leads packets past some elements, or through them.

use click::config::{Args, parse};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::{Batch, Vector};

/// The class.
pub const CLASS: Class = Class {
    name: "Bypass",
    summary: "cheap input or output switch",
    page: "\
# Bypass([ACTIVE, keyword INLINE])

Passes packets from input 0 to output 0. While it is active, packets from input 0 leave by output 1 instead, and
packets that come back at input 1 leave by output 0: the elements between output 1 and input 1 are in the path
of packets only then. On a pull path, output 0 pulls from input 1 while it is active, and output 1 from input 0.

- **ports**: 1 or 2 inputs, 1 or 2 outputs, agnostic
- **arguments**: `ACTIVE` (default false); `INLINE` has no effect
- **handlers**: `active` (read/write)
- **difference**: packets always pass the element itself; Click connects its neighbours with each other unless
  INLINE is set, which changes nothing else. On a pull path, what pulls from output 1 is connected with what feeds
  input 0, so that those packets are not counted here
",
    codes: PortCodes::new("1-2/1-2", "a/a"),
    state: StateScope::PerWorker,
    make,
};

struct Bypass {
    active: bool,
    inputs: usize,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args: &mut Args<'_>| {
        let active = args.positional("ACTIVE", parse::bool).unwrap_or(false);
        let _ = args.keyword("INLINE", parse::bool);
        Some(Bypass { active, inputs })
    })
}

impl Opaque for Bypass {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        let port = usize::from(self.active && input == 0 && batch.outputs() > 1);
        batch.list().iter().for_each(|index| batch.emit(*index, port));
    }

    fn answers_pull(&self) -> bool {
        true
    }

    fn pulls_from(&self, output: usize) -> Option<usize> {
        (output > 0).then_some(0)
    }

    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let input = usize::from(self.active && output == 0 && self.inputs > 1);
        work.pull(input, most, into)
    }
}

impl Element for Bypass {
    element::facts!(writes: false, handlers: HANDLERS);
}

const HANDLERS: &[Row<Bypass>] = &[element::field!(active, parse::bool)];
