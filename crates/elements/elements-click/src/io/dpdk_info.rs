//! `DPDKInfo`: FastClick's setup of DPDK, which is ignored.

use element::{Class, Element, Opaque, PortCodes, StateScope};

/// The class.
pub const CLASS: Class = Class {
    name: "DPDKInfo",
    summary: "says how FastClick sets DPDK up; has no effect here",
    page: "\
# DPDKInfo(...)

FastClick's element that sizes DPDK's packet pools. It is accepted so that configurations run unchanged.

- **ports**: none
- **arguments**: any
- **difference**: has no effect: the chain file and the command line set the packet memory
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::None,
    make: |cx| {
        cx.opaque(|args| {
            let _ = args.rest();
            Some(DpdkInfo)
        })
    },
};

struct DpdkInfo;

impl Opaque for DpdkInfo {}

impl Element for DpdkInfo {}
