//! An element that answers pings.

use element::Class;

mod icmppingresponder;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&icmppingresponder::CLASS];

#[cfg(test)]
mod tests;
