//! Elements that print and fake ARP messages.

use element::Class;

mod arp_faker;
mod arp_print;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&arp_faker::CLASS, &arp_print::CLASS];

#[cfg(test)]
mod tests;
