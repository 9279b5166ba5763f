//! A ring on the heap, for both sides: used by tests and by the model.

use super::sync::{Arc, Cells, Word, Word64};

/// The words of a ring.
#[derive(Debug)]
pub(super) struct Heap {
    /// Tail, head, taken, asleep.
    pub words: [Word; 4],
    entries: Vec<[Word64; 2]>,
}

impl Heap {
    /// A ring for this number of descriptors.
    pub fn new(capacity: usize) -> Arc<Heap> {
        let entries = (0..capacity).map(|_| [Word64::new(0), Word64::new(0)]).collect();
        Arc::new(Heap { words: [(); 4].map(|()| Word::new(0)), entries })
    }
}

impl Cells for Arc<Heap> {
    fn capacity(&self) -> u32 {
        self.entries.len() as u32
    }

    fn tail(&self) -> &Word {
        &self.words[0]
    }

    fn head(&self) -> &Word {
        &self.words[1]
    }

    fn taken(&self) -> &Word {
        &self.words[2]
    }

    fn asleep(&self) -> &Word {
        &self.words[3]
    }

    fn entry(&self, index: u32) -> [&Word64; 2] {
        let [first, second] = &self.entries[index as usize % self.entries.len()];
        [first, second]
    }
}
