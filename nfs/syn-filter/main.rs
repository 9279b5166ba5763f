//! Protects TCP servers from connections that are not completed, and from sources that send too fast.

mod services;
mod source_state;

use millrace_nfs::configuration::read;
use millrace_nfs::{Clock, Flows, Prefix, SECOND_NS, pass_each, tcp_flags};
use nf::{Batch, Link, Nf, Options};
use packet::view::{Tcp, protocol, tcp};
use packet::{Access, FlowKey, parse};
use services::{HalfOpen, Service};
use source_state::{Limits, SourceState};

millrace_nfs::numbered! { REASONS from 1:
    HALF_OPEN "half-open-limit", BLOCKED "blocked-source", TOO_FAST "source-too-fast", MALFORMED "malformed",
}

millrace_nfs::numbered! { COUNTERS from 0:
    PASSED "passed", SYNS "syns", COMPLETED "completed", NOW_HALF_OPEN "half-open", TIMED_OUT "timed-out",
    SOURCES_BLOCKED "sources-blocked", UNDER_ATTACK "destinations-under-attack", NOT_TRACKED "not-tracked",
}

struct Filter {
    /// The protected servers; all if empty.
    protects: Vec<Prefix>,
    timeout_ns: u64,
    trust_ns: u64,
    limits: Limits,
    /// Connections of which only the SYN was received.
    pending: Flows<Service>,
    half_open: HalfOpen,
    sources: Flows<SourceState>,
    clock: Clock,
}

impl Filter {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Filter, String> {
        read(config, |keys| {
            millrace_nfs::check_across(keys, interfaces);
            let protects = keys.list("protect", str::parse);
            let half_open = HalfOpen::new(keys.integer("half-open", 1..=1 << 20, 128) as u32);
            let timeout_ns = keys.integer("timeout-s", 1..=600, 5) * SECOND_NS;
            let trust_ns = keys.integer("trust-s", 1..=86_400, 600) * SECOND_NS;
            let limits = Limits::new(
                keys.integer("source-syns-per-s", 0..=10_000_000, 100),
                keys.integer("source-packets-per-s", 0..=1_000_000_000, 0),
                keys.integer("block-s", 0..=86_400, 60) * SECOND_NS,
            );
            // Both are read before a table is made: without memory for one, the other key would count as
            // unknown.
            let [connections, sources] =
                ["connections", "sources"].map(|key| keys.integer(key, 1..=1 << 24, 65_536) as u32);
            let (pending, sources) = (Flows::new(connections)?, Flows::new(sources)?);
            let clock = Clock::default();
            Ok(Filter { protects, timeout_ns, trust_ns, limits, pending, half_open, sources, clock })
        })?
    }

    /// Whether a packet is passed on; else a drop reason.
    fn judge(&mut self, packet: &impl Access, now_ns: u64, link: &mut Link) -> Result<(), usize> {
        let layers = parse::frame(packet, 0);
        let Some(key) = FlowKey::of(packet, &layers) else { return Ok(()) };
        if self.protects.iter().any(|prefix| prefix.contains(key.src)) {
            self.refuses(packet, &key);
            return Ok(());
        }
        if !self.protects.is_empty() && !self.protects.iter().any(|prefix| prefix.contains(key.dst)) {
            return Ok(());
        }
        let trans = layers.trans.filter(|_| !layers.is_fragment);
        let flags = trans.map_or(Some(0), |trans| tcp_flags(packet, key.protocol, trans, layers.end));
        let flags = flags.ok_or(MALFORMED)?;
        let opens = flags & (tcp::SYN | tcp::ACK) == tcp::SYN;
        let trusted = self.check_source(&key, opens, now_ns, link)?;
        if opens {
            self.open(&key, trusted, now_ns, link)
        } else {
            self.go_on(&key, flags, now_ns, link);
            Ok(())
        }
    }

