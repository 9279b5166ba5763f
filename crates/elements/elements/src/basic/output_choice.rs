//! `RoundRobinSwitch`, `HashSwitch` and `RandomSwitch`: distribute packets over the outputs.

use crate::program::Program;
use click::config::{Args, parse};
use element::random;
use element::{BoxElement, Class, Element, Opaque, PortCodes, StateScope, Work};
use ir::expr::{cell, load, select};
use ir::{Builder, Expr, Value};
use packet::field::{Base, Field};
use shm::burst::Batch;
use shm::chain::SEGMENT_BYTES;

/// The class.
pub const ROUND_ROBIN: Class = Class {
    name: "RoundRobinSwitch",
    summary: "sends packets to round-robin outputs",
    page: "\
# RoundRobinSwitch([keywords MAX, SPLITBATCH])

Sends each packet to the output after that of the last packet.

- **ports**: 1 input, 1 or more outputs, push
- **arguments**: `MAX` (default: all): outputs that are used, the first ones; `SPLITBATCH` (default true): false sends
  all packets of a burst that come together to one output
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::PerWorker,
    make: |cx| {
        let round_robin = |f: &mut Builder, outputs: u64| -> Expr {
            let next = f.cell("next", 0);
            let output = f.eval(cell(next));
            let after = f.eval(output + 1);
            f.set_cell(next, select(after.less_than(outputs), after, 0));
            output.into()
        };
        let outputs = cx.shape.outputs;
        let (most, splits) = cx.read(|args| {
            let most = args.keyword("MAX", parse::int_in(1..=outputs.max(1) as i64));
            Some((most.map_or(outputs, |most| most as usize), args.keyword("SPLITBATCH", parse::bool)))
        })?;
        Some(match splits {
            Some(false) => BoxElement::opaque(WholeBatches { outputs: most, next: 0 }),
            _ => BoxElement::transparent(choose_output(move |f, _| round_robin(f, most as u64))),
        })
    },
};

/// `RoundRobinSwitch` that does not split batches.
struct WholeBatches {
    outputs: usize,
    next: usize,
}

impl Opaque for WholeBatches {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.list().iter().for_each(|index| batch.emit(*index, self.next));
        self.next = (self.next + 1) % self.outputs.max(1);
    }
}

impl Element for WholeBatches {
    element::facts!(writes: false);
}

/// The class.
pub const HASH: Class = Class {
    name: "HashSwitch",
    summary: "classifies packets by hash of contents",
    page: "\
# HashSwitch(OFFSET, LENGTH)

Chooses the output by a hash over LENGTH bytes of the packet, beginning at byte OFFSET: their sum modulo
the number of outputs (for 2, 4 or 8 outputs the sum's two halves are mixed first). Packets that are too short
leave by output 0.

- **ports**: 1 input, 1 or more outputs, push
- **arguments**: `OFFSET`; `LENGTH`, at least 1
- **difference**: the bytes must lie in the first 2 kB of the packet, in its first segment
",
    state: StateScope::None,
    make: |cx| cx.transparent(make_hash),
    ..ROUND_ROBIN
};

/// The class.
pub const RANDOM: Class = Class {
    name: "RandomSwitch",
    summary: "sends packets to random outputs",
    page: "\
# RandomSwitch()

Sends each packet to an output chosen at random, each with the same probability.

- **ports**: 1 input, 1 or more outputs, push
- **difference**: the sequence depends on the element's name and worker only, so that a run can be
  repeated
",
    make: |cx| {
        let seed = random::seed(cx);
        cx.transparent(|_| {
            Some(choose_output(move |f, outputs| {
                let state = f.cell("state", seed);
                random::next(f, state) % outputs
            }))
        })
    },
    ..ROUND_ROBIN
};

/// A program that sends each packet to the output that `choose` computes from the number of outputs.
fn choose_output(choose: impl Fn(&mut Builder, u64) -> Expr + Send + 'static) -> Program {
    Program::new("Spread", &[], move |f| {
        let outputs = f.outputs() as u64;
        let none = f.drop_block("no-output");
        let output = choose(f, outputs);
        f.emit_to(output, none);
    })
}

fn make_hash(args: &mut Args<'_>) -> Option<Program> {
    let most = SEGMENT_BYTES as i64;
    let offset = args.mandatory_positional("OFFSET", parse::int_in(0..=most - 1));
    let length = args.mandatory_positional("LENGTH", parse::int_in(1..=most));
    let (offset, length) = (offset? as u16, length? as u16);
    if i64::from(offset + length) > most {
        let span = args.span();
        args.error(span, format!("OFFSET and LENGTH reach beyond the first {most} bytes"));
    }
    Some(choose_output(move |f, outputs| {
        let short = f.aside(|f| f.emit(0));
        f.need(Base::Data, usize::from(offset + length), short);
        let sum = byte_sum(f, offset, length);
        if matches!(outputs, 2 | 4 | 8) { (sum ^ (sum >> 4)) & (outputs - 1) } else { sum % outputs }
    }))
}

/// Sums bytes of the packet, eight at a time, in four lanes of 16 bits.
fn byte_sum(f: &mut Builder, offset: u16, length: u16) -> Value {
    const LANES: u64 = 0x00ff_00ff_00ff_00ff;
    // A lane adds two bytes of each word: 128 words do not overflow it.
    const WORDS_PER_FOLD: usize = 128;
    let mut total = f.eval(0);
    let words: Vec<u16> = (0..length).step_by(8).collect();
    for run in words.chunks(WORDS_PER_FOLD) {
        let mut lanes = f.eval(0);
        for &at in run {
            let word = f.eval(load(Field::bytes(Base::Data, offset + at, (length - at).min(8) as u8)));
            lanes = f.eval(lanes + (word & LANES) + ((word >> 8) & LANES));
        }
        for lane in [0, 16, 32, 48] {
            total = f.eval(total + ((lanes >> lane) & 0xffff));
        }
    }
    total
}
