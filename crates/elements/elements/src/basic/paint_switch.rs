//! `PaintSwitch`, `PaintRR`, `CheckPaint` and `PaintTee`: decide by the paint annotation.

use super::tee::Copier;
use crate::program::Program;
use click::config::{Args, parse};
use element::value::annotation;
use element::{
    BoxElement, Class, Configure, Element, Handlers, PortCodes, Row, StateScope, Transparent, Work,
};
use ir::Builder;
use ir::expr::{anno, cell};
use packet::anno::{self, Anno};
use shm::burst::Batch;

/// The class.
pub const PAINT_SWITCH: Class = Class {
    name: "PaintSwitch",
    summary: "sends packets to output chosen by paint annotation",
    page: "\
# PaintSwitch([ANNO])

Sends each packet out of the output whose number is its paint annotation. Paint 255 sends a copy out of
every output.

- **ports**: 1 input, any number of outputs, push
- **arguments**: `ANNO`: which one-byte annotation, by name or offset, default `PAINT`
- **handlers**: `copy_failures` (read): copies that could not be made, because no packet was free
- **drop reasons**: `no-output`: there is no output of that number
",
    codes: PortCodes::SORTER,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make_switch),
};

/// The class.
pub const PAINT_RR: Class = Class {
    name: "PaintRR",
    summary: "sends packets to output chosen by paint annotation, modulo the number of outputs",
    page: "\
# PaintRR([ANNO])

Sends each packet out of the output whose number is its paint annotation modulo the number of outputs.

- **ports**: 1 input, 1 or more outputs, push
- **arguments**: `ANNO`: which one-byte annotation, by name or offset, default `PAINT`
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::None,
    make: |cx| cx.transparent(make_round_robin),
};

/// The class.
pub const CHECK_PAINT: Class = Class {
    name: "CheckPaint",
    summary: "checks paint annotation",
    page: "\
# CheckPaint(COLOR [, ANNO])

Passes packets whose paint annotation is COLOR. Others leave by output 1.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets of another colour are pushed out of output 1
- **arguments**: `COLOR` (0 to 255); `ANNO`: which one-byte annotation, by name or offset, default `PAINT`
- **handlers**: `color` (read/write)
- **drop reasons**: `other-paint`
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| make_colored(cx, false),
};

/// The class.
pub const PAINT_TEE: Class = Class {
    name: "PaintTee",
    summary: "duplicates packets with given paint annotation",
    page: "\
# PaintTee(COLOR [, ANNO])

Passes packets unchanged, and pushes a copy of those whose paint annotation is COLOR out of output 1.

- **ports**: 1 input, 2 outputs, agnostic; copies are pushed out of output 1
- **arguments**: `COLOR` (0 to 255); `ANNO`: which one-byte annotation, by name or offset, default `PAINT`
- **handlers**: `color` (read/write); `copy_failures` (read): copies that could not be made, because no
  packet was free
",
    codes: PortCodes::new("1/2", "a/ah"),
    make: |cx| make_colored(cx, true),
    ..CHECK_PAINT
};

/// Packets of this paint leave by every output.
const ALL: u64 = 255;

struct PaintSwitch {
    anno: Anno,
    copier: Copier,
}

fn make_switch(args: &mut Args<'_>) -> Option<PaintSwitch> {
    let anno = args.positional("ANNO", annotation(1)).unwrap_or(anno::PAINT);
    Some(PaintSwitch { anno, copier: Copier::default() })
}

fn make_round_robin(args: &mut Args<'_>) -> Option<Program> {
    let paint = args.positional("ANNO", annotation(1)).unwrap_or(anno::PAINT);
    Some(Program::new("PaintRR", &[], move |f| {
        let none = f.drop_block("no-output");
        let outputs = f.outputs() as u64;
        f.emit_to(anno(paint) % outputs, none);
    }))
}

impl Transparent for PaintSwitch {
    fn build(&self, f: &mut Builder) {
        f.name("PaintSwitch");
        let all = f.slow_block("all");
        let none = f.drop_block("no-output");
        let paint = f.eval(anno(self.anno));
        f.leave_if(paint.equals(ALL), all);
        f.emit_to(paint, none);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let Some(last) = batch.outputs().checked_sub(1) else {
            return batch.list().iter().for_each(|index| batch.drop(*index, 0));
        };
        self.copier.send_to_all(batch, batch.list(), 0..last, last, work);
    }
}

impl Element for PaintSwitch {
    element::facts!(writes: false, reasons: &["no-output"]);

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(&mut self.copier, Copier::HANDLERS)
    }
}

/// `CheckPaint` and `PaintTee`.
struct Colored {
    color: u8,
    anno: Anno,
    tee: bool,
    copier: Copier,
}

fn make_colored(cx: &mut Configure<'_>, tee: bool) -> Option<BoxElement> {
    cx.transparent(|args| {
        let color = args.mandatory_positional("COLOR", parse::u8);
        let anno = args.positional("ANNO", annotation(1)).unwrap_or(anno::PAINT);
        let color = color?;
        Some(Colored { color, anno, tee, copier: Copier::default() })
    })
}

impl Transparent for Colored {
    fn build(&self, f: &mut Builder) {
        f.name(if self.tee { "PaintTee" } else { "CheckPaint" });
        // The colour is in a cell, since the handler changes it.
        let color = f.cell("color", u64::from(self.color));
        let painted = anno(self.anno).equals(cell(color));
        if self.tee {
            let copied = f.slow_block("painted");
            f.leave_if(painted, copied);
        } else {
            let other = f.bad_block(1, "other-paint");
            f.check(painted, other);
        }
        f.emit(0);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            self.copier.send_copy(batch, index, 1, work);
            batch.emit(index, 0);
        }
    }
}

impl Element for Colored {
    element::facts!(writes: false);

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, if self.tee { HANDLERS } else { &HANDLERS[..1] })
    }
}

/// The handlers of `PaintTee`; `CheckPaint` has the first.
const HANDLERS: &[Row<Colored>] = &[
    Row::cell::<0, 0xff>("color"),
    Row::sum("copy_failures", |colored, _| Some(colored.copier.failures().to_string())),
];
