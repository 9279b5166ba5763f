//! Insertion and removal of mappings: the records' content, full tables, conflicts of reply keys.

use super::ageing::Age;
use super::flow::{Key, Kind, LINE_BYTES, at, deltas};
use super::input::Spec;
use super::mappings::{Mappings, Others, Refusal, SLACK};
use super::pattern::Choice;
use super::targets::Targets;
use element::steering::Whose;
use ir::Room;
use std::sync::atomic::Ordering::Relaxed;
use table::TableError;
use table::flow::RecordId;

/// Mappings whose memory is prefetched together before they are removed.
const TOGETHER: usize = 32;

impl Mappings {
    /// Stores a new mapping.
    pub(super) fn insert(
        &mut self,
        key: Key,
        choice: &Choice,
        input: usize,
        protocol: u8,
        reply_anno: u8,
    ) -> Result<RecordId, Refusal> {
        self.make_room(protocol)?;
        let kind = self.settings.kind;
        let (flow, ..) = kind.read(key);
        let reply_key = kind.key(choice.to.reversed(), protocol, true);
        let primary = kind.primary_key(key, reply_key);
        let record = self.flows.insert(&primary).map_err(|_| Refusal::TableFull)?;
        if self.flows.len() == 1 {
            self.targets = Targets::default();
        }
        self.targets.add(flow, choice.to);
        self.evictions.count_creation(record);
        if let Err(refusal) = self.take_reply_key(record, reply_key) {
            self.flows.remove(record);
            return Err(refusal);
        }
        let lines = [
            (flow, choice.to, choice.outputs.forward),
            (choice.to.reversed(), flow.reversed(), choice.outputs.reply),
        ];
        let first = self.flows.record_ptr(record) as u64;
        for (number, (from, to, output)) in lines.into_iter().enumerate() {
            let line = first + (number * LINE_BYTES) as u64;
            let (ip, l4) = deltas(kind, from, to);
            let ports = if kind == Kind::Ping { u32::from(to.sport | to.dport) } else { to.ports() };
            let mut put = |at: u16, bytes: u8, value: u64| {
                self.flows.store(line, usize::from(at), bytes, value);
            };
            put(at::PAIR, 8, to.pair());
            put(at::PORTS, 4, u64::from(ports));
            put(at::IP_DELTA, 2, u64::from(ip));
            put(at::L4_DELTA, 2, u64::from(l4));
            put(at::OUTPUT, 1, u64::from(output));
            put(at::IS_REPLY, 1, number as u64);
            put(at::PROTOCOL, 1, u64::from(protocol));
            put(at::REPLY_ANNO, 1, u64::from(reply_anno));
            put(at::INPUT, 1, input as u64);
            if kind == Kind::Address {
                put(at::KEEP_MASK, 8, if number == 0 { 0xffff_ffff } else { 0xffff_ffff << 32 });
            }
        }
        self.flows.store(first, usize::from(at::LAST_NS), 8, self.now_ns);
        if let Some(home) = &self.settings.owner_worker {
            kind.shared_by(flow).into_iter().for_each(|whose| home.claim_owner(whose));
            home.claim_owner(kind.replies_to(choice.to, protocol));
        }
        if self.settings.sets_aggregate {
            self.number_mapping(record);
        }
        self.budget.used.fetch_add(1, Relaxed);
        if let Some(input) = self.inputs.get_mut(input) {
            input.count += 1;
        }
        Ok(record)
    }

    /// Makes a reply key lead to a new mapping. The mapping that had the key is removed, as in Click; if it is that
    /// mapping's primary key, the new mapping is refused.
    fn take_reply_key(&mut self, record: RecordId, reply_key: Key) -> Result<(), Refusal> {
        match self.flows.insert_alias(record, &reply_key, LINE_BYTES) {
            Ok(()) => Ok(()),
            Err(TableError::KeyExists) => {
                let old = self.flows.find(&reply_key).ok_or(Refusal::Conflict)?;
                self.wait_for_others()?;
                self.note_going(old);
                let is_alias = self.flows.remove_alias(old, &reply_key);
                self.end(old);
                if !is_alias {
                    return Err(Refusal::Conflict);
                }
                self.flows.insert_alias(record, &reply_key, LINE_BYTES).map_err(|_| Refusal::TableFull)
            }
            Err(_) => Err(Refusal::TableFull),
        }
    }

