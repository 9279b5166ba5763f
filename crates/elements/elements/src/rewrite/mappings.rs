//! The mappings of one rewriter on one worker: making, finding and removing them.
//!
//! Invariants: every mapping's record has its primary key, which leads to the first line, and (unless another
//! mapping took the key over) an alias for the second line; no two mappings share a reply key. A mapping is removed while no packet has found it: between bursts, or by a packet that is alone in
//! the program ([`ir::Created::Wait`]). Where a packet cannot wait for that, the mapping is *condemned* and removed at
//! the next tick: the table has room for [`SLACK`] mappings beyond the capacity.

use super::endpoint::{Endpoints, Inside};
use super::flow::{FlowId, Key, Kind, RECORD_BYTES, at};
use super::held_lines::HeldLines;
use super::input::Spec;
use super::model::{Outputs, Request};
use super::pattern::Choice;
use super::pattern::SharedPattern;
use super::sequence::Sequences;
use super::standing::Evictions;
use super::targets::Targets;
use super::timeouts::Timeouts;
use element::steering::{OwnerWorker, Whose};
use packet::anno::Anno;
use shm::burst::LIST_CAPACITY;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use table::Random;
use table::TableError;
use table::flow::{FlowConfig, FlowTable, RecordId};

/// Most condemned mappings that wait for the next tick.
pub const SLACK: u32 = 4096;
/// Default capacity of a worker. The address space is reserved; memory is used as mappings are made.
pub const DEFAULT_CAPACITY: u32 = 1 << 20;

/// Why a packet got no mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Refusal {
    /// The input makes none.
    NoMapping = 0,
    /// No port (or address) is left.
    PortExhausted = 1,
    /// The table is full of guaranteed mappings.
    TableFull = 2,
    /// The replies would be those of another mapping, which is condemned.
    Conflict = 3,
    /// The mapping's output does not exist.
    NoSuchOutput = 4,
}

/// Names of the refusals, by number.
pub const REFUSALS: &[&str] =
    &["no-mapping", "port-exhausted", "table-full", "mapping-conflict", "no-such-output"];

/// The most mappings and their number; rewriters may share it.
#[derive(Debug)]
pub struct Budget {
    /// The most.
    pub limit: AtomicU32,
    /// Those in use.
    pub used: AtomicU32,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { limit: AtomicU32::new(i32::MAX as u32), used: AtomicU32::new(0) }
    }
}

/// An input of a rewriter.
pub struct Input {
    /// What it does with packets that have no mapping.
    pub spec: Spec,
    /// Live mappings that it made.
    pub count: u32,
    /// Flows that got no mapping.
    pub failures: u64,
}

/// The arguments of a rewriter.
pub struct Settings {
    /// Which packets are of one flow.
    pub kind: Kind,
    /// The rewriter's flat name.
    pub name: String,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// The longest time between searches for expired mappings; 0 for never.
    pub reap_interval_ns: u64,
    /// Give an internal endpoint one external endpoint, whatever it talks to (RFC 4787 REQ-1).
    pub endpoint_independent: bool,
    /// The annotation whose value replies get.
    pub reply_anno: Option<Anno>,
    /// Number the mappings, for the aggregate annotations of their packets.
    pub sets_aggregate: bool,
    /// Let anybody talk to an external endpoint (RFC 4787 section 5).
    pub open_filter: bool,
    /// Seed of hashes and of ports chosen at random.
    pub seed: u64,
    /// Mappings that the table must hold.
    pub capacity: u32,
    /// The worker that owns them, if there are several.
    pub owner_worker: Option<OwnerWorker>,
}

/// The state of the walk over the records.
#[derive(Default, Debug)]
pub struct Reaper {
    /// When it last continued.
    pub(super) last_ns: Option<u64>,
    /// Records that may be looked at, not used yet; in nanoseconds times records.
    pub(super) credit: u128,
    /// Mappings that are due by their own numbers, in the walk's order, while a flow cache is asked for some
    /// of them.
    pub(super) due: Vec<RecordId>,
}

/// The packets of a burst that may have found mappings while one of them makes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// None.
    Nobody,
    /// Some; the packet may wait for them.
    MayWaitFor,
    /// Some, and the packet cannot wait.
    Unknown,
}

/// What a new flow becomes, once that is chosen.
struct Chosen {
    key: Key,
    choice: Choice,
    external: FlowId,
}