    /// Checks whether a source may send; returns whether it completed a connection lately.
    fn check_source(
        &mut self,
        key: &FlowKey,
        opens: bool,
        now_ns: u64,
        link: &mut Link,
    ) -> Result<bool, usize> {
        let own = SourceState::key(key.src);
        let due_ns = now_ns + self.limits.memory_ns(self.trust_ns);
        let found = self.sources.find(&own).or_else(|| {
            // In a full table, the stored source that expires first makes room.
            self.sources.insert_evicting(&own, SourceState::default(), due_ns).0
        });
        let Some((id, source)) = found.and_then(|id| Some((id, self.sources.get(id)?))) else {
            return Ok(false);
        };
        let decision = source.check(&self.limits, opens, now_ns);
        let trusted = source.is_trusted(now_ns);
        self.sources.keep_until(id, due_ns);
        match decision {
            source_state::Decision::Fine => Ok(trusted),
            source_state::Decision::Blocked => Err(BLOCKED),
            source_state::Decision::TooFast => {
                link.count(SOURCES_BLOCKED, 1);
                Err(TOO_FAST)
            }
        }
    }

    /// Handles a SYN.
    fn open(&mut self, key: &FlowKey, trusted: bool, now_ns: u64, link: &mut Link) -> Result<(), usize> {
        link.count(SYNS, 1);
        // A retransmitted SYN is no further connection.
        if self.pending.find(key).is_some() {
            return Ok(());
        }
        let service = (key.dst, key.dst_port);
        if self.half_open.is_full(&service) && !trusted {
            return Err(HALF_OPEN);
        }
        match self.pending.insert(key, service, now_ns + self.timeout_ns) {
            Some(_) => self.half_open.open(service),
            None => link.count(NOT_TRACKED, 1),
        }
        Ok(())
    }

    /// Handles all other packets of a client: an ACK completes its connection, a RST ends it.
    fn go_on(&mut self, key: &FlowKey, flags: u8, now_ns: u64, link: &mut Link) {
        if flags & (tcp::ACK | tcp::RST) == 0 {
            return;
        }
        let Some(service) = self.pending.find(key).and_then(|id| self.pending.remove(id)) else { return };
        self.half_open.close(service);
        if flags & tcp::RST == 0 {
            link.count(COMPLETED, 1);
            if let Some(id) = self.sources.find(&SourceState::key(key.src))
                && let Some(source) = self.sources.get(id)
            {
                source.trust_until(now_ns + self.trust_ns);
            }
        }
    }

    /// Handles packets of a server: a RST ends a half-open connection.
    fn refuses(&mut self, packet: &impl Access, key: &FlowKey) {
        let layers = parse::frame(packet, 0);
        let (Some(trans), protocol::TCP) = (layers.trans, key.protocol) else { return };
        let Ok(facts) = Tcp::at(trans).check(packet, layers.end) else { return };
        if facts.flags & tcp::RST != 0
            && let Some(service) = self.pending.find(&key.reversed()).and_then(|id| self.pending.remove(id))
        {
            self.half_open.close(service);
        }
    }

    fn age(&mut self, now_ns: u64, link: &mut Link) {
        let (half_open, mut timed_out) = (&mut self.half_open, 0);
        self.pending.expire(now_ns, 256, |service| {
            half_open.close(service);
            timed_out += 1;
        });
        self.sources.expire(now_ns, 64, drop);
        link.count(TIMED_OUT, timed_out);
        link.set(NOW_HALF_OPEN, self.pending.len() as u64);
        link.set(UNDER_ATTACK, self.half_open.full());
    }
}

impl Nf for Filter {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        pass_each(batch, |packet, link| self.judge(packet, now_ns, link).map(|()| PASSED));
        self.age(now_ns, batch.link());
    }

    fn idle(&mut self, link: &mut Link) {
        self.age(self.clock.now_ns(), link);
    }
}

fn main() -> Result<(), nf::NfError> {
    nf::run_with(&Options::new("syn-filter").reasons(&REASONS).counters(&COUNTERS), |link| {
        Filter::read(link.config(), link.interfaces())
    })
}
