//! Throughput over the number of NFs that share a virtual device: figure 6 of the MVMP paper (SAC 2018,
//! section 4.1).
//!
//! Up to five NFs open one device, and each receives all of its packets: as copies of its own (`inline`), as
//! read-only copies (`observe`), or in place (`tap`). NFs with copies of their own hold the source back.
//! Observers and taps miss the packets that they are too slow for. So there are two rates: that of the
//! packets through the device, and that of the packets which the slowest NF sees.

use super::lab::{Case, Lab};
use super::live::{LiveChain, Watched, out_of};
use super::script::Script;
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure};
use crate::start::failed;
use crate::trial::Sample;
use crate::units::Rate;

/// The frame size of the paper's second part, in bytes with the FCS; the text says that it fills the line.
pub const SATURATING: u32 = 256;

/// What NFs get of the device's packets: its name here, and how the chain file calls it.
type Shared = (&'static str, &'static str);

const COPIES: Shared = ("copies", "inline");
const ALL: [Shared; 3] = [COPIES, ("observers", "observe"), ("taps", "tap")];

/// Measures the rates of up to `most` NFs, with a figure for each frame size, in bytes with FCS. Without the
/// program that is the NF everything is skipped.
pub fn taps(lab: &mut Lab, sizes: &[u32], most: usize) -> Vec<Figure> {
    sizes.iter().map(|size| of_size(lab, *size, most)).collect()
}

fn of_size(lab: &mut Lab, size: u32, most: usize) -> Figure {
    let all = ALL.into_iter().flat_map(|shared| (1..=most.max(1)).map(move |count| (shared, count)));
    let cases = all.map(|(shared, count)| {
        Case::new(format!("{count} NFs as {}", shared.0), move |lab| once(lab, shared, count, size))
    });
    let sheet = sheet(lab, size, most);
    let mut figure = lab.sweep(sheet, cases);
    figure.expected = expected(&figure, most);
    if size == SATURATING {
        let line = Rate::Bits(10e9).frames(f64::from(size)) / 1e6;
        let points = (1..=most).map(|count| (count as f64, line));
        let place =
            "MVMP, section 4.1: it fills 10 GbE at 256 bytes (the rate follows from that); Xeon E5-2650 v2";
        figure.paper("MVMP", place, points);
    }
    figure
}

fn sheet(lab: &Lab, size: u32, most: usize) -> Figure {
    let (repeats, seconds) = (lab.effort.rounds, lab.effort.seconds);
    Figure {
        name: if size == 64 { "mvmp-duplicate".into() } else { format!("mvmp-duplicate-{size}") },
        title: format!("NFs that share a virtual device, {size}-byte frames"),
        about: "Packets a second over the number of NFs that open one device, each in a process: with copies of their own, \
                as observers of copies, and as taps of packets where they lie. Frames come from memory as fast as they are \
                taken."
            .into(),
        source: Some("MVMP (SAC 2018), figure 6".into()),
        command: format!("millrace bench taps --sizes {size} --most {most} --repeats {repeats} --seconds {seconds}"),
        x: Axis::linear("NFs", ""),
        y: Axis::linear("throughput", "Mpps"),
        settings: vec![
            ("frame size".into(), format!("{size} bytes with FCS")),
            ("repeats".into(), repeats.to_string()),
            ("seconds".into(), seconds.to_string()),
            ("burst".into(), lab.setting().burst.to_string()),
        ],
        notes: notes(lab, most),
        ..Figure::default()
    }
}

fn notes(lab: &Lab, most: usize) -> Vec<String> {
    let mut notes = vec![
        "Closed loop: NFs with copies of their own hold the source back; those that only look miss what they have no room \
         for. What each sees is that of the NF which saw least. One NF alone gets no copies, but the packets."
            .to_string(),
    ];
    let cores = lab.machine.cores.len();
    if cores < most + 1 {
        notes.push(format!(
            "{cores} cores for the packet thread and up to {most} NFs, which share what is left; the paper has two \
             logical cores for its daemon and one for each NF."
        ));
    }
    notes
}

