//! IP and TCP options in the notation of IP summary dumps, such as `rr{10.0.0.1}+2` and `mss1460;sackok`.
//!
//! Options are separated by semicolons; `.` stands for none. An option without a name here is its number, `=`, and
//! its bytes with colons between them.

use std::fmt::Write;
use std::net::Ipv4Addr;

const END: u8 = 0;
const NOTHING: u8 = 1;

/// IP options (RFC 791).
const RECORD_ROUTE: u8 = 7;
const TIMESTAMPS: u8 = 68;
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;

/// TCP options (RFC 9293, 7323, 2018).
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_OK: u8 = 4;
const SACK: u8 = 5;
const TCP_TIMESTAMPS: u8 = 8;

/// The most bytes of options in a header.
pub const MOST_BYTES: usize = 40;

/// The TCP options of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// `tcp_opt`: all.
    All,
    /// `tcp_ntopt`: all but timestamps.
    NoTimestamps,
    /// `tcp_sack`: those of selective acknowledgement.
    Sack,
}

impl Which {
    fn holds(self, kind: u8) -> bool {
        match self {
            Which::All => true,
            Which::NoTimestamps => kind != TCP_TIMESTAMPS,
            Which::Sack => matches!(kind, SACK_OK | SACK),
        }
    }
}

/// Appends the options of an IP header; `?` if one of them is malformed. Padding is left out.
pub fn write_ip(options: &[u8], out: &mut String) {
    write(options, out, |option, out| match option[0] {
        RECORD_ROUTE => route("rr", option, out),
        LOOSE_ROUTE => route("lsrr", option, out),
        STRICT_ROUTE => route("ssrr", option, out),
        TIMESTAMPS => timestamps(option, out),
        _ => unknown(option, out),
    });
}

/// Appends options of a TCP header in the same way.
pub fn write_tcp(options: &[u8], which: Which, out: &mut String) {
    write(options, out, |option, out| {
        let data = &option[2..];
        // Writing to a string cannot fail.
        let _ = match (option[0], data) {
            (kind, _) if !which.holds(kind) => return Some(false),
            (MSS, [high, low]) => write!(out, "mss{}", u16::from_be_bytes([*high, *low])),
            (WINDOW_SCALE, [scale]) => write!(out, "wscale{scale}"),
            (SACK_OK, []) => write!(out, "sackok"),
            (SACK, blocks) if blocks.len() % 8 == 0 => {
                let blocks: Vec<String> = blocks
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|block| format!("sack{}-{}", word(block, 0), word(block, 4)))
                    .collect();
                write!(out, "{}", blocks.join(";"))
            }
            (TCP_TIMESTAMPS, times) if times.len() == 8 => {
                write!(out, "ts{}:{}", word(times, 0), word(times, 4))
            }
            (MSS | WINDOW_SCALE | SACK_OK | SACK | TCP_TIMESTAMPS, _) => return None,
            _ => return unknown(option, out),
        };
        Some(true)
    });
}

