//! What the NFs that ship have in common: the way they read their configuration, prefixes, tables of flows, and
//! rewriting of IPv4 packets with their checksums.
//!
//! Each NF is a program of its own in a folder beside this one.

pub mod configuration;
pub mod flows;
pub mod prefix;
pub mod rewrite;

pub use configuration::{Keys, read};
pub use flows::Flows;
pub use prefix::Prefix;

use std::time::{Duration, Instant};

/// A list of names, and a constant for the number of each, `_` where it needs none: an NF's reasons for drops, which
/// have numbers from 1, or its counters, from 0.
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

/// Notes a mistake when an NF that passes packets across has more interfaces than there is an across for.
pub fn check_across(keys: &Keys<'_>, interfaces: &[String]) {
    if interfaces.len() > 2 {
        let count = interfaces.len();
        keys.mistake(format_args!(
            "there is no interface across of {count}: name one or two in `interfaces`"
        ));
    }
}

/// Notes a mistake when an NF that stands between two networks has not one interface for each.
pub fn check_pair(keys: &Keys<'_>, interfaces: &[String], sentence: &str) {
    if interfaces.len() != 2 {
        keys.mistake(sentence);
    }
}

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The time of an NF, in nanoseconds since it started. Read once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Clock {
        Clock(Instant::now())
    }
}

impl Clock {
    /// That time of the NF.
    pub fn instant(self, ns: u64) -> Instant {
        self.0 + Duration::from_nanos(ns.saturating_sub(1))
    }

    /// Now. Never 0.
    pub fn now_ns(self) -> u64 {
        self.0.elapsed().as_nanos() as u64 + 1
    }
}
