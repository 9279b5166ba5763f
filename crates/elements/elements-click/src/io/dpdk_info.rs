//! `DPDKInfo`: FastClick's way to say how DPDK is set up.

use element::class::{Class, StateScope};
use element::configure::Configure;
use element::element::Element;

/// The class.
pub const CLASS: Class = Class {
    name: "DPDKInfo",
    summary: "says how FastClick sets DPDK up; has no effect here",
    page: "\
# DPDKInfo(...)

FastClick's element that sizes DPDK's packet pools. It is taken, so that configurations run unchanged.

- **ports**: none
- **arguments**: any
- **difference**: has no effect: the chain file and the command line say how much memory packets get
",
    ports: "0/0",
    processing: "a/a",
    flow: "x/x",
    state: StateScope::None,
    make,
};

struct DpdkInfo;

impl Element for DpdkInfo {}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let _ = args.rest();
    args.finish().then(|| Box::new(DpdkInfo) as Box<dyn Element>)
}
