//! Throughput over several instances of an NF: figure 16 of the NetVM paper (IEEE TNSM 2015, section V.E).
//!
//! An L3 forwarder runs as one, two, three, … instances. Packets are steered to them by both policies of `steer`:
//! `least-filled`, as in the paper, by the number of queued packets, and `flow`. Packets arrive as fast as the worker
//! takes them (closed loop). There is a figure for each policy, with the packets a second of each instance and their
//! sum.

use super::lab::{Case, Effort, Lab};
use super::live::{LiveChain, Setting, Watched};
use super::script::Script;
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure, Series, Skipped};
use crate::machine::Machine;
use crate::start::failed;
use crate::trial::Sample;
use std::path::{Path, PathBuf};

/// The instances of the experiment's own chain: L3 forwarding, as in the paper.
const FORWARDER: &str = "FromDevice(0) -> CheckIPHeader(14) -> StaticIPLookup(198.18.0.0/16 192.0.2.1 0, \
                         198.19.0.0/16 192.0.2.2 0) -> DecIPTTL -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03) \
                         -> ToDevice(1);";
/// Flows of the experiment's own traffic: enough for nearly equal shares of the buckets.
const FLOWS: u32 = 10_000;
/// With `least-filled`, how far an instance's share may be from the mean, as a part of it.
const EVEN: f64 = 0.25;
/// With `flow`, where the hash of a flow selects its instance: how far a share may be from the mean.
const HASHED: f64 = 0.5;

/// What to measure, and how often.
#[derive(Clone)]
pub struct SteeringOptions {
    /// The most instances.
    pub most: usize,
    /// Measurements of each number of instances.
    pub repeats: usize,
    /// Length of a measurement, in seconds.
    pub seconds: f64,
    /// Whether instances run in processes of their own; otherwise as elements of this process.
    pub processes: bool,
    /// A user's chain, and the NF that gets several instances: the first NF of the chain where it is `None`.
    pub chain: Option<(PathBuf, Option<String>)>,
    /// How chains run.
    pub setting: Setting,
}

/// Measures both ways of steering, a figure for each.
///
/// # Errors
/// When a user's chain cannot run.
pub fn steering(
    options: &SteeringOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Figure>, BenchError> {
    let (script, nf) = of_options(options)?;
    // A user's NF runs as the chain file says.
    let processes = !script.runs_as_elements(&nf)?;
    let options = &SteeringOptions { processes, ..options.clone() };
    let effort = Effort { rounds: options.repeats, seconds: options.seconds, ..Effort::FULL };
    let mut lab = Lab::new(effort, Path::new(""), progress);
    ["least-filled", "flow"].into_iter().map(|by| of_policy(by, &script, &nf, options, &mut lab)).collect()
}

/// The chain, and the name of the NF that gets several instances.
fn of_options(options: &SteeringOptions) -> Result<(Script, String), BenchError> {
    let Some((path, nf)) = &options.chain else {
        let runs = match options.setting.other_cores() {
            _ if !options.processes => "runs = \"modular\"".into(),
            cores if cores.is_empty() => "runs = \"process\"".into(),
            cores => format!("runs = \"process\"\ncores = {cores:?}"),
        };
        let text = format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = {FLOWS}, size = \"64\" }} }}\n\
             out = {{ discard = true }}\n[nf.nf]\n{runs}\ninline = '''{FORWARDER}'''\n"
        );
        return Ok((Script::new(text), "nf".into()));
    };
    let script = Script::of_file(path)?;
    let known = script.nfs()?;
    let nf = match nf {
        Some(nf) => nf.clone(),
        None => known.first().cloned().ok_or_else(|| failed(format!("{} has no NFs", path.display())))?,
    };
    // Reports an unknown NF before any measurement.
    Ok((script.with(&nf, &[])?, nf))
}