    /// Whether a new mapping of an input, or of any, may have the replies of another one, which goes; `None` where none
    /// ever does. Flows that are kept as they are find each other's mappings. Inputs that choose what is free take
    /// nobody's replies. Where one input spreads flows over servers, two of them become the same only if they went to
    /// different addresses.
    pub(super) fn may_take_reply_keys(&self, input: Option<u64>) -> Option<bool> {
        let keeps = |spec: &Spec| matches!(spec, Spec::Keep(_) | Spec::Drop | Spec::Pass(_));
        let all = |is: &dyn Fn(&Spec) -> bool| self.inputs.iter().all(|input| is(&input.spec));
        let input = input.and_then(|input| self.inputs.get(usize::try_from(input).ok()?));
        let chooses_free = input.map_or_else(|| all(&Spec::chooses_free), |input| input.spec.chooses_free());
        if chooses_free || all(&keeps) {
            return None;
        }
        let makers = self.inputs.iter().filter(|it| !matches!(it.spec, Spec::Drop | Spec::Pass(_))).count();
        let is_simple = makers == 1 && self.settings.kind == Kind::Ports && self.endpoints.is_none();
        let has_taken = self.inputs.iter().any(|it| it.count > 0 && !it.spec.chooses_free());
        Some(has_taken && (!is_simple || self.targets.may_become_one()))
    }

    /// Whether a new mapping needs the place of another one. Those that go at the next tick do not count.
    pub(super) fn is_full(&self) -> bool {
        let used = self.budget.used.load(Relaxed).saturating_sub(self.condemned.len() as u32);
        used >= self.budget.limit.load(Relaxed) || self.flows.len() >= self.flows.capacity()
    }

    /// How many mappings can be made until one has to go.
    pub(super) fn room(&self) -> Room {
        let limit = self.budget.limit.load(Relaxed);
        let used = self.budget.used.load(Relaxed).saturating_sub(self.condemned.len() as u32);
        let left = (limit.saturating_sub(used) as usize).min(self.flows.capacity() - self.flows.len());
        let whole = (limit as usize).min(self.flows.capacity());
        Room { left, whole, ends_others: self.ends_others }
    }

    /// Notes the lines of mappings that packets of this burst have found, which have not stored their time
    /// yet: none of them is evicted for what it stored last.
    pub(super) fn note_in_use(&mut self, lines: impl Iterator<Item = u64>) {
        if self.is_full() {
            self.in_use.extend(lines);
        }
    }

    /// Chooses the mapping that makes room for a new one of a protocol, if the table is full. It leaves once the new one
    /// is there.
    fn make_room(&mut self, protocol: u8) -> Result<(), Refusal> {
        (self.leaving, self.replaced) = (None, None);
        if !self.is_full() {
            return Ok(());
        }
        if self.condemned.len() >= SLACK as usize {
            return Err(Refusal::TableFull);
        }
        self.leaving = Some(self.victim(protocol)?);
        Ok(())
    }

    /// Removes the mapping that makes room for a new one.
    pub(super) fn end_leaving(&mut self) {
        if let Some(record) = self.leaving.take().filter(|record| self.flows.is_live(*record)) {
            self.evictions.count += 1;
            self.replaced = Some(self.lines(record));
            self.end(record);
        }
    }

    /// Removes a mapping: now, or, where packets of the burst may have found it, at the next tick.
    fn end(&mut self, record: RecordId) {
        match self.others {
            Others::Unknown => self.condemn(record),
            _ => self.remove(record),
        }
    }

