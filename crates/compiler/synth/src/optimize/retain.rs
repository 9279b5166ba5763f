//! Lists without some of their items.

/// Keeps the items whose flag is set; `keep` has one for each.
pub(super) fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    all.retain(|_| keep.next().copied().unwrap_or(true));
}
