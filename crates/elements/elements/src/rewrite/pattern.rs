//! Patterns: what a new flow is rewritten to.
//!
//! A pattern replaces some of a flow's addresses and ports. The source port or the source address may be from
//! a range: then the pattern chooses a value with which no other mapping has the same reply flow. Several
//! input specifications, also of several elements, may use one pattern ([`SharedPattern`]); each worker has
//! its own part of the range.
//!
//! Formats, preferences and order follow Click's `IPRewriterPattern`.

use super::flow::{FlowId, Key, Kind};
use super::free::FreeSearch;
use super::model::{Outputs, Request};
use click::config::{Names, parse};
use diag::Spanned;
use element::steering::OwnerWorker;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use table::Random;
use table::flow::{FlowConfig, FlowTable};

/// A pattern as it is written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pattern {
    /// Source address, the first one of a range.
    pub src: Option<u32>,
    /// Source port, the first one of a range.
    pub sport: Option<u16>,
    /// Destination address.
    pub dst: Option<u32>,
    /// Destination port.
    pub dport: Option<u16>,
    /// Whether it has ports: then the range is one of ports.
    pub has_ports: bool,
    /// Values of the range beyond the first; 0 without a range.
    pub range_top: u32,
    /// Take values in order.
    pub sequential: bool,
    /// Prefer the packet's own source port.
    pub same_first: bool,
}

/// A range without the character at its end that says how it is searched; whether in order, and whether the
/// packet's own source port is tried first.
fn order(text: &str) -> (&str, bool, bool) {
    match (text.strip_suffix('#'), text.strip_suffix('?')) {
        (Some(range), _) => (range, true, false),
        (_, Some(range)) => (range, false, false),
        _ => (text, false, true),
    }
}

impl Pattern {
    /// Reads one to four words: `SADDR DADDR`, `SADDR DADDR SPORT` or `SADDR SPORT DADDR DPORT`.
    ///
    /// # Errors
    /// The word that is wrong, and what is wrong with it.
    pub fn parse(words: &[Spanned], names: &dyn Names) -> Result<Pattern, (usize, &'static str)> {
        let (saddr, sport, daddr, dport) = match words.len() {
            2 => (0, None, 1, None),
            3 => (0, Some(2), 1, None),
            4 => (0, Some(1), 2, Some(3)),
            _ => return Err((0, "syntax error: a pattern is `SADDR SPORT DADDR DPORT`")),
        };
        let mut pattern = Pattern { has_ports: words.len() >= 3, same_first: true, ..Pattern::default() };
        if words[saddr].as_str() != "-" {
            match parse::ip4(&words[saddr], names) {
                Ok(address) => pattern.src = Some(address.into()),
                Err(_) if pattern.address_range(&words[saddr], names) => {}
                Err(_) => return Err((saddr, "bad source address")),
            }
        }
        if let Some(at) = sport.filter(|&at| words[at].as_str() != "-") {
            match port(&words[at], names) {
                Some(port) => pattern.sport = Some(port),
                None if pattern.port_range(&words[at], names) => {}
                None => return Err((at, "bad source port")),
            }
        }
        if words[daddr].as_str() != "-" {
            let address = parse::ip4(&words[daddr], names);
            pattern.dst = Some(address.map_err(|_| (daddr, "bad destination address"))?.into());
        }
        if let Some(at) = dport.filter(|&at| words[at].as_str() != "-") {
            pattern.dport = Some(port(&words[at], names).ok_or((at, "bad destination port"))?);
        }
        Ok(pattern)
    }

    /// Reads `L-H` or a prefix, whose first and last address are left out if it has more than two.
    fn address_range(&mut self, word: &Spanned, names: &dyn Names) -> bool {
        let (range, sequential, same_first) = order(word.as_str());
        let piece = |from: usize, to: usize| word.slice(from..to);
        let (first, top) = if let Some(dash) = range.find('-') {
            let low = parse::ip4(&piece(0, dash), names);
            let high = parse::ip4(&piece(dash + 1, range.len()), names);
            let (Ok(low), Ok(high)) = (low, high) else { return false };
            let (low, high) = (u32::from(low), u32::from(high));
            let Some(top) = high.checked_sub(low) else { return false };
            (low, top)
        } else {
            let Ok(prefix) = parse::ip4_prefix(&piece(0, range.len()), names) else { return false };
            let (network, hosts) = (u32::from(prefix.network()), !u32::from(prefix.mask));
            match prefix.len() {
                None | Some(0) => return false,
                Some(32) => (network, 0),
                Some(31) => (network, 1),
                Some(_) => (network + 1, hosts - 2),
            }
        };
        self.src = Some(first);
        (self.range_top, self.sequential, self.same_first) = (top, sequential, same_first);
        true
    }

