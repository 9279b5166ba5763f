//! `OriginSwitch`: chooses the output by the port that a packet came in by.

use crate::program::Program;
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
    let mut args = cx.args();
    let otherwise = args.keyword("OTHERWISE", parse::int_in(0..=outputs as i64 - 1));
    let given = args.rest();
    if !args.finish() {
        return None;
    }
    let mut origins: Vec<u16> = vec![];
    for text in &given {
        match parse::int_in(0..=i64::from(NO_PORT) - 1)(text, cx.names) {
            Ok(number) if origins.contains(&(number as u16)) => {
                cx.error(text.span, format!("port {number} is there twice"));
                return None;
            }
            Ok(number) => origins.push(number as u16),
            Err(mistake) => {
                cx.diags.push(mistake);
                return None;
            }
        }
    }
    if origins.len() > outputs {
        let message = format!("{} ports for {outputs} outputs", origins.len());
        cx.error(cx.config.span, message).help("one output for each port, and one more for OTHERWISE");
        return None;
    }
    let otherwise = otherwise.map_or(usize::MAX, |output| output as usize);
    Some(BoxElement::transparent(Program::new("OriginSwitch", &[], move |f| {
        let exit = |(output, origin): (usize, &u16)| (u64::from(*origin), f.aside(|f| f.emit(output)));
        let exits = origins.iter().enumerate().map(exit).collect();
        let other = f.bad_block(otherwise, "other-origin");
        f.switch(Inst::Origin, exits, other);
    })))
}
