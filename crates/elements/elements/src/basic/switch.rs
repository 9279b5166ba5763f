//! `Switch` and `StaticSwitch`: all packets to one of several outputs.

use crate::program::Program;
use click::config::{Args, parse};
use element::value::{set_cell, written};
use element::{BoxElement, Class, Configure, Element, Handlers, PortCodes, Row, StateScope, Transparent};
use ir::Builder;
use ir::expr::cell;

/// The class.
pub const SWITCH: Class = Class {
    name: "Switch",
    summary: "sends packet stream to settable output",
    page: "\
# Switch([OUTPUT])

Sends every packet out of output OUTPUT. A negative OUTPUT drops all packets.

- **ports**: 1 input, any number of outputs, push
- **arguments**: `OUTPUT` (integer, default 0)
- **handlers**: `switch` (read/write): OUTPUT; a number without output becomes -1
- **drop reasons**: `switched-off`
",
    codes: PortCodes::SORTER,
    state: StateScope::PerWorker,
    make: make_switch,
};

/// The class.
pub const STATIC_SWITCH: Class = Class {
    name: "StaticSwitch",
    summary: "sends packet stream to specific output",
    page: "\
# StaticSwitch(OUTPUT)

Sends every packet out of output OUTPUT, which cannot be changed. An OUTPUT that is not there drops all
packets.

- **ports**: 1 input, any number of outputs, push
- **arguments**: `OUTPUT` (integer)
- **drop reasons**: `switched-off`
",
    make: |cx| cx.transparent(make_static),
    ..SWITCH
};

const OFF: &str = "switched-off";

struct Switch {
    output: i32,
    outputs: usize,
}

fn make_switch(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.transparent(|args| {
        let output = args.positional("OUTPUT", parse::i32).unwrap_or(0);
        if i64::from(output) >= outputs as i64 {
            let span = args.span();
            args.error(span, format!("OUTPUT is {output}: it must be smaller than {outputs}"));
        }
        Some(Switch { output, outputs })
    })
}

impl Transparent for Switch {
    fn build(&self, f: &mut Builder) {
        f.name("Switch");
        let off = f.drop_block(OFF);
        // A negative number becomes a large one, which is no output.
        let output = f.cell("switch", i64::from(self.output) as u64);
        f.emit_to(cell(output), off);
    }
}

impl Element for Switch {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

const HANDLERS: &[Row<Switch>] = &[Row::read_write(
    "switch",
    |_, cells| Some((*cells.first()? as i64).to_string()),
    |switch, value, cells| {
        let output = i64::from(written(value, parse::i32)?);
        set_cell(cells, 0, if output >= switch.outputs as i64 { u64::MAX } else { output as u64 })
    },
)];

fn make_static(args: &mut Args<'_>) -> Option<Program> {
    let output = args.mandatory_positional("OUTPUT", parse::i32)?;
    let output = usize::try_from(output).unwrap_or(usize::MAX);
    Some(Program::new("StaticSwitch", &[], move |f| f.emit_or_drop(output, OFF)))
}
