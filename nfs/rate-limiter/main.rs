//! Limits the rate of each source: excess packets are dropped (policing), or delayed (shaping).

mod bucket;

use bucket::{Bucket, Limit};
use millrace_nfs::configuration::{Keys, read};
use millrace_nfs::{Clock, Flows, Prefix, SECOND_NS};
use nf::{Batch, Held, Link, Nf, Options, Packet};
use packet::{Access, FlowKey, parse};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;

millrace_nfs::numbered! { REASONS from 1:
    TOO_FAST "too-fast", QUEUE_FULL "queue-full", TOO_MANY "too-many-sources",
}

millrace_nfs::numbered! { COUNTERS from 0:
    PASSED "passed", UNLIMITED "passed-unlimited", DELAYED "delayed", HELD "held", SOURCES "sources",
    FORGOTTEN "sources-forgotten",
}

struct RateLimiter {
    settings: Settings,
    sources: Flows<Bucket>,
    /// The times at which packets leave, the earliest first, each with a number: packets of a source leave in
    /// their order.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    held: HashMap<u64, Held>,
    next: u64,
    clock: Clock,
}

#[derive(Default)]
struct Settings {
    /// Whether excess packets are held and not dropped.
    shapes: bool,
    /// Bits of the source address that select the bucket.
    bits: (u8, u8),
    /// The longest delay.
    most_delay_ns: u64,
    most_sources: u32,
    /// Limits by the prefix of the source, the longest first.
    limits: Vec<(Prefix, Option<Limit>)>,
    default: Option<Limit>,
}

fn limit(keys: &mut Keys<'_>) -> Option<Limit> {
    let rate = keys.integer("rate-bps", 0..=1_000_000_000_000, 0);
    let burst = keys.integer("burst-bytes", 64..=1 << 30, 15_000);
    (rate > 0).then(|| Limit::new(rate, burst))
}

impl Settings {
    fn read(config: &[u8], interfaces: &[String]) -> Result<Settings, String> {
        read(config, |keys| {
            millrace_nfs::check_across(keys, interfaces);
            let mut limits = keys.tables("class", |keys| {
                let from: Prefix = keys.required("from", str::parse)?;
                Some((from, limit(keys)))
            });
            limits.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
            let default = limit(keys);
            if default.is_none() && limits.iter().all(|(_, limit)| limit.is_none()) {
                keys.mistake("nothing is limited: set `rate-bps` here or in a [[class]]");
            }
            Settings {
                shapes: keys.choice("mode", &[("police", false), ("shape", true)], false),
                bits: (
                    keys.integer("source-bits", 0..=32, 32) as u8,
                    keys.integer("source-bits6", 0..=128, 64) as u8,
                ),
                most_delay_ns: keys.integer("most-delay-ms", 1..=10_000, 100) * 1_000_000,
                most_sources: keys.integer("sources", 1..=1 << 24, 65_536) as u32,
                limits,
                default,
            }
        })
    }

    /// The limit of a source, and the key of its bucket.
    fn limit_of(&self, source: IpAddr) -> Option<(Limit, FlowKey)> {
        let of_class =
            self.limits.iter().find(|(prefix, _)| prefix.contains(source)).map(|(_, limit)| *limit);
        let limit = of_class.unwrap_or(self.default)?;
        let src = Prefix::of(source, if source.is_ipv4() { self.bits.0 } else { self.bits.1 }).address();
        Some((limit, FlowKey { src, dst: src, protocol: 0, src_port: 0, dst_port: 0 }))
    }
}

impl RateLimiter {
    fn start(link: &mut Link) -> Result<RateLimiter, String> {
        let settings = Settings::read(link.config(), link.interfaces())?;
        Ok(RateLimiter {
            sources: Flows::new(settings.most_sources)?,
            settings,
            due: BinaryHeap::new(),
            held: HashMap::new(),
            next: 0,
            clock: Clock::default(),
        })
    }

    /// The time at which a packet may leave; or a drop reason.
    fn when(&mut self, packet: &Packet, now_ns: u64, link: &mut Link) -> Result<u64, usize> {
        let key = FlowKey::of(packet, &parse::frame(packet, 0));
        let Some((limit, key)) = key.and_then(|key| self.settings.limit_of(key.src)) else {
            link.count(UNLIMITED, 1);
            return Ok(now_ns);
        };
        let sources = &mut self.sources;
        let id =
            sources.find(&key).or_else(|| sources.insert(&key, Bucket::default(), now_ns)).ok_or(TOO_MANY)?;
        let bucket = sources.get(id).ok_or(TOO_MANY)?;
        let most_delay_ns = if self.settings.shapes { self.settings.most_delay_ns } else { 0 };
        let at = bucket.take(limit, packet.len() as u64, now_ns, most_delay_ns);
        // A full bucket is equal to a new one.
        let full_ns = bucket.full_ns();
        sources.keep_until(id, full_ns.max(now_ns));
        at.ok_or(if self.settings.shapes { QUEUE_FULL } else { TOO_FAST })
    }

    /// Sends the packets that are due.
    fn release(&mut self, now_ns: u64, link: &mut Link) {
        while let Some(Reverse((at, number))) = self.due.peek().copied()
            && at <= now_ns
        {
            self.due.pop();
            if let Some(held) = self.held.remove(&number) {
                let packet = link.release(held);
                link.pass(packet);
                link.count(DELAYED, 1);
            }
        }
        link.set(HELD, self.held.len() as u64);
        if let Some(Reverse((at, _))) = self.due.peek() {
            link.wake_at(self.clock.instant(*at));
        }
    }
}

impl Nf for RateLimiter {
    fn batch(&mut self, batch: &mut Batch<'_>) {
        let now_ns = self.clock.now_ns();
        self.release(now_ns, batch.link());
        while let Some(packet) = batch.next() {
            match self.when(&packet, now_ns, batch.link()) {
                Ok(at) if at <= now_ns => {
                    batch.link().count(PASSED, 1);
                    batch.link().pass(packet);
                }
                Ok(at) if batch.link().can_hold() => {
                    self.due.push(Reverse((at, self.next)));
                    self.held.insert(self.next, batch.hold(packet));
                    self.next += 1;
                }
                Ok(_) => batch.drop_for(packet, QUEUE_FULL),
                Err(reason) => batch.drop_for(packet, reason),
            }
        }
        let mut forgotten = 0;
        self.sources.expire(now_ns.saturating_sub(SECOND_NS), 64, |_| forgotten += 1);
        batch.link().count(FORGOTTEN, forgotten);
        batch.link().set(SOURCES, self.sources.len() as u64);
    }

    fn idle(&mut self, link: &mut Link) {
        self.release(self.clock.now_ns(), link);
    }
}

fn main() -> Result<(), nf::NfError> {
    nf::run_with(&Options::new("rate-limiter").reasons(&REASONS).counters(&COUNTERS), RateLimiter::start)
}
