//! `PullSwitch` and `StaticPullSwitch`: pull from one of several inputs.

use super::switch::choice;
use click::config::parse;
use element::value::written;
use element::{BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::Vector;

/// The class.
pub const PULL_SWITCH: Class = Class {
    name: "PullSwitch",
    summary: "forwards pull requests to settable input",
    page: "\
# PullSwitch([INPUT])

Pulls from input INPUT. A negative INPUT gives no packets.

- **ports**: any number of pull inputs, 1 pull output
- **arguments**: `INPUT` (integer, default 0)
- **handlers**: `switch` (read/write): INPUT; a number without input becomes -1
",
    codes: PortCodes::new("-/1", "l/l"),
    state: StateScope::PerWorker,
    make: make_switch,
};

/// The class.
pub const SIMPLE_PULL_SWITCH: Class = Class {
    name: "SimplePullSwitch",
    page: "\
# SimplePullSwitch([INPUT])

The same as PullSwitch.

- **ports**: any number of pull inputs, 1 pull output
- **arguments**: `INPUT` (integer, default 0)
- **handlers**: `switch` (read/write): INPUT; a number without input becomes -1
",
    ..PULL_SWITCH
};

/// The class.
pub const STATIC_PULL_SWITCH: Class = Class {
    name: "StaticPullSwitch",
    summary: "forwards pull requests to specific input",
    page: "\
# StaticPullSwitch(INPUT)

Pulls from input INPUT, which cannot be changed. An INPUT that is not there gives no packets.

- **ports**: any number of pull inputs, 1 pull output
- **arguments**: `INPUT` (integer)
",
    make: make_static,
    ..PULL_SWITCH
};

struct PullSwitch {
    input: i32,
    inputs: usize,
    settable: bool,
}

fn make_switch(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| Some(PullSwitch { input: choice(args, "INPUT", inputs), inputs, settable: true }))
}

fn make_static(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| {
        Some(PullSwitch { input: args.mandatory_positional("INPUT", parse::i32)?, inputs, settable: false })
    })
}

impl Opaque for PullSwitch {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        match usize::try_from(self.input) {
            Ok(input) if input < self.inputs => work.pull(input, most, into),
            _ => 0,
        }
    }
}

impl Element for PullSwitch {
    element::facts!(writes: false);

    fn handlers(&mut self) -> Handlers<'_> {
        if self.settable { Handlers::of(self, HANDLERS) } else { Handlers::default() }
    }
}

const HANDLERS: &[Row<PullSwitch>] = &[Row::read_write(
    "switch",
    |switch, _| Some(switch.input.to_string()),
    |switch, value, _| {
        let input = written(value, parse::i32)?;
        switch.input = if i64::from(input) >= switch.inputs as i64 { -1 } else { input };
        Ok(())
    },
)];
