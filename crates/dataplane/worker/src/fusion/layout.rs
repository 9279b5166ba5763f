//! The parts of a fused region, and how they are wired.

use std::collections::BTreeSet;

/// Where a part's output leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leads {
    /// To another part of the region.
    Inside(usize),
    /// Out of the region, or nowhere.
    Outside,
    /// To an element of the region, but few packets of this input take it: they leave the region.
    Seldom,
    /// Back to a part that is before it: packets leave the region and enter it again.
    Loop,
}

/// A part of a fused region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionPart {
    /// The element.
    pub node: usize,
    /// Its input.
    pub input: usize,
    /// Where each of its outputs leads.
    pub leads: Vec<Leads>,
}

/// A fused region: its parts in the order of their elements and inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionLayout {
    /// The parts.
    pub parts: Vec<RegionPart>,
    /// The parts at which packets enter, in order.
    pub entries: Vec<usize>,
    /// The entries, by their places in that list, that only ports feed ([`ir::Program::from_ports`]).
    pub from_ports: BTreeSet<u16>,
}