    fn port_range(&mut self, word: &Spanned, names: &dyn Names) -> bool {
        let (range, sequential, same_first) = order(word.as_str());
        let Some(dash) = range.find('-') else { return false };
        let number = |from: usize, to: usize| parse::u16(&word.slice(from..to), names).ok();
        let (Some(low), Some(high)) = (number(0, dash), number(dash + 1, range.len())) else { return false };
        let Some(top) = high.checked_sub(low).map(u32::from) else { return false };
        self.sport = Some(low);
        (self.range_top, self.sequential, self.same_first) = (top, sequential, same_first);
        true
    }

    /// What a flow becomes, with the first value of the range.
    pub fn apply(&self, flow: FlowId) -> FlowId {
        FlowId {
            src: self.src.unwrap_or(flow.src),
            sport: self.sport.unwrap_or(flow.sport),
            dst: self.dst.unwrap_or(flow.dst),
            dport: self.dport.unwrap_or(flow.dport),
        }
    }

    /// The part of the range that a worker uses: its first value and the number beyond; `None` if there are
    /// fewer values than workers.
    pub fn share(&self, worker: usize, workers: usize) -> Option<(u32, u32)> {
        let first = if self.has_ports { self.sport.map_or(0, u32::from) } else { self.src.unwrap_or(0) };
        if self.range_top == 0 {
            return Some((first, 0));
        }
        let (values, workers) = (u64::from(self.range_top) + 1, workers.max(1) as u64);
        let each = values / workers;
        if each == 0 {
            return None;
        }
        let start = each * worker as u64;
        let end = if worker as u64 + 1 == workers { values } else { start + each };
        Some((first.wrapping_add(start as u32), (end - start - 1) as u32))
    }
}

fn port(word: &Spanned, names: &dyn Names) -> Option<u16> {
    parse::u16(word, names).ok().filter(|&port| port > 0)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |value: Option<u32>| value.map_or("-".to_string(), |ip| Ipv4Addr::from(ip).to_string());
        let port = |value: Option<u16>| value.map_or("-".to_string(), |port| port.to_string());
        write!(f, "{}", address(self.src))?;
        if !self.has_ports && self.range_top > 0 {
            write!(f, "-{}", Ipv4Addr::from(self.src.unwrap_or(0).wrapping_add(self.range_top)))?;
        }
        if self.has_ports {
            write!(f, " {}", port(self.sport))?;
            if self.range_top > 0 {
                write!(f, "-{}", u32::from(self.sport.unwrap_or(0)) + self.range_top)?;
            }
        }
        write!(f, " {}", address(self.dst))?;
        if self.has_ports { write!(f, " {}", port(self.dport)) } else { Ok(()) }
    }
}

/// A pattern of one worker, with the values of its range that are in use.
pub struct PatternState {
    /// As written.
    pub pattern: Pattern,
    search: FreeSearch,
    /// The worker that owns its mappings, if there are several.
    owner_worker: Option<OwnerWorker>,
    /// Reply flows of all mappings made with it, if several elements may use it.
    taken: Option<FlowTable<2>>,
}

/// A pattern that several inputs may use. Its lock is taken when a mapping is made or removed.
pub type SharedPattern = Arc<Mutex<PatternState>>;

/// What a new flow becomes.
pub struct Choice {
    /// The flow.
    pub to: FlowId,
    /// The outputs of its packets.
    pub outputs: Outputs,
    /// The pattern used.
    pub pattern: Option<SharedPattern>,
    /// Whether a value of the pattern's range was taken for it.
    pub takes_value: bool,
}

