//! Elements without ports that advise Click's scheduler and packet alignment: they are taken, so that
//! configurations load unchanged, and have no effect.

use crate::class::{Class, StateScope};
use crate::configure::Configure;
use crate::element::Element;

/// The class.
pub const ALIGNMENT_INFO: Class = Class {
    name: "AlignmentInfo",
    summary: "specifies alignments of packets",
    page: "\
# AlignmentInfo(...)

Has no effect.

- **ports**: none
- **difference**: taken and ignored, because nothing here needs aligned packets
",
    ports: "0/0",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::None,
    make,
};

/// The class.
pub const SCHEDULE_INFO: Class = Class {
    name: "ScheduleInfo",
    summary: "specifies tickets for schedulable elements",
    page: "\
# ScheduleInfo(...)

Has no effect.

- **ports**: none
- **difference**: taken and ignored, because a worker runs each of its tasks once in every turn
",
    ..ALIGNMENT_INFO
};

struct Information;

impl Element for Information {}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let _ = args.rest();
    args.finish().then(|| Box::new(Information) as Box<dyn Element>)
}
