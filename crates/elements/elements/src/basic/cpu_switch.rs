//! `CPUSwitch` and `ExactCPUSwitch`: outputs by worker.

use crate::program::Program;
use element::{BoxElement, Class, Configure, PortCodes, StateScope};

/// The class.
pub const CPU: Class = Class {
    name: "CPUSwitch",
    summary: "sends packets to output chosen by the worker",
    page: "\
# CPUSwitch()

Sends all packets of a worker to the same output: the worker's number modulo the number of outputs.

- **ports**: 1 input, 1 or more outputs, push
- **difference**: the number is that of the worker, from 0 on, not of the processor core that it runs on
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::None,
    make: |cx| make(cx, "CPUSwitch"),
};

/// The class.
pub const EXACT: Class = Class {
    name: "ExactCPUSwitch",
    page: "\
# ExactCPUSwitch()

The same as CPUSwitch: packets may pass it on every worker, so that the threads that pass it, which FastClick's
element numbers from 0 on, are the workers.

- **ports**: 1 input, 1 or more outputs, push
- **difference**: the number is that of the worker, from 0 on, not of the processor core that it runs on
",
    make: |cx| make(cx, "ExactCPUSwitch"),
    ..CPU
};

fn make(cx: &mut Configure<'_>, class: &'static str) -> Option<BoxElement> {
    let output = cx.worker % cx.shape.outputs.max(1);
    cx.transparent(|_| Some(Program::new(class, &[], move |f| f.emit(output))))
}
