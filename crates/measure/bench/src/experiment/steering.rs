//! Throughput over several instances of an NF: figure 16 of the NetVM paper (IEEE TNSM 2015, section V.E).
//!
//! An L3 forwarder runs as one, two, three, … instances. Packets are steered to them by both policies of
//! `steer`: `least-filled`, as in the paper, by the number of queued packets, and `flow`. Packets arrive as
//! fast as the worker takes them (closed loop). There is a figure for each policy, with the packets a second
//! of each instance and their sum. [`by_class`] has an NF in front that looks at protocols or at payloads,
//! and paints packets with the number of their instance.

use super::lab::{Case, Lab};
use super::live::{LiveChain, Watched};
use super::script::Script;
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure, Series, Skipped};
use crate::start::failed;
use crate::trial::Sample;
use std::path::Path;

/// The instances of the experiment's own chain: L3 forwarding, as in the paper.
const FORWARDER: &str = "FromDevice(0) -> CheckIPHeader(14) -> StaticIPLookup(198.18.0.0/16 192.0.2.1 0, \
                         198.19.0.0/16 192.0.2.2 0) -> DecIPTTL -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03) \
                         -> ToDevice(1);";
/// Flows of the experiment's own traffic: enough for nearly equal shares of the buckets.
const FLOWS: u32 = 10_000;
/// With `least-filled`, how far an instance's share may be from the mean, as a part of it.
const EVEN: f64 = 0.25;
/// The classes of packets that [`by_class`] steers by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClassOf {
    /// TCP, UDP, ICMP.
    Protocol,
    /// The first bytes of a UDP packet's payload.
    Payload,
}

/// The protocols of [`ClassOf::Protocol`], which are the most classes that it has.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "icmp"];

/// With `flow`, where the hash of a flow selects its instance: how far a share may be from the mean.
const HASHED: f64 = 0.5;

/// A user's chain, and the name of the NF that gets several instances: the chain's first one where it is
/// `None`.
type Chain<'a> = Option<(&'a Path, Option<&'a str>)>;

/// The chain to measure.
struct Steered<'a> {
    script: Script,
    /// The NF that gets several instances, and whether those run in processes of their own; otherwise they
    /// are elements of this process.
    nf: String,
    processes: bool,
    /// The most instances.
    most: usize,
    chain: Chain<'a>,
}

/// Measures both ways of steering with up to `most` instances, a figure for each way. Instances of the
/// experiment's own chain run in processes where there is a program to run them.
///
/// # Errors
/// When a user's chain cannot run.
pub fn steering(lab: &mut Lab, most: usize, chain: Chain) -> Result<Vec<Figure>, BenchError> {
    let (script, nf) = script(lab, chain)?;
    // A user's NF runs as the chain file says.
    let processes = !script.runs_as_elements(&nf)?;
    let steered = Steered { script, nf, processes, most, chain };
    ["least-filled", "flow"].into_iter().map(|by| of_policy(lab, by, &steered)).collect()
}

/// Measures steering by what a packet is: by its protocol (shallow inspection), and by its payload (deep
/// inspection). There are as many classes as instances, each with the same share of the packets.
///
/// # Errors
/// When a chain cannot run.
pub fn by_class(lab: &mut Lab, most: usize) -> Result<Vec<Figure>, BenchError> {
    [(ClassOf::Protocol, most.min(PROTOCOLS.len())), (ClassOf::Payload, most)]
        .into_iter()
        .map(|(class, most)| of_class(lab, class, most.max(1)))
        .collect()
}

