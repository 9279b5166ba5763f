//! Endpoint-independent mapping (RFC 4787 REQ-1, RFC 5382 REQ-1): an internal endpoint has one external
//! endpoint, whatever it talks to. Open filtering and hairpinning rest on it.
//!
//! An endpoint exists as long as a mapping uses it.

use super::flow::{FlowId, Key};
use super::input::Spec;
use super::model::Request;
use super::pattern::Choice;
use table::Random;
use table::TableError;
use table::flow::{FlowConfig, FlowTable};

/// Offsets in an endpoint's record.
mod at {
    pub const INSIDE: usize = 0;
    pub const INSIDE_PORT: usize = 4;
    pub const OUTSIDE: usize = 8;
    pub const OUTSIDE_PORT: usize = 12;
    pub const COUNT: usize = 16;
    pub const FORWARD: usize = 20;
    pub const REPLY: usize = 21;
    pub const INPUT: usize = 22;
    pub const PATTERN: usize = 24;
}

/// The endpoints of a rewriter.
pub struct Endpoints {
    table: FlowTable<2>,
}

/// The internal endpoint of an external one.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// Its address.
    pub address: u32,
    /// Its port.
    pub port: u16,
    /// Output for packets from it.
    pub forward: u8,
    /// Output for packets to it.
    pub reply: u8,
    /// The input that it came in by.
    pub input: u8,
}

fn inside_key(flow: FlowId, protocol: u8, input: u8) -> Key {
    let ports = u64::from(flow.sport) << 16 | u64::from(protocol);
    [u64::from(flow.src) << 32 | u64::from(input) << 1, ports]
}

fn outside_key(address: u32, port: u16, protocol: u8) -> Key {
    [u64::from(address) << 32 | 1, u64::from(port) << 16 | u64::from(protocol)]
}

impl Endpoints {
    /// No endpoints, with room for one for each mapping.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(capacity: u32, seed: u64) -> Result<Endpoints, TableError> {
        let config = FlowConfig { capacity, seed, ..FlowConfig::default() };
        Ok(Endpoints { table: FlowTable::new(&config)? })
    }

    /// Chooses what a new flow becomes: with the external endpoint of its source, if that has one.
    pub fn choose(
        &self,
        spec: &mut Spec,
        request: &Request<'_>,
        input: u8,
        random: &mut Random,
    ) -> Option<Choice> {
        let flow = request.flow;
        let found = self.table.find_address(&inside_key(flow, request.protocol, input));
        if found != 0
            && let Spec::Pattern(pattern, outputs) = spec
        {
            let to = FlowId {
                src: self.table.load(found, at::OUTSIDE, 4) as u32,
                sport: self.table.load(found, at::OUTSIDE_PORT, 2) as u16,
                ..pattern.lock().ok()?.pattern.apply(flow)
            };
            let pattern = Some(pattern.clone());
            return Some(Choice { to, outputs: *outputs, pattern, takes_value: false });
        }
        let is_free = |to: FlowId| {
            let key = outside_key(to.src, to.sport, request.protocol);
            self.table.find(&key).is_none() && (request.is_free)(to)
        };
        spec.choose(&Request { is_free: &is_free, ..*request }, random)
    }

    /// The internal endpoint of a flow's destination, if that is an external endpoint.
    pub fn inside_of(&self, flow: FlowId, protocol: u8) -> Option<Inside> {
        let found = self.table.find_address(&outside_key(flow.dst, flow.dport, protocol));
        let get = |at: usize, bytes: u8| self.table.load(found, at, bytes);
        (found != 0).then(|| Inside {
            address: get(at::INSIDE, 4) as u32,
            port: get(at::INSIDE_PORT, 2) as u16,
            forward: get(at::FORWARD, 1) as u8,
            reply: get(at::REPLY, 1) as u8,
            input: get(at::INPUT, 1) as u8,
        })
    }

    /// Counts one more mapping for the endpoint of a flow's source. Makes the endpoint if there is none and
    /// `made_by` is the pattern that chose `to`. Returns the endpoint's address, 0 if there is none.
    pub fn hold(
        &mut self,
        flow: FlowId,
        to: FlowId,
        protocol: u8,
        inside: Inside,
        made_by: Option<u16>,
    ) -> u64 {
        let key = inside_key(flow, protocol, inside.input);
        let mut found = self.table.find_address(&key);
        if found == 0 {
            let Some(pattern) = made_by else { return 0 };
            let Ok(record) = self.table.insert(&key) else { return 0 };
            if self.table.insert_alias(record, &outside_key(to.src, to.sport, protocol), 0).is_err() {
                self.table.remove(record);
                return 0;
            }
            found = self.table.record_ptr(record) as u64;
            let fields = [
                (at::INSIDE, 4, u64::from(flow.src)),
                (at::INSIDE_PORT, 2, u64::from(flow.sport)),
                (at::OUTSIDE, 4, u64::from(to.src)),
                (at::OUTSIDE_PORT, 2, u64::from(to.sport)),
                (at::FORWARD, 1, u64::from(inside.forward)),
                (at::REPLY, 1, u64::from(inside.reply)),
                (at::INPUT, 1, u64::from(inside.input)),
                (at::PATTERN, 2, u64::from(pattern)),
            ];
            fields.into_iter().for_each(|(at, bytes, value)| self.table.store(found, at, bytes, value));
        }
        let count = self.table.load(found, at::COUNT, 4);
        self.table.store(found, at::COUNT, 4, count + 1);
        found
    }

    /// Counts one mapping less. With the last one the endpoint is removed; then returns the number of the
    /// pattern whose value it used, and its source.
    pub fn release(&mut self, endpoint: u64) -> Option<(u16, FlowId)> {
        let record = self.table.record_at(endpoint)?;
        let get = |at: usize, bytes: u8| self.table.load(endpoint, at, bytes);
        let count = get(at::COUNT, 4);
        if count > 1 {
            self.table.store(endpoint, at::COUNT, 4, count - 1);
            return None;
        }
        let (src, sport) = (get(at::OUTSIDE, 4) as u32, get(at::OUTSIDE_PORT, 2) as u16);
        let pattern = get(at::PATTERN, 2) as u16;
        self.table.remove(record);
        Some((pattern, FlowId { src, sport, ..FlowId::default() }))
    }

    /// Housekeeping.
    pub fn tick(&mut self) {
        self.table.maintain();
    }
}
