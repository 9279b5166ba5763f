//! `DPDKInfo`: FastClick's setup of DPDK, which is ignored.

use element::Class;
use elements::basic::information::SCHEDULE_INFO;

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
    ..SCHEDULE_INFO
};