fn of_class(lab: &mut Lab, class: ClassOf, most: usize) -> Result<Figure, BenchError> {
    let processes = lab.millrace.is_some();
    let with = |classes: usize| {
        let script = class.script(&own_runs(lab), classes);
        Steered { script, nf: "nf".into(), processes, most, chain: None }
    };
    let steered: Vec<Steered> = (1..=most).map(with).collect();
    let Some(last) = steered.last() else { return Err(failed("no instances")) };
    let (name, title, about) = match class {
        ClassOf::Protocol => (
            "netvm-steering-protocol",
            "Packets of each instance, by protocol",
            "An NF in front steers TCP, UDP and ICMP, which have the same share, to an instance each",
        ),
        ClassOf::Payload => (
            "netvm-steering-payload",
            "Packets of each instance, by payload",
            "An NF in front compares the first four bytes of UDP's payload with a pattern for each instance",
        ),
    };
    let sheet = sheet(lab, "paint", last);
    let about = format!("{} {about}.", sheet.about);
    let sheet = Figure { name: name.into(), title: title.into(), about, ..sheet };
    let cases = (1..).zip(&steered).map(|(count, steered)| {
        Case::new(format!("{count} instances"), move |lab| several(lab, "paint", steered, count))
    });
    let mut figure = lab.sweep(sheet, cases);
    figure.series.sort_by_key(|series| series.name == "total");
    figure.expected = (2..=most).filter_map(|count| evenness(&figure.series, count, EVEN)).collect();
    let (one, all) = (figure.at("total", 1.0), figure.at("total", most as f64));
    if most > 1 {
        figure.expect((one, all), &format!("{most} instances carry more than one (Mpps)"), |one, all| {
            all > one
        });
    }
    figure.add_note(match class {
        ClassOf::Protocol => "The paper states the same result by protocol type as by load, evenly balanced.",
        ClassOf::Payload => {
            "The paper states no result for deep inspection: its cost depends on what is computed for each packet."
        }
    });
    Ok(figure)
}

impl ClassOf {
    /// The chain with this many classes and instances: an NF that paints, and the one that has instances.
    fn script(self, runs: &str, classes: usize) -> Script {
        let traffic = |keys: &str| format!("{{ traffic = {{ flows = {FLOWS}, size = \"64\", {keys} }} }}");
        let pattern = |class: usize| format!("{:02x}", 0xa0 + class);
        let each = || 0..classes;
        let (ports, mut links, classify): (String, Vec<String>, String) = match self {
            ClassOf::Protocol => {
                let protocols = PROTOCOLS.get(..classes).unwrap_or(&PROTOCOLS);
                let shares: Vec<String> = protocols.iter().map(|protocol| format!("{protocol}:1")).collect();
                let ports = traffic(&format!("protocols = \"{}\"", shares.join(",")));
                let classify = format!(
                    "FromDevice(in) -> CheckIPHeader(OFFSET 14) -> class :: IPClassifier({});\n",
                    protocols.join(", ")
                );
                (format!("in = {ports}\n"), vec!["in -> [in]classify".into()], classify)
            }
            ClassOf::Payload => {
                let port = |class| {
                    format!("in{class} = {}\n", traffic(&format!("payload = \"0x{}\"", pattern(class))))
                };
                // Ethernet, IPv4 and UDP have 42 bytes.
                let rules: Vec<String> =
                    each().map(|class| format!("42/{}", pattern(class).repeat(4))).collect();
                let sources = each().map(|class| format!("FromDevice(in{class}) -> class;\n"));
                (
                    each().map(port).collect(),
                    each().map(|class| format!("in{class} -> [in{class}]classify")).collect(),
                    format!("class :: Classifier({});\n", rules.join(", ")) + &sources.collect::<String>(),
                )
            }
        };
        links.push("classify[out] -> [0]nf[1] -> out".into());
        let painted: String =
            each().map(|class| format!("class[{class}] -> Paint({class}) -> painted;\n")).collect();
        Script::new(format!(
            "links = {links:?}\n[ports]\n{ports}out = {{ discard = true }}\n[nf.classify]\nruns = \"modular\"\n\
             inline = '''{classify}painted :: ToDevice(out);\n{painted}'''\n[nf.nf]\n{runs}inline = '''{FORWARDER}'''\n"
        ))
    }
}

/// How the NF of the experiment's own chain runs: in a process, where there is a program for that.
fn own_runs(lab: &Lab) -> String {
    match lab.millrace {
        None => "runs = \"modular\"\n".into(),
        Some(_) => format!("runs = \"process\"\n{}", lab.nf_cores()),
    }
}