/// The mappings.
pub struct Mappings {
    pub(super) settings: Settings,
    pub(super) flows: FlowTable<2>,
    pub(super) inputs: Vec<Input>,
    pub(super) budget: Arc<Budget>,
    pub(super) endpoints: Option<Endpoints>,
    pub(super) reaper: Reaper,
    pub(super) targets: Targets,
    /// Whether a mapping may end another one, as it was at the last tick, or true.
    pub(super) ends_others: bool,
    pub(super) evictions: Evictions,
    pub(super) now_ns: u64,
    pub(super) others: Others,
    /// Whether the last packet has to wait for the others, and what was chosen for it already.
    waits: bool,
    chosen: Option<Chosen>,
    /// The mapping that a new one replaces.
    pub(super) leaving: Option<RecordId>,
    /// The lines of one that was replaced.
    pub(super) replaced: Option<[u64; 2]>,
    /// Whether flow caches have merged all that they counted.
    pub(super) is_merged: bool,
    pub(super) condemned: Vec<RecordId>,
    /// Lines that packets of this burst use, while one of them makes a mapping in a full table.
    pub(super) in_use: Vec<u64>,
    pub(super) held: HeldLines,
    pub(super) patterns: Vec<SharedPattern>,
    pub(super) sequences: Sequences,
    refusals: VecDeque<Refusal>,
    random: Random,
}

/// The result of another element's lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappingEntry {
    /// What the flow becomes.
    pub to: FlowId,
    /// Output port.
    pub output: u8,
    /// Whether it is a flow of replies.
    pub is_reply: bool,
    /// Value for the reply annotation.
    pub reply_anno: u8,
}

impl Mappings {
    /// The outputs by which packets of an input usually leave. Flows that it makes mappings for leave by
    /// their forward output. Replies come by the inputs that make no mappings, and by those whose flows go
    /// another way; where all inputs make mappings, by those that did not make theirs; by the only input of a
    /// rewriter with one. `None` where all of that says nothing.
    pub fn usual_outputs(&self, input: usize) -> Option<Vec<usize>> {
        let Input { spec, .. } = self.inputs.get(input)?;
        let own = spec.mapping_outputs();
        let all_make = self.inputs.iter().all(|input| !input.spec.mapping_outputs().is_empty());
        let others = self.inputs.iter().enumerate().filter(|(at, _)| *at != input || self.inputs.len() == 1);
        let goes_elsewhere = |outputs: &Outputs| own.iter().all(|own| own.forward != outputs.forward);
        let replies = others
            .flat_map(|(_, input)| input.spec.mapping_outputs())
            .filter(|outputs| all_make || goes_elsewhere(outputs));
        let forward = own.iter().map(|outputs| outputs.forward);
        let all = forward.chain(replies.map(|outputs| outputs.reply)).chain(spec.passes_to());
        let all: Vec<usize> = all.map(usize::from).collect();
        (!all.is_empty()).then_some(all)
    }

