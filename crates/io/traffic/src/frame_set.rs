//! Frames in one buffer, for generator ports.

/// A list of frames in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameSet {
    bytes: Vec<u8>,
    /// The end of each frame.
    ends: Vec<usize>,
}

impl FrameSet {
    /// Number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Frame number `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// The frames in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All frames' bytes, one after the other without gaps.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The end of each frame in [`Self::bytes`].
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Appends a frame.
    pub fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    /// Appends a frame that `append` writes to the end of the bytes; unchanged on an error.
    pub(crate) fn push_with<T, E>(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<T, E>,
    ) -> Result<T, E> {
        let made = append(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(made)
    }
}