/// The chain, and the name of the NF that gets several instances.
fn script(lab: &Lab, chain: Chain) -> Result<(Script, String), BenchError> {
    let Some((path, nf)) = chain else {
        let keys = format!("{}inline = '''{FORWARDER}'''\n", own_runs(lab));
        return Ok((Script::of_nf(FLOWS, &keys), "nf".into()));
    };
    let script = Script::of_file(path)?;
    let known = script.nfs()?;
    let nf = match nf {
        Some(nf) => nf.to_string(),
        None => known.first().cloned().ok_or_else(|| failed(format!("{} has no NFs", path.display())))?,
    };
    // Reports an unknown NF before any measurement.
    Ok((script.with(&nf, &[])?, nf))
}

fn of_policy(lab: &mut Lab, by: &str, steered: &Steered) -> Result<Figure, BenchError> {
    let most = steered.most.max(1);
    let cases = (1..=most)
        .map(|count| Case::new(format!("{count} instances"), move |lab| several(lab, by, steered, count)));
    let sheet = sheet(lab, by, steered);
    let mut figure = lab.sweep(sheet, cases);
    let alone = figure.skipped.first().filter(|skipped| skipped.what == "1 instances");
    if let Some(Skipped { why, .. }) = alone {
        return Err(BenchError::BadText(why.clone()));
    }
    figure.series.sort_by_key(|series| series.name == "total");
    let bound = if by == "flow" { HASHED } else { EVEN };
    figure.expected = (2..=most).filter_map(|count| evenness(&figure.series, count, bound)).collect();
    Ok(figure)
}

fn sheet(lab: &Lab, by: &str, steered: &Steered) -> Figure {
    let Steered { nf, processes, chain, .. } = steered;
    Figure {
        name: if by == "flow" { "netvm-steering-flow".into() } else { "netvm-steering".into() },
        title: format!("Packets of each instance, steer = \"{by}\""),
        about: format!(
            "Packets a second that each instance of `{nf}` was given, and their sum: {} from memory as fast as they are \
             taken, {}.",
            if chain.is_some() { "the chain's traffic" } else { "64-byte frames" },
            if *processes { "instances in processes" } else { "instances as elements of this process" },
        ),
        source: Some("NetVM (IEEE TNSM 2015), figure 16".into()),
        command: command(lab, by, steered),
        x: Axis::linear("instances", ""),
        y: Axis::linear("throughput", "Mpps"),
        settings: vec![
            ("steer".into(), by.into()),
            ("repeats".into(), lab.effort.rounds.to_string()),
            ("seconds".into(), lab.effort.seconds.to_string()),
            ("burst".into(), lab.setting().burst.to_string()),
        ],
        notes: notes(lab, steered),
        ..Figure::default()
    }
}

fn notes(lab: &Lab, steered: &Steered) -> Vec<String> {
    let mut notes = vec![
        "Closed loop: packets are there whenever they are fetched, and wait where instances do not keep up."
            .to_string(),
    ];
    let cores = lab.machine.cores.len();
    if steered.processes && cores < steered.most + 1 {
        notes.push(format!(
            "{cores} cores for the packet thread and up to {} instances: those share cores, so that more instances are \
             no faster here. The paper has two cores for each VM.",
            steered.most
        ));
    }
    notes
}

fn command(lab: &Lab, by: &str, steered: &Steered) -> String {
    let chain = match steered.chain {
        Some((path, Some(nf))) => format!(" {} --nf {nf}", path.display()),
        Some((path, None)) => format!(" {}", path.display()),
        None => String::new(),
    };
    let (most, repeats, seconds) = (steered.most, lab.effort.rounds, lab.effort.seconds);
    let which = if by == "flow" { "  # the second figure" } else { "" };
    format!("millrace bench steering{chain} --most {most} --repeats {repeats} --seconds {seconds}{which}")
}

/// Whether each instance has a share within `bound` of the mean.
fn evenness(each: &[Series], count: usize, bound: f64) -> Option<Expectation> {
    let shares: Vec<f64> = each.iter().take(count).filter_map(|series| series.at(count as f64)).collect();
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    if mean <= 0.0 {
        return None;
    }
    let furthest = shares.iter().map(|share| (share - mean).abs() / mean).fold(0.0, f64::max);
    let told = format!(
        "each of {count} instances gets within {:.0} % of the mean: the furthest is {:.1} % off",
        bound * 100.0,
        furthest * 100.0
    );
    Some(Expectation::of_times(told, furthest <= bound))
}

