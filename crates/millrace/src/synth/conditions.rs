//! Conditions of traffic classes, for the translation of classes into Click and OpenFlow.

use super::classes::ClassShown;
use ir::analysis::interval::IntervalSet;
use shm::descriptor::{BUF_BYTES, HEADROOM};
use synth::classes::show::Asked;

/// The intervals of the conditions on a field, without those of which one of several must hold.
pub fn intervals_of<'a>(conditions: &'a [Asked], field: &str) -> impl Iterator<Item = &'a [(u64, u64)]> {
    conditions.iter().filter_map(move |asked| match asked {
        Asked::Is { of, intervals, .. } if of == field => Some(intervals.as_slice()),
        _ => None,
    })
}

/// What a class is to somebody who looks at the IP header first.
pub enum Kind {
    /// Frames without IPv4.
    NotIp,
    /// Packets with an invalid IPv4 header.
    BadHeader,
    /// Packets with a valid IPv4 header.
    Ip,
}

/// Whether one of the conditions satisfies `holds`; of alternatives, every one must have such a condition.
fn has(conditions: &[Asked], holds: &dyn Fn(&Asked) -> bool) -> bool {
    conditions.iter().any(|asked| match asked {
        Asked::Any { any } => any.iter().all(|list| has(list, holds)),
        asked => holds(asked),
    })
}

/// The kind of a class; `None` if the conditions do not show it: something else is tested before the IP
/// header.
pub fn kind(class: &ClassShown) -> Option<Kind> {
    let text =
        |wanted: &'static str| move |asked: &Asked| matches!(asked, Asked::Is { text, .. } if text == wanted);
    let is = |of: &'static str, good: fn(&[(u64, u64)]) -> bool| move |asked: &Asked| matches!(asked, Asked::Is { of: own, intervals, .. } if own == of && good(intervals));
    let conditions = &class.conditions;
    let says = |holds: &dyn Fn(&Asked) -> bool| has(conditions, holds);
    let short_frame = is("first segment", |of| of.last().is_some_and(|last| last.1 < 14));
    let other_type = is("eth.type", |of| of.iter().all(|(first, last)| *last < 0x800 || *first > 0x800));
    if says(&|asked| short_frame(asked) || other_type(asked)) {
        return Some(Kind::NotIp);
    }
    if !says(&is("eth.type", |of| of == [(0x800, 0x800)])) {
        return None;
    }
    if says(&text("ip header sum right")) {
        return says(&text("other segments 0")).then_some(Kind::Ip);
    }
    let short = is("first segment", |of| of.last().is_some_and(|last| last.1 < 34));
    let other_first = is("net[0:8]", |of| of.iter().all(|(first, last)| *last < 69 || *first > 79));
    let version = is("ip.version", |of| of.iter().all(|(first, last)| *last < 4 || *first > 4));
    let length = is("ip.hl", |of| of.last().is_some_and(|last| last.1 < 5));
    let texts = ["ip header sum wrong", "4*ip.hl >= ip.len + 1", "packet length <= ip.len + 13"];
    let is_bad = |asked: &Asked| {
        let by_text = matches!(asked, Asked::Is { text, .. } if texts.contains(&text.as_str()));
        by_text || short(asked) || other_first(asked) || version(asked) || length(asked)
    };
    says(&is_bad).then_some(Kind::BadHeader)
}

/// The text of the first condition that is a table lookup.
pub fn table_asked(conditions: &[Asked]) -> Option<&str> {
    conditions.iter().find_map(|asked| match asked {
        Asked::Any { any } => any.iter().find_map(|list| table_asked(list)),
        Asked::Is { text, .. } => (text.contains(" found as ") || text.ends_with(" missing")).then_some(text),
    })
}

/// Facts about a packet from conditions that hold with the one to translate.
#[derive(Clone, Copy, Default)]
pub struct Known {
    /// Whether it is TCP or UDP, and whether it is not a later fragment: only packets with both have ports.
    pub ports: (bool, bool),
    /// Whether it is ICMP.
    pub icmp: bool,
}

/// Adds the facts that these conditions imply.
pub fn learn(known: &mut Known, conditions: &[Asked]) {
    for asked in conditions {
        let Asked::Is { of, intervals, .. } = asked else { continue };
        match of.as_str() {
            "ip.proto" => {
                known.ports.0 |= intervals.iter().all(|one| [(6, 6), (17, 17)].contains(one));
                known.icmp |= intervals == &[(1, 1)];
            }
            "ip.frag" => known.ports.1 |= intervals == &[(0, 0)],
            _ => {}
        }
    }
}

