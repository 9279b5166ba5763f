//! The programs from which a fused region is linked.

use ir::Verified;
use std::sync::Arc;
use synth::link::{LinkError, Linked, Part, link};

/// The programs of a fused region and how they are wired.
#[derive(Clone)]
pub(crate) struct RegionSources {
    pub parts: Vec<RegionSource>,
    /// For each input of the fused region, the part and its input.
    pub entries: Vec<(usize, usize)>,
}

/// A part of a fused region.
#[derive(Clone)]
pub(crate) struct RegionSource {
    pub name: String,
    pub program: Arc<Verified>,
    /// The part before it that is another input of the same element.
    pub shares: Option<usize>,
    /// For each output port, the part and input that it is wired to.
    pub next: Vec<Option<(usize, usize)>>,
}

impl RegionSources {
    /// Links the programs into one.
    pub fn link(&self) -> Result<Linked, LinkError> {
        let parts = self.parts.iter().map(|source| Part {
            name: &source.name,
            program: &source.program,
            shares: source.shares,
            next: source.next.clone(),
        });
        link("region", &parts.collect::<Vec<_>>(), &self.entries)
    }
}
