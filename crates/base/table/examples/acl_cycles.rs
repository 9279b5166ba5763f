//! The speed of classification: `acl_cycles RULES TRACE [RULES TRACE ...]` reads filter sets and traces
//! in ClassBench's formats (a trace may be gzip'd); without arguments it generates sets.
//!
//! Each figure is the median of many passes over the trace, in bursts of 32 and of 256, with the fastest
//! and slowest of the middle nine tenths beside it. Each result is compared with a linear scan first.
//! Cycles are those of the time stamp counter, which has a fixed rate. With `ACL_STEPS` in the
//! environment, the nodes and rows on the packets' paths are printed too.

use std::error::Error;
use std::io::Read;
use std::time::Instant;

use table::acl::classbench::{Filter, parse_filters, parse_trace};
use table::acl::generate::{Profile, filters, headers};
use table::acl::{Classifier, Limits, MAX_DIMS, MISS, Rule, Schema, Steps, first_match};

/// Minimum number of passes over each trace.
const PASSES: usize = 101;

/// Minimum number of packets of a pass, so that it is long enough to be timed.
const LEAST_PACKETS: usize = 40_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tsc_ghz = testkit::cycles::per_ns();
    println!(
        "{:<22} {:>6} {:>9} {:>9} {:>6} {:>7} {:>6} {:>7} {:>23} {:>8} {:>8}",
        "set", "rules", "build ms", "KiB", "trees", "rows", "leaf", "burst", "Mpps (5%..95%)", "ns", "cycles"
    );
    let schema = Schema::ipv4_five_tuple();
    if arguments.is_empty() {
        for count in [4, 16, 32, 100, 1_000, 10_000] {
            for profile in [Profile::Acl, Profile::Firewall, Profile::Chain] {
                let rules = rules(&filters(profile, count, 1))?;
                let keys = headers(&schema, &rules, (count * 10).clamp(2_000, 100_000), 0.1, 2);
                report(&format!("{profile:?} {count}"), &rules, &keys, tsc_ghz)?;
            }
        }
        return Ok(());
    }
    if !arguments.len().is_multiple_of(2) {
        return Err("arguments come in pairs: RULES TRACE".into());
    }
    for pair in arguments.chunks(2) {
        let rules = rules(&parse_filters(&text(&pair[0])?).map_err(|e| listed(&pair[0], &e))?)?;
        let trace = parse_trace(&text(&pair[1])?).map_err(|e| listed(&pair[1], &e))?;
        let keys: Vec<[u32; MAX_DIMS]> = trace
            .iter()
            .map(|header| {
                let mut key = [0; MAX_DIMS];
                key[..5].copy_from_slice(&header.key);
                key
            })
            .collect();
        let name = pair[0].rsplit('/').next().unwrap_or("");
        report(name, &rules, &keys, tsc_ghz)?;
    }
    Ok(())
}

fn rules(filters: &[Filter]) -> Result<Vec<Rule>, Box<dyn Error>> {
    Ok(filters.iter().map(Filter::rule).collect::<Result<_, _>>()?)
}

fn listed<E: std::fmt::Display>(file: &str, errors: &[E]) -> Box<dyn Error> {
    let lines: Vec<String> = errors.iter().map(|error| format!("{file}: {error}")).collect();
    lines.join("\n").into()
}

fn text(path: &str) -> Result<String, Box<dyn Error>> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes)?;
    }
    Ok(text)
}

fn report(name: &str, rules: &[Rule], keys: &[[u32; MAX_DIMS]], tsc_ghz: f64) -> Result<(), Box<dyn Error>> {
    let schema = Schema::ipv4_five_tuple();
    let start = Instant::now();
    let classifier = Classifier::build(&schema, rules, Limits::default())?;
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let wrong =
        keys.iter().filter(|key| classifier.classify(&key[..]) != first_match(rules, &key[..5])).count();
    if wrong > 0 {
        return Err(format!("{name}: {wrong} answers differ from the linear scan").into());
    }
    let flat = keys.as_flattened();
    let mut steps = Steps::default();
    for key in keys {
        let _ = std::hint::black_box(classifier.classify_counting(&key[..], &mut steps));
    }
    if std::env::var_os("ACL_STEPS").is_some() {
        let each = |count: usize| count as f64 / keys.len() as f64;
        println!(
            "{name}: trees {:.2}, hash nodes {:.2}, rank nodes {:.2}, rows {:.2}; {:?}",
            each(steps.trees),
            each(steps.hash_nodes),
            each(steps.rank_nodes),
            each(steps.rows),
            classifier.shape()
        );
    }
    let shape = classifier.shape();
    for burst in [32usize, 256] {
        let list: Vec<u16> = (0..burst as u16).collect();
        let mut out = vec![MISS; burst];
        let repeat = LEAST_PACKETS.div_ceil(keys.len());
        let mut check = 0u64;
        let mut ns: Vec<f64> = (0..PASSES)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..repeat {
                    for part in flat.chunks(burst * MAX_DIMS) {
                        let count = part.len() / MAX_DIMS;
                        classifier.classify_batch(part, MAX_DIMS, &list[..count], &mut out);
                        check = check.wrapping_add(u64::from(out[0]));
                    }
                }
                start.elapsed().as_secs_f64() * 1e9 / (repeat * keys.len()) as f64
            })
            .collect();
        std::hint::black_box(check);
        ns.sort_by(f64::total_cmp);
        let at = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize];
        println!(
            "{name:<22} {:>6} {build_ms:>9.1} {:>9.1} {:>6} {:>7} {:>6} {burst:>7} {:>8.1} ({:>5.1}..{:>5.1}) {:>8.1} {:>8.1}",
            rules.len(),
            classifier.bytes() as f64 / 1024.0,
            shape.trees,
            shape.rows,
            shape.longest_leaf,
            1e3 / at(0.5),
            1e3 / at(0.95),
            1e3 / at(0.05),
            at(0.5),
            at(0.5) * tsc_ghz,
        );
    }
    Ok(())
}