/// The conditions that a check of the IP header tests, as text.
const CHECKED: [&str; 7] = [
    "eth.type ip",
    "ip.version 4",
    "ip.hl > 4",
    "4*ip.hl <= ip.len",
    "packet length >= ip.len + 14",
    "ip header sum right",
    "other segments 0",
];

/// Whether the lengths are all those from `from` on, for frames of up to [`LONGEST`] bytes.
pub fn is_long_enough(intervals: &[(u64, u64)], from: u64) -> bool {
    matches!(intervals, [(first, last)] if *first <= from && *last >= LONGEST)
}

/// The longest frame in one segment, in bytes: a buffer without its headroom.
const LONGEST: u64 = (BUF_BYTES - HEADROOM) as u64;

/// Whether a check of the IP header tests this condition, too.
pub fn is_checked(of: &str, intervals: &[(u64, u64)], text: &str) -> bool {
    match (of, text) {
        _ if CHECKED.contains(&text) => true,
        ("first segment", _) => is_long_enough(intervals, 34),
        ("net[0:8]", text) => text == "net[0:8] 69-79",
        _ => false,
    }
}

/// The parts of a condition's text that a check of the IP header does not test. A condition on both ends of a
/// value has two parts.
pub fn unchecked(text: &str) -> Vec<&str> {
    text.split(", ").filter(|end| !CHECKED.contains(end)).collect()
}

/// The field of a condition, with intervals of its value. For the first bits of an IP address
/// (`ip.src[0:8]`), these are the address and the corresponding intervals of addresses.
pub fn whole_field<'a>(of: &'a str, intervals: &[(u64, u64)]) -> (&'a str, Vec<(u64, u64)>) {
    let bits = |bits: &str| bits.parse::<u32>().ok().filter(|bits| (1..32).contains(bits));
    let front = of.strip_suffix(']').and_then(|of| of.split_once("[0:"));
    match front.and_then(|(field, of)| Some((field, bits(of)?))) {
        Some((field @ ("ip.src" | "ip.dst"), bits)) => {
            let set = IntervalSet::from_intervals(intervals.iter().copied());
            (field, set.widen(32 - bits).intervals().to_vec())
        }
        _ => (of, intervals.to_vec()),
    }
}

/// The intervals of the numbers from 0 to `max` that are in none of the given intervals, which are in order.
pub fn complement(intervals: &[(u64, u64)], max: u64) -> Vec<(u64, u64)> {
    IntervalSet::from_intervals(intervals.iter().copied()).complement(max).intervals().to_vec()
}

/// The prefixes that cover exactly the interval of numbers with `bits` bits: first number and prefix length.
pub fn prefixes(first: u64, last: u64, bits: u8) -> impl Iterator<Item = (u64, u8)> {
    let mut at = first;
    std::iter::from_fn(move || {
        if at > last {
            return None;
        }
        let mut low = if at == 0 { u32::from(bits) } else { at.trailing_zeros().min(u32::from(bits)) };
        while at + (1u64 << low) - 1 > last {
            low -= 1;
        }
        let found = (at, bits - low as u8);
        at += 1u64 << low;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_intervals_leave_out() {
        assert_eq!(complement(&[(0, 4), (6, 9)], 255), [(5, 5), (10, 255)]);
        assert!(complement(&[(0, 255)], 255).is_empty());
    }

    #[test]
    fn intervals_become_prefixes() {
        let of = |first, last| prefixes(first, last, 32).collect::<Vec<_>>();
        assert_eq!(of(0x0a00_0000, 0x0aff_ffff), [(0x0a00_0000, 8)]);
        assert_eq!(of(0, 0xffff_ffff), [(0, 0)]);
        assert_eq!(of(0x0a00_0001, 0x0a00_0004), [(0x0a00_0001, 32), (0x0a00_0002, 31), (0x0a00_0004, 32)]);
    }

    #[test]
    fn intervals_are_prefixes_without_gaps() {
        for (first, last) in [(0, 65_535), (1, 65_534), (1024, 65_535), (80, 80), (5, 9)] {
            let mut next = first;
            for (at, len) in prefixes(first, last, 16) {
                assert_eq!(at, next);
                next = at + (1 << (16 - len));
            }
            assert_eq!(next, last + 1);
        }
    }

    #[test]
    fn first_bits_are_ranges_of_the_whole() {
        assert_eq!(whole_field("ip.src[0:8]", &[(10, 11)]), ("ip.src", vec![(0x0a00_0000, 0x0bff_ffff)]));
        for of in ["ip.ttl", "net[0:8]", "ip.src[0:32]"] {
            assert_eq!(whole_field(of, &[(1, 2)]), (of, vec![(1, 2)]));
        }
    }
}
