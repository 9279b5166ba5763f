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

Pulls from input INPUT. A negative INPUT gives no packets: what pulls from it is not `scheduled` meanwhile, nor
while the input has none.

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

The same as PullSwitch, but what pulls from it is `scheduled` as long as any input may have packets.

- **ports**: any number of pull inputs, 1 pull output
- **arguments**: `INPUT` (integer, default 0)
- **handlers**: `switch` (read/write): INPUT; a number without input becomes -1
",
    make: make_simple,
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
    /// Whether it tells what pulls from it that there is nothing to pull.
    tells: bool,
    /// Whether the last pull gave nothing, or the input has changed since.
    was_empty: bool,
}

impl PullSwitch {
    fn new(input: i32, inputs: usize) -> PullSwitch {
        PullSwitch { input, inputs, settable: true, tells: false, was_empty: false }
    }

    fn chosen(&self) -> Option<usize> {
        usize::try_from(self.input).ok().filter(|input| *input < self.inputs)
    }
}

fn make_switch(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| {
        Some(PullSwitch { tells: true, ..PullSwitch::new(choice(args, "INPUT", inputs), inputs) })
    })
}

fn make_simple(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| Some(PullSwitch::new(choice(args, "INPUT", inputs), inputs)))
}

fn make_static(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let inputs = cx.shape.inputs;
    cx.opaque(|args| {
        let input = args.mandatory_positional("INPUT", parse::i32)?;
        Some(PullSwitch { settable: false, ..PullSwitch::new(input, inputs) })
    })
}

impl Opaque for PullSwitch {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let pulled = self.chosen().map_or(0, |input| work.pull(input, most, into));
        self.was_empty = pulled == 0;
        pulled
    }
}

impl Element for PullSwitch {
    element::facts!(writes: false);

    fn may_give(&self, of_input: &dyn Fn(usize) -> bool) -> Option<bool> {
        // As in Click, only an attempt finds out that there is nothing from the beginning.
        let may = || self.chosen().is_some_and(|input| !self.was_empty || of_input(input));
        self.tells.then(may)
    }

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
        switch.was_empty = true;
        Ok(())
    },
)];