fn expected(figure: &Figure, most: usize) -> Vec<Expectation> {
    let at = |name: &str, count: usize| figure.at(name, count as f64);
    let mut all = vec![];
    if let (Some(one), Some(many)) = (at("copies, seen by each", 1), at("copies, seen by each", most))
        && most > 1
    {
        let told = format!(
            "with copies, {most} NFs get less than one, as in the paper: {many:.3} and {one:.3} Mpps"
        );
        all.push(Expectation::of_times(told, many < one));
    }
    if let (Some(copies), Some(taps)) = (at("copies, seen by each", most), at("taps, through", most)) {
        let told = format!("{most} taps let more through than {most} copies: {taps:.3} and {copies:.3} Mpps");
        all.push(Expectation::of_times(told, taps > copies));
    }
    all
}

/// A chain in which `count` NFs open one device.
fn script(lab: &Lab, shared: Shared, count: usize, size: u32) -> Result<Script, BenchError> {
    let mut keys = lab.relay().map_err(failed)?;
    keys.insert("interfaces".into(), vec!["0"].into());
    keys.insert("access".into(), shared.1.into());
    keys.extend(lab.nf_cores());
    let links: Vec<String> = (1..=count).map(|number| format!("shared -> [0]nf{number}")).collect();
    let mut text = format!(
        "links = {links:?}\n[ports]\nin = {{ traffic = {{ flows = 1000, size = \"{size}\" }} }}\n\
         [device.shared]\ndirect = \"in\"\n"
    );
    text.extend((1..=count).map(|number| format!("[nf.nf{number}]\n{keys}")));
    Ok(Script::new(text))
}

fn once(lab: &Lab, shared: Shared, count: usize, size: u32) -> Result<Vec<Sample>, BenchError> {
    // What came back of each, and what of that went by unseen.
    let seen = |chain: &LiveChain| -> Result<Vec<u64>, BenchError> {
        let of = |number: usize| {
            let element = format!("nf{number}/process");
            let missed = chain.read(&format!("{element}.missed"))?;
            let missed: u64 = missed.trim().parse().map_err(|_| failed(format!("`{missed}` is no count")))?;
            Ok(out_of(&chain.report(), &element).saturating_sub(missed))
        };
        (1..=count).map(of).collect()
    };
    let script = script(lab, shared, count, size)?;
    let watched = LiveChain::watched(lab, &script, seen)?;
    let Watched { before, after, window, disturbed } = watched;
    let least = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before)).min();
    let sample = |what: &str, packets: u64| Sample {
        series: format!("{}, {what}", shared.0),
        x: count as f64,
        y: window.per_second(packets) / 1e6,
        disturbed,
    };
    // With copies nothing goes through that not all see.
    let through = (shared != COPIES).then(|| sample("through", window.packets));
    Ok([sample("seen by each", least.unwrap_or(0))].into_iter().chain(through).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use std::path::Path;

    fn of_two(size: u32) -> Vec<Figure> {
        let mut tell = |_: &str| {};
        taps(&mut Lab::new(Effort::MINIATURE, Path::new(""), &mut tell), &[size], 2)
    }

    #[test]
    fn without_a_program_all_is_skipped() {
        let figures = of_two(64);
        assert!(figures[0].skipped.len() == 6 && figures[0].holds(), "{figures:#?}");
        assert!(figures[0].skipped[0].why.contains("no program"));
    }

    #[test]
    fn the_papers_rate_is_that_of_the_line() {
        let figure = &of_two(SATURATING)[0];
        assert_eq!(figure.name, "mvmp-duplicate-256");
        let rate = figure.series("MVMP").and_then(|paper| paper.at(1.0)).expect("there");
        assert!((rate - 4.529).abs() < 0.001, "{rate}");
    }
}