    /// The line of the flow that made a mapping, and that of its replies.
    pub(super) fn lines(&self, record: RecordId) -> [u64; 2] {
        let first = self.flows.record_ptr(record) as u64;
        [first, first + LINE_BYTES as u64]
    }

    /// Marks a mapping to be removed at the next tick.
    fn condemn(&mut self, record: RecordId) {
        if !self.is_condemned(record) {
            let [_, second] = self.lines(record);
            self.flows.store(second, usize::from(at::CONDEMNED), 1, 1);
            self.condemned.push(record);
        }
    }

    /// Whether a mapping goes at the next tick.
    pub(super) fn is_condemned(&self, record: RecordId) -> bool {
        let [_, second] = self.lines(record);
        self.flows.load(second, usize::from(at::CONDEMNED), 1) != 0
    }

    /// Housekeeping between bursts.
    pub fn tick(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let condemned = std::mem::take(&mut self.condemned);
        for part in condemned.chunks(TOGETHER) {
            self.flows.fetch_for_removal(part);
            for &record in part {
                // A handler may have removed it, and the record may belong to a new mapping.
                if self.is_condemned(record) {
                    self.remove(record);
                }
            }
        }
        self.condemned = condemned;
        self.condemned.clear();
        self.reap();
        self.flows.maintain();
        self.ends_others = self.may_take_reply_keys(None).is_some();
        if let Some(endpoints) = &mut self.endpoints {
            endpoints.tick();
        }
    }

    /// Removes a mapping; only while no packet has found it.
    pub(super) fn remove(&mut self, record: RecordId) {
        if !self.flows.is_live(record) {
            return;
        }
        let address = self.flows.record_ptr(record) as u64;
        let kind = self.settings.kind;
        let Age { input, protocol, .. } = self.age(record);
        self.note_going(record);
        self.forget_sequence(record);
        let get = |at: u16, bytes: u8| self.flows.load(address, usize::from(at), bytes);
        let (pattern, endpoint) = (get(at::PATTERN, 2) as usize, get(at::ENDPOINT, 8));
        let to = self.target(address);
        if let Some(pattern) = pattern.checked_sub(1).and_then(|number| self.patterns.get(number))
            && let Ok(mut pattern) = pattern.lock()
        {
            pattern.note_gone(&kind.key(to.reversed(), protocol, true));
            if self.endpoints.is_none() {
                pattern.release(to, protocol, false);
            }
        }
        if let Some(endpoints) = &mut self.endpoints
            && let Some((number, source)) = endpoints.release(endpoint)
            && let Some(pattern) = self.patterns.get(usize::from(number))
            && let Ok(mut pattern) = pattern.lock()
        {
            pattern.release(source, protocol, true);
        }
        if let Some(home) = &self.settings.owner_worker {
            if self.settings.open_filter && endpoint != 0 {
                home.forget(Whose::Endpoint(to.src.into(), to.sport, protocol));
            }
            // The last key is the primary one, of the flow that made the mapping.
            let key = self.flows.keys_of(record).last().map_or([0; 2], |(key, _)| key);
            let (from, ..) = kind.read(key);
            kind.shared_by(from).into_iter().for_each(|whose| home.forget(whose));
            home.forget(kind.replies_to(to, protocol));
        }
        self.flows.remove(record);
        self.budget.used.fetch_sub(1, Relaxed);
        if let Some(input) = self.inputs.get_mut(usize::from(input)) {
            input.count -= 1;
        }
    }

    /// Removes all mappings, or those that an input made.
    pub fn clear(&mut self, input: Option<usize>) {
        let records: Vec<RecordId> = self.flows.iter().collect();
        for record in records {
            if input.is_none_or(|input| usize::from(self.age(record).input) == input) {
                self.remove(record);
            }
        }
        self.condemned.retain(|record| self.flows.is_live(*record));
    }
}