/// Appends each option that `one` writes, with semicolons between them. `one` returns whether it wrote one, and
/// `None` for a malformed option.
fn write(options: &[u8], out: &mut String, mut one: impl FnMut(&[u8], &mut String) -> Option<bool>) {
    let (start, mut rest, mut separator) = (out.len(), options, false);
    while let [kind, behind @ ..] = rest {
        match *kind {
            END => break,
            NOTHING => {
                rest = behind;
                continue;
            }
            _ => {}
        }
        let length = behind.first().map_or(0, |length| usize::from(*length));
        let option = rest.get(..length).filter(|option| option.len() >= 2);
        let before = out.len();
        if separator {
            out.push(';');
        }
        match option.and_then(|option| one(option, out)) {
            Some(true) => separator = true,
            Some(false) => out.truncate(before),
            None => {
                out.truncate(start);
                return out.push('?');
            }
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    if out.len() == start {
        out.push('.');
    }
}

/// Four bytes of an option as a number; 0 if they are not there.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn unknown(option: &[u8], out: &mut String) -> Option<bool> {
    let _ = write!(out, "{}", option[0]);
    for (at, byte) in option[2..].iter().enumerate() {
        let _ = write!(out, "{}{byte}", if at == 0 { '=' } else { ':' });
    }
    Some(true)
}

/// `rr{A,B}+FREE`, or `ssrr{A^B}` with the next address behind the mark.
fn route(name: &str, option: &[u8], out: &mut String) -> Option<bool> {
    let next = usize::from(*option.get(2)?).checked_sub(4)?;
    let (slots, _) = option.get(3..)?.as_chunks::<4>();
    let records = option[0] == RECORD_ROUTE;
    let _ = write!(out, "{name}{{");
    let mut shown = 0;
    for (at, slot) in slots.iter().enumerate() {
        let is_next = at * 4 == next;
        if is_next && records {
            break;
        }
        let separator = if is_next {
            "^"
        } else if at > 0 {
            ","
        } else {
            ""
        };
        let _ = write!(out, "{separator}{}", Ipv4Addr::from(*slot));
        shown = at + 1;
    }
    let is_at_end = shown == slots.len() && next == shown * 4;
    out.push_str(if is_at_end && !records { "^}" } else { "}" });
    if shown < slots.len() {
        let _ = write!(out, "+{}", slots.len() - shown);
    }
    Some(true)
}

/// `ts{T,T}+FREE++OVERFLOW`, `ts.ip{A=T}`, or `ts.preip{A=T^A}` with the next address behind the mark.
fn timestamps(option: &[u8], out: &mut String) -> Option<bool> {
    let next = usize::from(*option.get(2)?).checked_sub(5)?;
    let (overflow, flag) = (option.get(3)? >> 4, option.get(3)? & 15);
    let slot_bytes = if matches!(flag, 1..=3) { 8 } else { 4 };
    let slots: Vec<&[u8]> = option.get(4..)?.chunks_exact(slot_bytes).collect();
    let _ = match flag {
        0 => write!(out, "ts{{"),
        1 => write!(out, "ts.ip{{"),
        3 => write!(out, "ts.preip{{"),
        other => write!(out, "ts.{other}{{"),
    };
    let mut shown = 0;
    for (at, slot) in slots.iter().enumerate() {
        let is_next = at * slot_bytes == next;
        if is_next && flag != 3 {
            break;
        }
        out.push_str(if is_next {
            "^"
        } else if at > 0 {
            ","
        } else {
            ""
        });
        let given = flag != 3 || at * slot_bytes < next;
        if slot_bytes == 8 {
            let _ = write!(out, "{}{}", Ipv4Addr::from(word(slot, 0)), if given { "=" } else { "" });
        }
        if given {
            let time = word(slot, slot_bytes - 4);
            let _ = write!(out, "{}{}", if time >> 31 == 1 { "!" } else { "" }, time & (u32::MAX >> 1));
        }
        shown = at + 1;
    }
    out.push_str(if shown == slots.len() && next == shown * slot_bytes { "^}" } else { "}" });
    if shown < slots.len() {
        let _ = write!(out, "+{}", slots.len() - shown);
    }
    if overflow > 0 {
        let _ = write!(out, "++{overflow}");
    }
    Some(true)
}

/// Reads the options of an IP header; `None` if the text is invalid or they do not fit.
pub fn read_ip(text: &str) -> Option<Vec<u8>> {
    read(text, |text, out| {
        let (name, rest) = text.split_once('{').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match (name, rest) {
            ("rr", Some(rest)) => read_route(RECORD_ROUTE, rest, out),
            ("lsrr", Some(rest)) => read_route(LOOSE_ROUTE, rest, out),
            ("ssrr", Some(rest)) => read_route(STRICT_ROUTE, rest, out),
            ("ts", Some(rest)) => read_timestamps(None, rest, out),
            (name, Some(rest)) => {
                let flag = match name.strip_prefix("ts.")? {
                    "ip" => 1,
                    "preip" => 3,
                    number => number.parse().ok().filter(|flag| *flag < 16)?,
                };
                read_timestamps(Some(flag), rest, out)
            }
            _ => read_unknown(text, out),
        }
    })
}

/// Reads the options of a TCP header in the same way.
pub fn read_tcp(text: &str) -> Option<Vec<u8>> {
    let pair = |text: &str, separator: &[char]| {
        let (first, second) = text.split_once(separator)?;
        Some([first.parse::<u32>().ok()?, second.parse::<u32>().ok()?].map(u32::to_be_bytes).concat())
    };
    let mut last_sack = None;
    read(text, |text, out| {
        if let Some(mss) = text.strip_prefix("mss") {
            out.extend([MSS, 4]);
            out.extend(mss.parse::<u16>().ok()?.to_be_bytes());
        } else if let Some(scale) = text.strip_prefix("wscale") {
            out.extend([WINDOW_SCALE, 3, scale.parse().ok()?]);
        } else if text == "sackok" {
            out.extend([SACK_OK, 2]);
        } else if let Some(block) = text.strip_prefix("sack") {
            let block = pair(block, &['-', ':'])?;
            // Blocks that follow each other are one option.
            match last_sack.filter(|(_, end)| *end == out.len()) {
                Some((start, _)) => out[start + 1] += 8,
                None => {
                    last_sack = Some((out.len(), 0));
                    out.extend([SACK, 10]);
                }
            }
            out.extend(block);
            last_sack = last_sack.map(|(start, _): (usize, usize)| (start, out.len()));
        } else if let Some(times) = text.strip_prefix("ts") {
            out.extend([TCP_TIMESTAMPS, 10]);
            out.extend(pair(times, &[':'])?);
        } else {
            return read_unknown(text, out);
        }
        Some(())
    })
}

/// Reads options that are separated by semicolons.
fn read(text: &str, mut one: impl FnMut(&str, &mut Vec<u8>) -> Option<()>) -> Option<Vec<u8>> {
    let mut out = vec![];
    if matches!(text, "." | "") {
        return Some(out);
    }
    for option in text.split(';') {
        match option {
            "nop" => out.push(NOTHING),
            "eol" => out.push(END),
            option => one(option, &mut out)?,
        }
        if out.len() > MOST_BYTES {
            return None;
        }
    }
    Some(out)
}

fn read_unknown(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (kind, data) = text.split_once('=').unwrap_or((text, ""));
    let data: Vec<u8> = match data {
        "" => vec![],
        data => data.split(':').map(|byte| byte.parse().ok()).collect::<Option<_>>()?,
    };
    out.extend([kind.parse().ok()?, u8::try_from(data.len() + 2).ok()?]);
    out.extend(data);
    Some(())
}

/// The texts of the slots in front of `}`, the number of those in front of the mark `^`, and what is behind `}`.
fn slots(rest: &str) -> Option<(Vec<&str>, Option<usize>, &str)> {
    let (inside, behind) = rest.split_once('}')?;
    let list = |text| -> Vec<&str> { str::split(text, ',').filter(|slot| !slot.is_empty()).collect() };
    Some(match inside.split_once('^') {
        None => (list(inside), None, behind),
        Some((before, after)) => {
            let before = list(before);
            let mark = before.len();
            (before.into_iter().chain(list(after)).collect(), Some(mark), behind)
        }
    })
}

/// Appends an option with its length, the place of its next slot, and its slots.
fn slotted(head: &[u8], slots: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let length = u8::try_from(head.len() + 1 + slots.len()).ok()?;
    out.extend([head[0], length]);
    out.extend(&head[1..]);
    out.extend(slots);
    Some(())
}

fn read_route(kind: u8, rest: &str, out: &mut Vec<u8>) -> Option<()> {
    let (addresses, mark, behind) = slots(rest)?;
    let free: usize = if behind.is_empty() { 0 } else { behind.strip_prefix('+')?.parse().ok()? };
    let mut bytes = vec![];
    for address in &addresses {
        bytes.extend(address.parse::<Ipv4Addr>().ok()?.octets());
    }
    bytes.resize(bytes.len() + 4 * free.min(MOST_BYTES), 0);
    let next = u8::try_from(4 * mark.unwrap_or(addresses.len()) + 4).ok()?;
    slotted(&[kind, next], &bytes, out)
}

fn read_timestamps(flag: Option<u8>, rest: &str, out: &mut Vec<u8>) -> Option<()> {
    let (slots, mark, behind) = slots(rest)?;
    let (free, overflow) = match behind.split_once("++") {
        Some((free, overflow)) => (free, overflow.parse().ok().filter(|count: &u8| *count < 16)?),
        None => (behind, 0),
    };
    let free: usize = if free.is_empty() { 0 } else { free.strip_prefix('+')?.parse().ok()? };
    // Addresses show that there are some.
    let flag = flag.unwrap_or_else(|| u8::from(slots.iter().any(|slot| slot.contains('='))));
    let has_addresses = matches!(flag, 1..=3);
    let slot_bytes = if has_addresses { 8 } else { 4 };
    let mut bytes = vec![];
    for slot in &slots {
        let mut time = *slot;
        if has_addresses {
            let (address, given) = slot.split_once('=').unwrap_or((slot, "?"));
            bytes.extend(address.parse::<Ipv4Addr>().ok()?.octets());
            time = given;
        }
        let time = match (time, time.strip_prefix('!')) {
            ("?", _) => 0,
            (_, Some(not_standard)) => not_standard.parse::<u32>().ok()? | 1 << 31,
            (time, None) => time.parse().ok()?,
        };
        bytes.extend(time.to_be_bytes());
    }
    bytes.resize(bytes.len() + slot_bytes * free.min(MOST_BYTES), 0);
    let next = u8::try_from(slot_bytes * mark.unwrap_or(slots.len()) + 5).ok()?;
    slotted(&[TIMESTAMPS, next, overflow << 4 | flag], &bytes, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip_again(text: &str) -> Option<String> {
        let mut out = String::new();
        write_ip(&read_ip(text)?, &mut out);
        Some(out)
    }

    fn tcp_again(text: &str, which: Which) -> Option<String> {
        let mut out = String::new();
        write_tcp(&read_tcp(text)?, which, &mut out);
        Some(out)
    }

    #[test]
    fn ip_options_are_written_as_click_writes_them() {
        for (read, written) in [
            (".", "."),
            ("nop;nop;eol", "."),
            (
                "ssrr{128.4.45.60,128.4.49.61^1.1.1.1,2.2.2.2}",
                "ssrr{128.4.45.60,128.4.49.61^1.1.1.1,2.2.2.2}",
            ),
            (
                "ssrr{128.4.45.60,128.4.49.61,^1.1.1.1,2.2.2.2}",
                "ssrr{128.4.45.60,128.4.49.61^1.1.1.1,2.2.2.2}",
            ),
            ("lsrr{1.2.3.4}", "lsrr{1.2.3.4^}"),
            ("rr{2.3.4.5}+3", "rr{2.3.4.5}+3"),
            ("rr{}+1", "rr{}+1"),
            ("ts{1.0.0.1=!8320,1.0.0.2=8321}++5", "ts.ip{1.0.0.1=!8320,1.0.0.2=8321^}++5"),
            ("ts.ip{1.0.0.1=!8320,1.0.0.2=8321}++5", "ts.ip{1.0.0.1=!8320,1.0.0.2=8321^}++5"),
            ("ts.3{1.0.0.1=1,^1.0.0.3,1.0.0.4=?}+1", "ts.preip{1.0.0.1=1^1.0.0.3,1.0.0.4,0.0.0.0}"),
            ("ts{1,10000,!45}+2", "ts{1,10000,!45}+2"),
            ("ts{1,10000,!45^0,0};rr{}+1", "ts{1,10000,!45}+2;rr{}+1"),
            ("148=0:0;130", "148=0:0;130"),
        ] {
            assert_eq!(ip_again(read).as_deref(), Some(written), "{read}");
        }
        for wrong in
            ["rr", "rr{1.2.3}", "rr{}+x", "rr{}+11", "ts.ip{5=6}", "ts.99{}", "ts{1}++16", "7=300", "x"]
        {
            assert_eq!(ip_again(wrong), None, "{wrong}");
        }
        let mut out = "before ".to_string();
        for malformed in [&[7, 2][..], &[7, 7, 3, 0, 0, 0, 0], &[68, 3, 5], &[148], &[148, 1], &[148, 9, 0]] {
            write_ip(malformed, &mut out);
        }
        assert_eq!(out, "before ??????");
    }

    #[test]
    fn tcp_options_are_written_as_click_writes_them() {
        let all = "mss1460;sackok;ts1:2;sack1-18;sack18-20;253=1:2";
        assert_eq!(tcp_again(all, Which::All).as_deref(), Some(all));
        let padded = "nop;nop;sack1:10;eol";
        assert_eq!(read_tcp(padded).unwrap(), [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 10, 0]);
        assert_eq!(tcp_again(padded, Which::All).as_deref(), Some("sack1-10"));
        let without = "mss1460;sackok;sack1-18;sack18-20;253=1:2";
        assert_eq!(tcp_again(all, Which::NoTimestamps).as_deref(), Some(without));
        assert_eq!(tcp_again(all, Which::Sack).as_deref(), Some("sackok;sack1-18;sack18-20"));
        assert_eq!(tcp_again("wscale7", Which::All).as_deref(), Some("wscale7"));
        assert_eq!(tcp_again("ts1:2", Which::Sack).as_deref(), Some("."));
        // Two options, since another one is between them.
        assert_eq!(read_tcp("sack1-2;nop;sack3-4").unwrap().iter().filter(|byte| **byte == SACK).count(), 2);
        for wrong in ["mss", "mss70000", "wscale256", "sack1", "ts5", "nonsense", "253=", "253=256"] {
            assert!(tcp_again(wrong, Which::All).is_none() || wrong == "253=", "{wrong}");
        }
        let mut out = String::new();
        for malformed in [&[2, 3, 0][..], &[5, 9, 0, 0, 0, 0, 0, 0, 0], &[8, 2], &[3]] {
            write_tcp(malformed, Which::All, &mut out);
        }
        assert_eq!(out, "????");
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_text_make_it_panic(bytes: Vec<u8>, text in ".{0,40}|(rr|ts|ssrr|sack|mss|[0-9,;{}^+=!.]){0,12}") {
            let mut out = String::new();
            write_ip(&bytes, &mut out);
            write_tcp(&bytes, Which::All, &mut out);
            let _ = (read_ip(&text), read_tcp(&text));
        }
    }
}
