//! `Switch` and `StaticSwitch`: all packets to one of several outputs.

use crate::program::{NO_OUTPUT, Program};
use click::config::{Args, parse};
use element::value::{set_cell, written};
use element::{BoxElement, Class, Configure, PortCodes, Row, StateScope};
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

fn make_switch(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.transparent(|args| {
        let output = choice(args, "OUTPUT", outputs);
        Some(Program::with_state("Switch", HANDLERS, outputs, move |_, f| {
            let off = f.drop_block(OFF);
            // A negative number becomes a large one, which is no output.
            let output = f.cell("switch", i64::from(output) as u64);
            f.emit_to(cell(output), off);
        }))
    })
}

/// Reads the number of one of so many ports, the first by default; negative for none.
pub(super) fn choice(args: &mut Args<'_>, keyword: &'static str, ports: usize) -> i32 {
    let port = args.positional(keyword, parse::i32).unwrap_or(0);
    if i64::from(port) >= ports as i64 {
        let span = args.span();
        args.error(span, format!("{keyword} is {port}: it must be smaller than {ports}"));
    }
    port
}

/// The state is the number of outputs.
const HANDLERS: &[Row<usize>] = &[Row::read_write(
    "switch",
    |_, cells| Some((*cells.first()? as i64).to_string()),
    |outputs, value, cells| {
        let output = i64::from(written(value, parse::i32)?);
        set_cell(cells, 0, if output >= *outputs as i64 { u64::MAX } else { output as u64 })
    },
)];

fn make_static(args: &mut Args<'_>) -> Option<Program> {
    let output = args.mandatory_positional("OUTPUT", parse::i32)?;
    let output = usize::try_from(output).unwrap_or(NO_OUTPUT);
    Some(Program::new("StaticSwitch", &[], move |f| f.emit_or_drop(output, OFF)))
}
