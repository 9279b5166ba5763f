//! An element that answers pings, and Click's names of ICMP messages.

use element::Class;

pub(crate) mod icmp_name;
mod icmppingresponder;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&icmppingresponder::CLASS];

#[cfg(test)]
mod tests;
