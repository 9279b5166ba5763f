//! Parses one test: qualifiers, and a value. [`super::check`] makes a test of them.

use super::ast::{Carrier, Direction, Expr, HeaderField, Relation};
use super::check::{Data, Header, Inherited, Parts};
use super::parse::Parser;
use super::text::RELATIONS;
use super::words::{self, Kind, Meaning};
use crate::config::{Ip4Prefix, parse};
use diag::{Diagnostic, did_you_mean};

impl Parser<'_> {
    /// Parses a test. Always consumes at least one word.
    pub(super) fn test(&mut self) -> Expr {
        let first = self.pos;
        let mut parts = Parts {
            kind: None,
            direction: None,
            transport: None,
            header: None,
            negated: false,
            mask: None,
            relation: Relation::Equal,
            data: Data::None,
            data_span: self.here(),
            span: self.here(),
            idle_direction: false,
            wrong: false,
        };
        self.qualifiers(&mut parts);
        if self.pos > first {
            self.inherited =
                Inherited { wrong: self.inherited.wrong && parts.kind.is_none(), ..Inherited::default() };
        } else if self.inherited.kind == Some(Kind::Ether) {
            parts.header = Some(Header::Ether);
        } else if self.inherited.six {
            parts.header = Some(Header::Ip6);
        }
        if self.word() == "[" && self.pos > first && parts.kind.is_none() {
            self.brackets(&mut parts);
        }
        self.mask(&mut parts);
        self.relation(&mut parts);
        self.data(&mut parts, first);
        if self.pos == first {
            self.unknown(&mut parts);
        }
        parts.span = self.span_from(first);
        let negated = parts.negated;
        let expr = if parts.wrong { None } else { self.finish(parts) };
        match expr {
            Some(expr) if negated => Expr::Not(Box::new(expr)),
            Some(expr) => expr,
            None => {
                self.inherited = Inherited { wrong: true, ..Inherited::default() };
                Expr::False
            }
        }
    }

    fn qualifiers(&mut self, parts: &mut Parts) {
        loop {
            match words::meaning(self.word(), None, None, self.names) {
                Meaning::Kind(kind) => {
                    if parts.kind.is_some() {
                        self.twice(parts, "the kind of test is given twice");
                    }
                    parts.kind = Some(kind);
                    if let Kind::Field(HeaderField { carrier: carrier @ Carrier::Protocol(_), .. }) = kind {
                        self.transport(parts, carrier);
                    }
                }
                Meaning::Protocol(transport) => self.transport(parts, transport),
                Meaning::Unknown => match self.word() {
                    "src" => {
                        let both = match self.peek(1) {
                            "and" | "&&" => Some(Direction::Both),
                            "or" | "||" => Some(Direction::Either),
                            _ => None,
                        };
                        match both.filter(|_| matches!(self.peek(2), "dst" | "dest")) {
                            Some(direction) => {
                                self.direction(parts, direction);
                                self.pos += 2;
                            }
                            None => self.direction(parts, Direction::Src),
                        }
                    }
                    "dst" | "dest" => self.direction(parts, Direction::Dst),
                    "ip6" if parts.header.is_none() => parts.header = Some(Header::Ip6),
                    "ip" if parts.header.is_none() => parts.header = Some(Header::Ip),
                    "ether" if parts.header.is_none() => parts.header = Some(Header::Ether),
                    "not" | "!" => parts.negated = !parts.negated,
                    _ => return,
                },
                _ => return,
            }
            self.pos += 1;
        }
    }

    fn wrong(&mut self, parts: &mut Parts, mistake: Diagnostic) {
        self.mistake(mistake);
        parts.wrong = true;
    }

    fn twice(&mut self, parts: &mut Parts, message: &str) {
        let mistake = Diagnostic::error(self.here(), message);
        self.wrong(parts, mistake.help("join two tests by `and` or `or`"));
    }

    fn direction(&mut self, parts: &mut Parts, direction: Direction) {
        if parts.direction.is_some() {
            self.twice(parts, "`src` or `dst` is given twice");
        }
        parts.direction = Some(direction);
    }

    fn transport(&mut self, parts: &mut Parts, transport: Carrier) {
        if parts.transport.is_some_and(|known| known != transport) {
            self.twice(parts, "the transport protocol is given twice");
        }
        parts.transport = Some(transport);
    }

    /// `[POS]`, `[POS:LEN]`, or `[FIRST,LAST]`, in bytes.
    fn brackets(&mut self, parts: &mut Parts) {
        let open = self.pos;
        self.pos += 1;
        let mut text = String::new();
        while !self.at_end() && self.word() != "]" {
            text.push_str(self.word());
            self.pos += 1;
        }
        if self.at_end() {
            let mistake = Diagnostic::error(self.span_from(open), "expected the `]` that goes with this `[`");
            return self.wrong(parts, mistake);
        }
        self.pos += 1;
        let number = |text: &str| text.parse::<u16>().ok();
        let place = if let Some((at, len)) = text.split_once(':') {
            number(at).zip(number(len))
        } else if let Some((first, last)) = text.split_once(',') {
            let pair = number(first).zip(number(last));
            pair.and_then(|(first, last)| Some((first, last.checked_sub(first)?.checked_add(1)?)))
        } else {
            number(&text).map(|at| (at, 1))
        };
        let span = self.span_from(open);
        match place {
            Some((at, len)) if (1..=4).contains(&len) && at < 1500 => {
                let carrier = parts.transport.unwrap_or(Carrier::Ip);
                parts.kind = Some(Kind::Field(HeaderField { carrier, bit: at * 8, width: (len * 8) as u8 }));
            }
            Some((_, len)) => {
                let what = if (1..=4).contains(&len) {
                    "POS lies between 0 and 1499"
                } else {
                    "LEN lies between 1 and 4"
                };
                self.wrong(parts, Diagnostic::error(span, "the field is out of range").help(what));
            }
            None => {
                let help = "write `[POS]` or `[POS:LEN]`, in bytes";
                self.wrong(parts, Diagnostic::error(span, "expected a place in the header").help(help));
            }
        }
    }

    fn mask(&mut self, parts: &mut Parts) {
        if self.word() != "&" {
            return;
        }
        let first = self.pos;
        self.pos += 1;
        let mask = self.literal(parts.header);
        let span = self.here();
        match mask {
            Some(Data::Number(0) | Data::Address(0) | Data::Ether(0)) => {
                self.wrong(parts, Diagnostic::error(span, "a mask without bits compares nothing"));
                self.pos += 1;
            }
            Some(mask @ (Data::Number(_) | Data::Address(_) | Data::Ether(_))) => {
                parts.mask = Some((mask, span));
                self.pos += 1;
            }
            _ => {
                let mistake = Diagnostic::error(self.span_from(first), "expected a mask after `&`");
                self.wrong(parts, mistake.help("a number such as `0xff`; a conjunction is `&&`"));
            }
        }
    }

    fn relation(&mut self, parts: &mut Parts) {
        let sign = if self.word() == "==" { "=" } else { self.word() };
        let Some(relation) = words::find(RELATIONS, sign) else { return };
        parts.relation = relation;
        let first = self.pos;
        self.pos += 1;
        if self.at_end() || STOPS.contains(&self.word()) {
            let word = self.peek(0);
            let after = if word.is_empty() { String::new() } else { format!(", found `{word}`") };
            let span = self.span_from(first);
            self.wrong(parts, Diagnostic::error(span, format!("expected a value{after}")));
        }
    }

    /// The current word as a number, a range, or an address: literals with the same meaning in every context.
    fn literal(&self, header: Option<Header>) -> Option<Data> {
        let text = self.word();
        let digit = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        if digit && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return parse::u64(&self.spanned(0), self.names).ok().map(Data::Number);
        }
        if let Some((first, last)) = text.split_once('-').filter(|_| digit)
            && let (Ok(first), Ok(last)) = (first.parse(), last.parse())
        {
            return Some(Data::Range(first, last));
        }
        if header == Some(Header::Ip6) {
            return self.literal6();
        }
        let (ip, ether) = (header != Some(Header::Ether), header != Some(Header::Ip));
        if let Some(address) = parse::ip4_text(text, self.names).filter(|_| ip) {
            return Some(Data::Address(address.into()));
        }
        if let Some(prefix) = parse::ip4_prefix_text(text, self.names).filter(|_| ip) {
            return Some(prefix_data(prefix));
        }
        let station = parse::ether_text(text, self.names).filter(|_| ether);
        station.map(|bytes| Data::Ether(bytes.iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte))))
    }

    /// The current word as an IPv6 address or prefix.
    fn literal6(&self) -> Option<Data> {
        let (text, names) = (self.word(), self.names);
        if let Some(address) = parse::ip6_text(text, names).filter(|_| !text.contains('/')) {
            return Some(Data::Address6(address.into()));
        }
        // No length follows a name.
        let prefix = match text.contains(':') {
            true => parse::ip6_prefix_text(text, names),
            false => names.ip6_prefix(text),
        };
        prefix.map(|prefix| Data::Prefix6(prefix.address.into(), prefix.len))
    }

    /// `10`, `10.1`, `10.1.2`, or a whole address, as the value of `net`; with the number of bytes given.
    fn partial_address(&self) -> Option<(u32, u32)> {
        let parts: Option<Vec<u8>> = self.word().split('.').map(|part| part.parse().ok()).collect();
        let parts = parts.filter(|parts| (1..=4).contains(&parts.len()))?;
        let value = parts.iter().fold(0u32, |acc, byte| acc << 8 | u32::from(*byte));
        let count = parts.len() as u32;
        Some((value.checked_shl(32 - 8 * count).unwrap_or(0), count))
    }

    fn data(&mut self, parts: &mut Parts, first: usize) {
        parts.data_span = self.here();
        if self.at_end() || STOPS.contains(&self.word()) {
            return;
        }
        let data = match words::meaning(self.word(), parts.kind, parts.transport, self.names) {
            Meaning::Protocol(transport) => Some(Data::Protocol(transport)),
            Meaning::Port(port) => Some(Data::Port(port)),
            Meaning::Flag(flag) => Some(Data::Flag(flag)),
            Meaning::IcmpType(kind) => Some(Data::IcmpType(kind)),
            Meaning::Unclear { ambiguous, instead } => {
                let (word, span) = (self.word(), self.here());
                let what = if ambiguous { "could mean several things" } else { "means nothing" };
                let mistake = Diagnostic::error(span, format!("`{word}` {what} here"));
                self.wrong(parts, mistake.help(format!("write {}", instead.join(" or "))));
                self.pos += 1;
                return;
            }
            Meaning::Kind(_) | Meaning::Unknown => None,
        };
        let data = data.or_else(|| self.net_data(parts)).or_else(|| self.literal(parts.header));
        match data {
            Some(data) => {
                self.pos += 1;
                let address = match data {
                    Data::Address(address) => Some(address),
                    Data::Prefix(address, _) if parts.kind == Some(Kind::Net) => Some(address),
                    _ => None,
                };
                let mask = if self.word() == "mask" { address.zip(self.mask_after()) } else { None };
                parts.data = match mask {
                    Some((address, mask)) => {
                        self.pos += 2;
                        Data::Prefix(address, mask)
                    }
                    None => data,
                };
                parts.data_span = self.span_from(self.pos - 1);
            }
            // The word can start no test, so it was meant as the value.
            None if self.pos > first && !self.starts_test() => self.unknown(parts),
            None => {}
        }
    }

    /// A value of `net`: a name's prefix rather than its address, or an incomplete address.
    fn net_data(&self, parts: &Parts) -> Option<Data> {
        if parts.kind != Some(Kind::Net) || parts.header == Some(Header::Ether) {
            return None;
        }
        if let Some(prefix) = self.names.ip4_prefix(self.word()) {
            return Some(prefix_data(prefix));
        }
        let (address, bytes) = self.partial_address()?;
        let whole_address = bytes == 4 && self.peek(1) != "mask";
        (!whole_address)
            .then(|| Data::Prefix(address, u32::MAX.checked_shl(32 - 8 * bytes).unwrap_or(u32::MAX)))
    }

    /// The address after `mask`.
    fn mask_after(&self) -> Option<u32> {
        parse::ip4_text(self.peek(1), self.names).map(u32::from)
    }

    /// Whether the current word can start a test.
    fn starts_test(&self) -> bool {
        matches!(
            self.word(),
            "src" | "dst" | "dest" | "ip" | "ip6" | "ether" | "not" | "!" | "true" | "false" | "("
        ) || matches!(words::meaning(self.word(), None, None, self.names), Meaning::Kind(_))
    }

    /// Reports and skips the current word.
    fn unknown(&mut self, parts: &mut Parts) {
        let word = self.word().to_string();
        let known = self.names.known();
        let vocabulary = words::vocabulary().map(|word| -> &str { word });
        let suggestion = did_you_mean(&word, vocabulary.chain(known.iter().map(String::as_str)));
        let mistake =
            Diagnostic::error(self.here(), format!("`{word}` is no address, name or word of the language"));
        self.wrong(parts, mistake.maybe_help(suggestion));
        self.pos += 1;
    }

    /// Checks the parsed parts and makes a test of them.
    fn finish(&mut self, mut parts: Parts) -> Option<Expr> {
        match parts.build(self.inherited) {
            Ok((expr, kind)) => {
                self.warnings.append(&mut parts.warnings(&expr));
                let transport = parts.transport;
                let six = parts.header == Some(Header::Ip6);
                self.inherited =
                    Inherited { kind: Some(kind), direction: parts.direction, transport, six, wrong: false };
                Some(expr)
            }
            Err(Some(mistake)) => {
                self.mistake(mistake);
                None
            }
            Err(None) => None,
        }
    }
}

fn prefix_data(prefix: Ip4Prefix) -> Data {
    Data::Prefix(prefix.address.into(), prefix.mask.into())
}

/// Words that cannot be a value.
const STOPS: [&str; 23] = [
    "and", "&&", "or", "||", "not", "!", "(", ")", "?", ":", "true", "false", "[", "]", "&", "=", "==", "!=",
    "<", ">", "<=", ">=", "|",
];
