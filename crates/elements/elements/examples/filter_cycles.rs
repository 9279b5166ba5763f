//! Prints what `IPFilter` costs: cycles per packet of the element alone, as machine code, for lists of
//! 1 to 8,550 rules, median over rounds, on frames of 64 bytes (with FCS) that lie in rules chosen at
//! random; and how long a list takes to configure.
//!
//! `filter_cycles [RULES TRACE ...]` reads filter sets and traces in ClassBench's formats instead of
//! making sets up (a trace may be gzip'd). Nothing else should run beside it.

mod cycles;

use cycles::{Feed, ROUNDS, Running, WARM_UP, cycles, deciles, frame};
use elements::filter::classbench::configuration;
use std::io::Read;
use std::time::Instant;
use table::Random;
use table::acl::classbench::{Filter, parse_filters, parse_trace};
use table::acl::generate::{Profile, filters, headers};
use table::acl::{Rule, Schema};

const BURST: usize = 32;
const BURSTS_PER_ROUND: usize = 4096;

/// A filter, and the milliseconds that it took to configure.
fn filter(config: &str) -> (Running, f64) {
    let start = Instant::now();
    let running = Running::new("IPFilter", config, 1);
    (running, start.elapsed().as_secs_f64() * 1e3)
}

/// Prints what the element costs a packet.
fn measure(label: &str, (running, made_ms): &mut (Running, f64), keys: &[[u32; 5]]) {
    let mut feed = Feed::new(keys.iter().map(|key| frame(*key)).collect(), BURST, |_, _| ());
    let (mut passed, mut seen, mut costs) = (0, 0, vec![]);
    for round in 0..ROUNDS + WARM_UP {
        let mut bursts = Vec::with_capacity(BURSTS_PER_ROUND);
        for _ in 0..BURSTS_PER_ROUND {
            feed.next();
            let start = cycles();
            running.run(&mut feed.vector, &feed.list, 1);
            bursts.push((cycles() - start) as f64);
            (passed, seen) = (passed + running.emitted(), seen + BURST);
        }
        if round >= WARM_UP {
            // The median burst: what the machine does beside shows in a few bursts of a round.
            costs.push(deciles(&mut bursts).0 / BURST as f64);
        }
    }
    let (median, low, high) = deciles(&mut costs);
    println!(
        "{label:<30} {made_ms:>8.1} ms {:>6} headers {median:7.1} ({low:.1} to {high:.1}), {}% allowed",
        keys.len(),
        passed * 100 / seen,
    );
}

fn text(path: &str) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
        return text;
    }
    String::from_utf8(bytes).expect("text")
}

/// Every second rule allows.
fn config(filters: &[Filter]) -> String {
    configuration(filters, |at| if at % 2 == 0 { "allow" } else { "deny" })
}

/// Headers in rules chosen at random.
fn inside(filters: &[Filter], count: usize) -> Vec<[u32; 5]> {
    let schema = Schema::ipv4_five_tuple();
    let rules: Vec<Rule> = filters.iter().map(|filter| filter.rule().expect("a rule")).collect();
    let keys = headers(&schema, &rules, count, 0.0, 2);
    keys.iter().map(|key| std::array::from_fn(|at| key[at])).collect()
}

/// A firewall as people write it.
const TEN: &str =
    "deny src net 10.0.0.0/8, deny src net 192.168.0.0/16, deny ip frag, deny tcp && dst port 23,
    allow tcp && dst port 80 or 443, allow udp && dst port 53, allow icmp type echo,
    deny udp && dst port 137-139, allow tcp opt ack, allow dst net 18.26.0.0/16, deny all";

/// Headers of clients: TCP to web servers, some DNS, some others.
fn clients(count: usize) -> Vec<[u32; 5]> {
    let mut random = Random::new(5);
    let header = |_| {
        let (src, dst) = (random.within(0x0b00_0000, 0xbfff_ffff), random.within(0x1200_0000, 0x1fff_ffff));
        let sport = random.within(1024, 65535);
        let (proto, dport) = match random.below(10) {
            0..6 => (6, 443),
            6 => (6, 80),
            7 | 8 => (17, 53),
            _ => (17, random.within(1, 65535)),
        };
        [src, dst, sport, dport, proto]
    };
    (0..count).map(header).collect()
}

fn main() {
    let per_ns = cycles::per_ns();
    println!(
        "cycles per packet, {per_ns:.3} GHz, bursts of {BURST}; median of {ROUNDS} rounds, first to ninth decile"
    );
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        for headers in [1_000, 65_536] {
            measure("allow all", &mut filter("allow all"), &clients(headers));
            measure("a firewall of 10 rules", &mut filter(TEN), &clients(headers));
            for count in [1, 10, 32, 33, 100, 1_000, 8_550] {
                let set = filters(Profile::Acl, count, 1);
                let label = format!("{count} rules");
                measure(&label, &mut filter(&config(&set)), &inside(&set, headers));
            }
        }
        return;
    }
    for pair in arguments.chunks(2) {
        let [rules, trace] = pair else { panic!("arguments come in pairs: RULES TRACE") };
        let set = parse_filters(&text(rules)).expect("filters");
        let trace = parse_trace(&text(trace)).expect("a trace");
        let keys: Vec<[u32; 5]> = trace.iter().map(|header| header.key).collect();
        let label = format!("{} ({})", rules.rsplit('/').next().unwrap_or(""), set.len());
        let mut running = filter(&config(&set));
        measure(&label, &mut running, &keys);
        let program = running.0.element.handlers().read("steps", &[]).unwrap_or_default();
        println!("    {}", program.replace('\n', "; "));
    }
}