/// Repeated measurements with `count` instances.
fn several(lab: &Lab, by: &str, steered: &Steered, count: usize) -> Result<Vec<Sample>, BenchError> {
    let Steered { script, nf, .. } = steered;
    let script = match count {
        1 => script.without(nf, &["instances", "steer"])?,
        _ => script.with(nf, &[("instances", (count as i64).into()), ("steer", by.into())])?,
    };
    // One has all; the element that steers counts for several.
    let given = |chain: &LiveChain| match count {
        1 => Ok(vec![]),
        _ => chain.read(&format!("{nf}/steer.packets")).and_then(|text| counts(&text)),
    };
    let watched = LiveChain::watched(lab, &script, given)?;
    let Watched { before, after, window, disturbed } = watched;
    let each: Vec<u64> = match count {
        1 => vec![window.packets],
        _ => after.iter().zip(&before).map(|(after, before)| after - before).collect(),
    };
    let sample = |series: String, packets: u64| Sample {
        series,
        x: count as f64,
        y: window.per_second(packets) / 1e6,
        disturbed,
    };
    let instances = (1..).zip(each).map(|(number, packets)| sample(format!("instance {number}"), packets));
    Ok(instances.chain([sample("total".into(), window.packets)]).collect())
}

/// Parses the handler `packets`: a line for each instance, with its name and its count.
fn counts(text: &str) -> Result<Vec<u64>, BenchError> {
    let number = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse().ok());
    let counted: Option<Vec<u64>> = text.lines().filter(|line| !line.trim().is_empty()).map(number).collect();
    counted.ok_or_else(|| failed(format!("`{text}` has no count for each instance")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use crate::figure::Point;

    #[test]
    fn instances_share_packets_evenly() {
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, Path::new(""), &mut tell);
        // Not pinned to a core: other tests run at the same time.
        lab.machine.cores.clear();
        let figures = steering(&mut lab, 3, None).expect("figures");
        assert_eq!(figures.len(), 2);
        for figure in &figures {
            assert!(figure.skipped.is_empty(), "{figure:#?}");
            assert_eq!(figure.series("total").map(|total| total.points.len()), Some(3));
            assert_eq!(figure.series("instance 3").map(|third| third.points.len()), Some(1));
            // The instances' counts are from the worker's own node counters, which are read a moment apart.
            let sum: f64 = figure.series.iter().take(3).filter_map(|series| series.at(3.0)).sum();
            let total = figure.series("total").and_then(|total| total.at(3.0)).expect("measured");
            assert!((sum / total - 1.0).abs() < 0.5, "{sum} of {total}");
            assert!(figure.holds() && figure.expected.len() == 2, "{:#?}", figure.expected);
        }
    }

    #[test]
    fn each_class_has_its_instance() {
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, Path::new(""), &mut tell);
        lab.machine.cores.clear();
        let figures = by_class(&mut lab, 4).expect("figures");
        let points = |figure: &Figure| figure.series("total").map_or(0, |total| total.points.len());
        let most: Vec<(&str, usize)> =
            figures.iter().map(|figure| (figure.name.as_str(), points(figure))).collect();
        assert_eq!(most, [("netvm-steering-protocol", 3), ("netvm-steering-payload", 4)]);
        for (figure, (_, most)) in figures.iter().zip(&most) {
            assert!(figure.skipped.is_empty(), "{figure:#?}");
            let even = format!("each of {most}");
            let even = figure.expected.iter().find(|one| one.sentence.contains(&even));
            assert!(even.is_some_and(|even| even.holds), "{:#?}", figure.expected);
        }
    }

    #[test]
    fn uneven_shares_are_told() {
        let of = |share| Series::own("instance", vec![Point::single(2.0, share)]);
        assert!(evenness(&[of(1.0), of(1.2)], 2, 0.25).is_some_and(|even| even.holds));
        assert!(evenness(&[of(1.0), of(3.0)], 2, 0.25).is_some_and(|even| !even.holds));
        assert!(evenness(&[of(0.0), of(0.0)], 2, 0.25).is_none());
    }
}