impl PatternState {
    /// A worker's part of a pattern; `None` if its range has fewer values than there are workers. Values with
    /// which replies come to the worker `home` are preferred.
    pub fn new(
        pattern: Pattern,
        (worker, workers): (usize, usize),
        home: Option<OwnerWorker>,
    ) -> Option<PatternState> {
        let (first, top) = pattern.share(worker, workers)?;
        let search = FreeSearch::new(first, top, pattern.sequential);
        Some(PatternState { pattern, search, owner_worker: home, taken: None })
    }

    /// Tracks the pattern's mappings across elements.
    pub fn shared(mut self) -> PatternState {
        let config = FlowConfig { record_bytes: 1, capacity: 1 << 20, ..FlowConfig::default() };
        self.taken = FlowTable::new(&config).ok();
        self
    }

    /// Chooses what a new flow becomes; `None` if no value is left.
    pub fn choose(&mut self, request: &Request<'_>, random: &mut Random) -> Option<FlowId> {
        let Request { flow, kind, protocol, exclusive, is_free } = *request;
        let to = self.rewritten(flow, kind);
        if self.pattern.range_top == 0 {
            return Some(to);
        }
        let has_ports = self.pattern.has_ports;
        let taken = self.taken.as_ref();
        let with = |value: u32| set(to, has_ports, value);
        let free = |value: u32| {
            let to = with(value);
            let key = || kind.key(to.reversed(), protocol, true);
            is_free(to) && taken.is_none_or(|taken| taken.find(&key()).is_none())
        };
        let same = (self.pattern.same_first && has_ports).then_some(u32::from(flow.sport));
        let crowd = crowd_of(with(0), protocol, exclusive);
        if let Some(home) = &self.owner_worker {
            // Keeping the packet's own port is preferred to replies that come to this worker by themselves.
            let is_near = |value: u32| {
                let is_home = || kind.reply_key(with(value), protocol).is_some_and(|reply| home.has(&reply));
                (same == Some(value) || is_home()) && free(value)
            };
            if let Some(value) = self.search.probe(same, crowd, random, is_near) {
                return Some(with(value));
            }
        }
        self.search.find(same, crowd, random, free).map(with)
    }

    /// What a new flow becomes if its first choice is free; `None` if that is random.
    pub fn first_choice(&self, flow: FlowId) -> Option<FlowId> {
        let to = self.pattern.apply(flow);
        match self.pattern.range_top {
            0 => Some(to),
            _ if self.pattern.same_first && self.pattern.has_ports => {
                let sport = self.search.holds(u32::from(flow.sport)).then_some(flow.sport)?;
                Some(FlowId { sport, ..to })
            }
            _ => None,
        }
    }

    fn rewritten(&self, flow: FlowId, kind: Kind) -> FlowId {
        let to = self.pattern.apply(flow);
        // An echo request has no destination port.
        if kind == Kind::Ping { FlowId { dport: 0, ..to } } else { to }
    }

    /// Records that a mapping was made.
    pub fn note_made(&mut self, reply: &Key) {
        if let Some(taken) = &mut self.taken {
            // If the table is full, elements may choose duplicates, as in Click.
            let _ = taken.insert(reply);
        }
    }

    /// Records that a mapping was removed.
    pub fn note_gone(&mut self, reply: &Key) {
        if let Some(taken) = &mut self.taken
            && let Some(record) = taken.find(reply)
        {
            taken.remove(record);
        }
    }

    /// Returns a value of the range.
    pub fn release(&mut self, to: FlowId, protocol: u8, exclusive: bool) {
        let value = if self.pattern.has_ports { u32::from(to.sport) } else { to.src };
        let crowd = crowd_of(set(to, self.pattern.has_ports, 0), protocol, exclusive);
        self.search.release(value, crowd);
    }
}

/// The flow with another value from the range.
fn set(to: FlowId, has_ports: bool, value: u32) -> FlowId {
    if has_ports { FlowId { sport: value as u16, ..to } } else { FlowId { src: value, ..to } }
}

/// The key of the mappings among which a value may be used once: those that agree in everything else, or only
/// in source and protocol.
fn crowd_of(to: FlowId, protocol: u8, exclusive: bool) -> Key {
    let to = if exclusive { FlowId { dst: 0, dport: 0, ..to } } else { to };
    Kind::Ports.key(to, protocol, false)
}