    /// No mappings.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(settings: Settings, inputs: Vec<Spec>, budget: Arc<Budget>) -> Result<Mappings, TableError> {
        let mut random = Random::new(settings.seed);
        let config = FlowConfig {
            record_bytes: RECORD_BYTES,
            capacity: settings.capacity.clamp(1, (1 << 29) - SLACK) + SLACK,
            seed: random.bits(),
            ..FlowConfig::default()
        };
        let endpoints = match settings.endpoint_independent {
            true => Some(Endpoints::new(config.capacity, random.bits())?),
            false => None,
        };
        Ok(Mappings {
            flows: FlowTable::new(&config)?,
            inputs: inputs.into_iter().map(|spec| Input { spec, count: 0, failures: 0 }).collect(),
            budget,
            endpoints,
            reaper: Reaper::default(),
            targets: Targets::default(),
            ends_others: true,
            evictions: Evictions::new(config.capacity as usize),
            now_ns: 0,
            others: Others::Nobody,
            waits: false,
            chosen: None,
            leaving: None,
            replaced: None,
            is_merged: false,
            condemned: Vec::with_capacity(SLACK as usize),
            in_use: Vec::with_capacity(LIST_CAPACITY),
            held: HeldLines::default(),
            patterns: vec![],
            sequences: Sequences::default(),
            refusals: VecDeque::new(),
            random,
            settings,
        })
    }

    /// Address of the line that a key leads to; makes the mapping if there is none. 0 if it is refused:
    /// [`Mappings::next_refusal`] returns the reason then, except for inputs that pass packets on.
    pub fn find_or_make(&mut self, key: Key, args: &[u64], now_ns: u64) -> u64 {
        let found = self.flows.find_address(&key);
        if found != 0 {
            return found;
        }
        self.now_ns = now_ns;
        let kind = self.settings.kind;
        let (input, reply_anno) = match (kind, args) {
            (Kind::Address, [input, dst, anno @ ..]) => {
                let reply = FlowId { dst: *dst as u32, ..FlowId::default() };
                let found = self.flows.find_address(&kind.key(reply, 0, true));
                if found != 0 {
                    return found;
                }
                (*input, anno.first())
            }
            (_, [input, anno @ ..]) => (*input, anno.first()),
            _ => return 0,
        };
        let anno = reply_anno.map_or(0, |anno| *anno as u8);
        match self.make(key, input as usize, anno) {
            Ok(address) => address,
            Err(_) if self.waits => 0,
            Err(refusal) => {
                if let Some(input) = self.inputs.get_mut(input as usize) {
                    input.failures += u64::from(refusal != Refusal::NoMapping);
                    if input.spec.passes_to().is_none() {
                        self.refusals.push_back(refusal);
                    }
                }
                0
            }
        }
    }

    /// Why the next of the refused packets was refused.
    pub fn next_refusal(&mut self) -> Refusal {
        self.refusals.pop_front().unwrap_or(Refusal::NoMapping)
    }

    /// Whether the last packet has to wait until those before it have left the program.
    pub(super) fn take_waits(&mut self) -> bool {
        std::mem::take(&mut self.waits)
    }

    /// Lets the packet wait, if it may, for a decision that depends on what others store, or takes a mapping from them.
    pub(super) fn wait_for_others(&mut self) -> Result<(), Refusal> {
        self.waits = self.others == Others::MayWaitFor;
        if self.waits { Err(Refusal::NoMapping) } else { Ok(()) }
    }

    fn make(&mut self, key: Key, input: usize, reply_anno: u8) -> Result<u64, Refusal> {
        let kind = self.settings.kind;
        let (flow, protocol, is_reply) = kind.read(key);
        if is_reply {
            // An echo reply without a request.
            return Err(Refusal::NoMapping);
        }
        if self.settings.open_filter
            && let Some(address) = self.admit(key, flow, protocol, reply_anno)?
        {
            return Ok(address);
        }
        let spec = &mut self.inputs.get_mut(input).ok_or(Refusal::NoMapping)?.spec;
        match spec {
            Spec::Drop | Spec::Pass(_) => return Err(Refusal::NoMapping),
            Spec::Named(..) => spec.resolve(&self.settings.name),
            _ => {}
        }
        let chosen = match self.chosen.take() {
            Some(chosen) if chosen.key == key => chosen,
            other => {
                self.give_back(other, protocol);
                self.choose(key, input)?
            }
        };
        let record = match self.insert(key, &chosen.choice, input, protocol, reply_anno) {
            Ok(record) => record,
            Err(_) if self.waits => {
                self.chosen = Some(chosen);
                return Err(Refusal::NoMapping);
            }
            Err(refusal) => {
                self.give_back(Some(chosen), protocol);
                return Err(refusal);
            }
        };
        self.hold(record, key, chosen.external, &chosen.choice, input as u8, protocol);
        self.end_leaving();
        Ok(self.flows.record_ptr(record) as u64)
    }

    /// Chooses what a new flow becomes.
    fn choose(&mut self, key: Key, input: usize) -> Result<Chosen, Refusal> {
        let Mappings { inputs, flows, endpoints, random, settings, .. } = self;
        let kind = settings.kind;
        let (flow, protocol, _) = kind.read(key);
        let spec = &mut inputs.get_mut(input).ok_or(Refusal::NoMapping)?.spec;
        let is_free = |to: FlowId| flows.find(&kind.key(to.reversed(), protocol, true)).is_none();
        let request = Request { flow, kind, protocol, exclusive: endpoints.is_some(), is_free: &is_free };
        let choice = match endpoints {
            Some(endpoints) => endpoints.choose(spec, &request, input as u8, random),
            None => spec.choose(&request, random),
        };
        let mut choice = choice.ok_or(Refusal::PortExhausted)?;
        if kind == Kind::Address && choice.to.dst != 0 {
            return Err(Refusal::NoMapping);
        }
        let hairpin = endpoints.as_ref().and_then(|endpoints| endpoints.inside_of(choice.to, protocol));
        let external = choice.to;
        if let Some(inside) = hairpin {
            // RFC 4787 REQ-9: the peer is behind this translator, too, and must see the external address.
            (choice.to.dst, choice.to.dport) = (inside.address, inside.port);
            choice.outputs.forward = inside.reply;
        }
        Ok(Chosen { key, choice, external })
    }

    /// Returns the value of a pattern that was taken for a flow without a mapping.
    fn give_back(&mut self, chosen: Option<Chosen>, protocol: u8) {
        let Some(Chosen { choice, external, .. }) = chosen else { return };
        if let Some(pattern) = choice.pattern.filter(|_| choice.takes_value)
            && let Ok(mut pattern) = pattern.lock()
        {
            pattern.release(external, protocol, self.endpoints.is_some());
        }
    }

    /// Records what a mapping uses: its endpoint and its pattern's value.
    fn hold(
        &mut self,
        record: RecordId,
        key: Key,
        external: FlowId,
        choice: &Choice,
        input: u8,
        protocol: u8,
    ) {
        let kind = self.settings.kind;
        let address = self.flows.record_ptr(record) as u64;
        let (flow, ..) = kind.read(key);
        let number = choice.pattern.as_ref().map(|pattern| {
            let known = self.patterns.iter().position(|known| Arc::ptr_eq(known, pattern));
            let number = known.unwrap_or_else(|| {
                self.patterns.push(pattern.clone());
                self.patterns.len() - 1
            });
            if let Ok(mut pattern) = pattern.lock() {
                pattern.note_made(&kind.key(choice.to.reversed(), protocol, true));
            }
            number as u16
        });
        let stored = number.map_or(0, |number| u64::from(number) + 1);
        self.flows.store(address, usize::from(at::PATTERN), 2, stored);
        if let Some(endpoints) = &mut self.endpoints {
            let Outputs { forward, reply } = choice.outputs;
            let inside = Inside { address: flow.src, port: flow.sport, forward, reply, input };
            let endpoint = endpoints.hold(flow, external, protocol, inside, number);
            if let (Some(home), true) =
                (&self.settings.owner_worker, endpoint != 0 && self.settings.open_filter)
            {
                home.claim_owner(Whose::Endpoint(external.src.into(), external.sport, protocol));
            }
            self.flows.store(address, usize::from(at::ENDPOINT), 8, endpoint);
        }
    }

    /// Makes the mapping of a packet from outside to an open external endpoint, as if the internal endpoint
    /// had sent first.
    fn admit(&mut self, key: Key, flow: FlowId, protocol: u8, anno: u8) -> Result<Option<u64>, Refusal> {
        let Some(endpoints) = &self.endpoints else { return Ok(None) };
        let Some(inside) = endpoints.inside_of(flow, protocol) else { return Ok(None) };
        let forward = FlowId { src: inside.address, sport: inside.port, dst: flow.src, dport: flow.sport };
        let forward_key = self.settings.kind.key(forward, protocol, false);
        let outputs = Outputs { forward: inside.forward, reply: inside.reply };
        let choice = Choice { to: flow.reversed(), outputs, pattern: None, takes_value: false };
        let record = self.insert(forward_key, &choice, usize::from(inside.input), protocol, anno)?;
        self.hold(record, forward_key, choice.to, &choice, inside.input, protocol);
        self.end_leaving();
        Ok(Some(self.flows.find_address(&key)))
    }

    /// The flow that packets of a line's direction are rewritten to.
    pub(super) fn target(&self, line: u64) -> FlowId {
        let ports = self.flows.load(line, usize::from(at::PORTS), 4) as u32;
        let to = FlowId::new(self.flows.load(line, usize::from(at::PAIR), 8), ports);
        if self.settings.kind != Kind::Ping {
            return to;
        }
        // The identifier is in the low half in both directions.
        let is_reply = self.flows.load(line, usize::from(at::IS_REPLY), 1) != 0;
        if is_reply { to } else { FlowId { sport: to.dport, dport: 0, ..to } }
    }

    /// The mapping of a flow, for other elements. `reply` is whether the flow is one of replies, if the flow
    /// itself does not show it.
    pub fn entry(&self, flow: FlowId, protocol: u8, reply: bool) -> Option<MappingEntry> {
        let kind = self.settings.kind;
        let line = match kind {
            Kind::Ping if protocol != packet::view::protocol::ICMP => return None,
            Kind::Address => {
                let from = FlowId { src: flow.src, ..FlowId::default() };
                let back = FlowId { dst: flow.dst, ..FlowId::default() };
                match self.flows.find_address(&kind.key(from, 0, false)) {
                    0 => self.flows.find_address(&kind.key(back, 0, true)),
                    line => line,
                }
            }
            _ => self.flows.find_address(&kind.key(flow, protocol, reply)),
        };
        if line == 0 {
            return None;
        }
        let get = |at: u16| self.flows.load(line, usize::from(at), 1) as u8;
        let mut to = self.target(line);
        if kind == Kind::Address {
            let keep = self.flows.load(line, usize::from(at::KEEP_MASK), 8);
            to = FlowId::new(flow.pair() & keep | to.pair(), flow.ports());
        } else if kind == Kind::Pair {
            to = FlowId::new(to.pair(), flow.ports());
        }
        let is_reply = get(at::IS_REPLY) != 0;
        Some(MappingEntry { to, output: self.output_of(line), is_reply, reply_anno: get(at::REPLY_ANNO) })
    }
}
