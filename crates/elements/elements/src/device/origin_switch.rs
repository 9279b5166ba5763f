//! `OriginSwitch`: chooses the output by the port that a packet came in by.

use crate::program::{NO_OUTPUT, Program};
use click::config::parse;
use element::{BoxElement, Class, Configure, PortCodes, StateScope};
use ir::Inst;
use shm::descriptor::NO_PORT;

/// The class.
pub const CLASS: Class = Class {
    name: "OriginSwitch",
    summary: "sends packets to output chosen by the port that they came in by",
    page: "\
# OriginSwitch(PORT_0, PORT_1, ... [, keyword OTHERWISE])

Sends each packet that came in by port PORT_i out of output i, whatever NFs did to it in between. Packets that came
in by another port, and those that an element made, leave by output OTHERWISE. A bridge of a chain file sends by it
to the opposite side.

- **ports**: 1 input, any number of outputs, push
- **arguments**: `PORT_i`: numbers of ports, counted from 0 in the order of the chain file; `OTHERWISE`: an output,
  none by default
- **drop reasons**: `other-origin`: it came in by none of these ports, and there is no OTHERWISE
",
    codes: PortCodes::SORTER,
    state: StateScope::None,
    make,
};

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.transparent(|args| {
        let otherwise = args.keyword("OTHERWISE", parse::int_in(0..=outputs as i64 - 1));
        let mut origins: Vec<u64> = vec![];
        for text in args.rest() {
            let origin = args.read(&text, parse::int_in(0..=i64::from(NO_PORT) - 1))? as u64;
            if origins.contains(&origin) {
                args.error(text.span, format!("port {origin} is there twice"));
            }
            origins.push(origin);
        }
        if origins.len() > outputs {
            let (span, message) = (args.span(), format!("{} ports for {outputs} outputs", origins.len()));
            args.error(span, message).help("one output for each port, and one more for OTHERWISE");
        }
        let otherwise = otherwise.map_or(NO_OUTPUT, |output| output as usize);
        Some(Program::new("OriginSwitch", &[], move |f| {
            let exit = |(output, origin): (usize, &u64)| (*origin, f.aside(|f| f.emit(output)));
            let exits = origins.iter().enumerate().map(exit).collect();
            let other = f.bad_block(otherwise, "other-origin");
            f.switch(Inst::Origin, exits, other);
        }))
    })
}