fn of_policy(
    by: &str,
    script: &Script,
    nf: &str,
    options: &SteeringOptions,
    lab: &mut Lab,
) -> Result<Figure, BenchError> {
    let most = options.most.max(1);
    let cases = (1..=most).map(|count| {
        Case::new(format!("{count} instances"), move |_| several(by, script, nf, count, options))
    });
    let mut figure = lab.sweep(sheet(by, nf, options), cases);
    let alone = figure.skipped.first().filter(|skipped| skipped.what == "1 instances");
    if let Some(Skipped { why, .. }) = alone {
        return Err(BenchError::BadChain { message: why.clone() });
    }
    figure.series.sort_by_key(|series| series.name == "total");
    let bound = if by == "flow" { HASHED } else { EVEN };
    figure.expected = (2..=most).filter_map(|count| evenness(&figure.series, count, bound)).collect();
    Ok(figure)
}

fn sheet(by: &str, nf: &str, options: &SteeringOptions) -> Figure {
    Figure {
        name: if by == "flow" { "netvm-steering-flow".into() } else { "netvm-steering".into() },
        title: format!("Packets of each instance, steer = \"{by}\""),
        about: format!(
            "Packets a second that each instance of `{nf}` was given, and their sum: {} from memory as fast as they are \
             taken, {}.",
            if options.chain.is_some() { "the chain's traffic" } else { "64-byte frames" },
            if options.processes {
                "instances in processes"
            } else {
                "instances as elements of this process"
            },
        ),
        source: Some("NetVM (IEEE TNSM 2015), figure 16".into()),
        command: command(by, options),
        x: Axis::linear("instances", ""),
        y: Axis::linear("throughput", "Mpps"),
        settings: vec![
            ("steer".into(), by.into()),
            ("repeats".into(), options.repeats.to_string()),
            ("seconds".into(), options.seconds.to_string()),
            ("burst".into(), options.setting.burst.to_string()),
        ],
        notes: notes(options),
        ..Figure::default()
    }
}

fn notes(options: &SteeringOptions) -> Vec<String> {
    let mut notes = vec![
        "Closed loop: packets are there whenever they are fetched, and wait where instances do not keep up."
            .to_string(),
    ];
    let cores = Machine::look().cores.len();
    if options.processes && cores < options.most + 1 {
        notes.push(format!(
            "{cores} cores for the packet thread and up to {} instances: those share cores, so that more instances are \
             no faster here. The paper has two cores for each VM.",
            options.most
        ));
    }
    notes
}

fn command(by: &str, options: &SteeringOptions) -> String {
    let chain = match &options.chain {
        Some((path, Some(nf))) => format!(" {} --nf {nf}", path.display()),
        Some((path, None)) => format!(" {}", path.display()),
        None => String::new(),
    };
    let (most, repeats, seconds) = (options.most, options.repeats, options.seconds);
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
fn several(
    by: &str,
    script: &Script,
    nf: &str,
    count: usize,
    options: &SteeringOptions,
) -> Result<Vec<Sample>, BenchError> {
    let script = match count {
        1 => script.without(nf, &["instances", "steer"])?,
        _ => script.with(nf, &[("instances", (count as i64).into()), ("steer", by.into())])?,
    };
    // One has all; the element that steers counts for several.
    let given = |chain: &LiveChain| match count {
        1 => Ok(vec![]),
        _ => chain.read(&format!("{nf}/steer.packets")).and_then(|text| counts(&text)),
    };
    let watched = LiveChain::watched(&script, &options.setting, options.seconds, given)?;
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
    use crate::figure::Point;

    #[test]
    fn instances_share_packets_evenly() {
        let setting = Setting { slots: 4_096, ..Setting::default() };
        let options =
            SteeringOptions { most: 3, repeats: 1, seconds: 0.05, processes: false, chain: None, setting };
        let figures = steering(&options, &mut |_| {}).expect("figures");
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
    fn uneven_shares_are_told() {
        let of = |share| Series::own("instance", vec![Point::single(2.0, share)]);
        assert!(evenness(&[of(1.0), of(1.2)], 2, 0.25).is_some_and(|even| even.holds));
        assert!(evenness(&[of(1.0), of(3.0)], 2, 0.25).is_some_and(|even| !even.holds));
        assert!(evenness(&[of(0.0), of(0.0)], 2, 0.25).is_none());
    }
}
