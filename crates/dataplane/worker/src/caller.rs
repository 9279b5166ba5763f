//! Elements that call handlers at certain packets.

/// An element that will call a handler after so many packets.
pub(crate) struct Caller {
    /// The element.
    pub node: usize,
    /// The number, as it was when it was last asked.
    pub until: u64,
    /// The bursts since packets last reached it.
    pub unmoved: u32,
}
