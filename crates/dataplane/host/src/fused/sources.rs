//! What a stretch is linked of.

use super::Stretch;
use ir::Verified;
use std::sync::Arc;
use synth::link::{LinkError, Linked, Part, link};

/// The programs of a stretch and how they are wired.
#[derive(Clone)]
pub(super) struct Sources {
    pub parts: Vec<Source>,
    /// For each input of the stretch, the part and its input.
    pub entries: Vec<(usize, usize)>,
}

/// One of them.
#[derive(Clone)]
pub(super) struct Source {
    pub name: String,
    pub program: Arc<Verified>,
    /// For each output port, the part and its input where packets go on.
    pub next: Vec<Option<(usize, usize)>>,
}

impl Sources {
    /// Makes one of them.
    pub fn link(&self) -> Result<Linked, LinkError> {
        let parts = self.parts.iter().map(|source| Part {
            name: &source.name,
            program: &source.program,
            next: source.next.clone(),
        });
        link("stretch", &parts.collect::<Vec<_>>(), &self.entries)
    }
}

impl Stretch {
    /// Told that a node has another element now, with that program. Where the program is the one that it was, only its
    /// tables changed; else the stretch is linked anew when it runs as one again, see [`Stretch::follow`].
    pub(crate) fn replace(&mut self, node: usize, program: &Arc<Verified>) {
        let Some(part) = self.parts.iter().position(|part| *part == node) else { return };
        // Entries hold for tables that are gone.
        self.end_cache();
        if self.sources.parts[part].program != *program {
            Arc::make_mut(&mut self.sources).parts[part].program = Arc::clone(program);
            self.is_stale = true;
        }
    }
}
