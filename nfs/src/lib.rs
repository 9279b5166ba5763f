//! The common parts of the NFs that ship: configuration, prefixes, tables of flows, and rewriting of IPv4
//! packets with their checksums.
//!
//! Each NF is a program of its own in a directory beside this one.

pub mod configuration;
pub mod flows;
pub mod prefix;
pub mod rewrite;

pub use configuration::{Keys, read};
pub use flows::Flows;
pub use prefix::Prefix;

use nf::{Batch, Link, Packet};
use packet::Access;
use packet::view::{Tcp, protocol};
use std::time::{Duration, Instant};

/// A list of names, and a constant for the number of each (`_` for none): an NF's drop reasons, numbered from
/// 1, or its counters, from 0.
#[macro_export]
macro_rules! numbered {
    ($list:ident from $first:literal: $($number:tt $name:literal),+ $(,)?) => {
        const $list: [&str; [$($name),+].len()] = [$($name),+];
        $crate::numbered!(@ $first; $($number),+);
    };
    (@ $at:expr; $number:tt $(, $rest:tt)*) => {
        const $number: usize = $at;
        $crate::numbered!(@ $at + 1; $($rest),*);
    };
    (@ $at:expr;) => {};
}

/// Records an error when an NF that passes packets to the opposite interface has more than two interfaces.
pub fn check_across(keys: &Keys<'_>, interfaces: &[String]) {
    if interfaces.len() > 2 {
        let count = interfaces.len();
        keys.mistake(format_args!(
            "there is no interface across of {count}: name one or two in `interfaces`"
        ));
    }
}

/// Records an error when an NF between two networks does not have exactly two interfaces.
pub fn check_pair(keys: &Keys<'_>, interfaces: &[String], sentence: &str) {
    if interfaces.len() != 2 {
        keys.mistake(sentence);
    }
}

/// Passes each packet on and counts it by the counter that `judge` returns, or drops it for the reason.
pub fn pass_each(
    batch: &mut Batch<'_>,
    mut judge: impl FnMut(&mut Packet, &mut Link) -> Result<usize, usize>,
) {
    while let Some(mut packet) = batch.next() {
        match judge(&mut packet, batch.link()) {
            Ok(counter) => {
                batch.link().count(counter, 1);
                batch.link().pass(packet);
            }
            Err(reason) => batch.drop_for(packet, reason),
        }
    }
}

/// The flags of a packet that is TCP with its header at `trans`, 0 for other packets; `None` when the header
/// is malformed.
pub fn tcp_flags(packet: &impl Access, number: u8, trans: usize, end: usize) -> Option<u8> {
    match number {
        protocol::TCP => Tcp::at(trans).check(packet, end).ok().map(|facts| facts.flags),
        _ => Some(0),
    }
}

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The clock of an NF, in nanoseconds since its start. Read once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Clock {
        Clock(Instant::now())
    }
}

impl Clock {
    /// The `Instant` of a time of this clock.
    pub fn instant(self, ns: u64) -> Instant {
        self.0 + Duration::from_nanos(ns.saturating_sub(1))
    }

    /// The time now. Never 0.
    pub fn now_ns(self) -> u64 {
        self.0.elapsed().as_nanos() as u64 + 1
    }
}
