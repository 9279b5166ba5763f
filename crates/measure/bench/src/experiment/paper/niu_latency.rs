//! Latency as Niu et al. measure it: over the sending rate, with batches, and over the length of a chain.

use super::curves::crowded;
use crate::BenchError;
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::figure::{Axis, Figure};
use crate::load::Batching;
use crate::start::RunOptions;

/// Frames of 128 bytes, as in the paper.
const SIZE: u16 = 128;
/// Sending rates, in packets a second. 100 and 1e6 are the paper's two lowest rates; those between them are
/// ours.
const RATES: [f64; 8] = [100.0, 1e3, 1e4, 1e5, 1e6, 2e6, 4e6, 8e6];
/// The rate of the paper's figure 6.
const CHAIN_RATE: f64 = 2e6;

/// How a ring hands out frames, and how many the worker processes at a time.
struct PollingMode {
    name: &'static str,
    batching: Batching,
    burst: usize,
    polls: bool,
}

const fn polling_mode(name: &'static str, batching: Batching, burst: usize, polls: bool) -> PollingMode {
    PollingMode { name, batching, burst, polls }
}

const TIMER_OF_100_US: Batching = Batching::Fixed { frames: 32, wait_ns: 100_000 };
const TIMER_OF_1_MS: Batching = Batching::Fixed { frames: 256, wait_ns: 1_000_000 };

const POLLING_MODES: [PollingMode; 5] = [
    polling_mode("adaptive", Batching::Adaptive, 64, false),
    polling_mode("adaptive, polling", Batching::Adaptive, 64, true),
    polling_mode("one by one", Batching::Adaptive, 1, false),
    polling_mode("bursts of 32, timer of 100 µs", TIMER_OF_100_US, 32, false),
    polling_mode("bursts of 256, timer of 1 ms", TIMER_OF_1_MS, 256, false),
];

/// Figure 5: latency over the sending rate.
pub fn rate(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let rates: &[f64] = if lab.effort.is_miniature() { &[1e3, 1e5] } else { &RATES };
    let cases = POLLING_MODES.iter().map(|mode| {
        Case::new(mode.name, move |lab| {
            let path = lab.row(&[Nf::L3], Mode::CACHED)?;
            let run = RunOptions {
                burst: mode.burst,
                polls: mode.polls,
                ..lab.run_options(Mode::CACHED, Some(SIZE))
            };
            let loads: Vec<(f64, f64)> = rates.iter().map(|rate| (*rate, *rate)).collect();
            trial::latencies(lab, &path, (&run, mode.batching), mode.name, &loads)
        })
    });
    let sheet = lab.sheet(
        "niu-latency-rate",
        "Latency over the sending rate, and batching",
        "L3 forwarding of 128-byte frames, open loop. Adaptive: the chain takes what is there, and waits for nothing. Bursts \
         with a timer: frames are handed out when so many wait, or the first has waited for so long, as the paper's \
         dataplanes do.",
        (Axis::log("sending rate", "packets per second"), Axis::log("latency", "µs")),
    );
    let mut figure = lab.sweep(sheet, cases);
    let lowest = rates.first().copied().unwrap_or_default();
    for fixed in POLLING_MODES.iter().filter(|mode| mode.batching != Batching::Adaptive) {
        let values =
            (figure.at("adaptive, median", lowest), figure.at(&format!("{}, median", fixed.name), lowest));
        let told = format!("at {lowest} packets a second frames wait less than in {} (µs)", fixed.name);
        figure.expect(values, &told, |adaptive, fixed| adaptive < fixed);
    }
    figure.add_note(trial::open_loop(lab.effort.latency_s));
    figure.notes.extend([
        "A frame counts from when it was due, whether the chain was ready or not (corrected for coordinated omission). Where \
         a mode does not carry a rate, frames wait in the ring or are lost, and latency is that of a full ring."
            .to_string(),
        "A packet thread that finds nothing for a while sleeps: at the lowest rates that is most of a frame's time. One that \
         polls (millrace run --poll) takes a core for itself."
            .into(),
        "The paper states that BESS takes an order of magnitude longer at 100 packets a second than at 1 Mpps and more, \
         because packets wait for a burst or a timer; it gives no numbers."
            .into(),
    ]);
    Ok(vec![figure])
}

/// Figure 6: latency over the length of a chain, at 2 Mpps.
pub fn chain(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let load = if lab.effort.is_miniature() { 1e4 } else { CHAIN_RATE };
    let rows: [&[Nf]; 4] =
        [&[Nf::L3], &[Nf::FIREWALL], &[Nf::FIREWALL, Nf::L3], &[Nf::FIREWALL, Nf::L3, Nf::L2]];
    let names = ["L3FWD", "firewall", "firewall, L3FWD", "firewall, L3FWD, L2FWD"];
    let modes = [Mode::CACHED, Mode::MODULAR, Mode::PROCESS];
    let cases = rows.into_iter().enumerate().flat_map(|(x, nfs)| modes.map(|mode| (x, nfs, mode)));
    let cases = cases.map(|(x, nfs, mode)| {
        Case::new(format!("{}, {}", names.get(x).copied().unwrap_or_default(), mode.name), move |lab| {
            let path = lab.row(nfs, mode)?;
            let run = lab.run_options(mode, Some(SIZE));
            trial::latencies(lab, &path, (&run, Batching::Adaptive), mode.name, &[(x as f64, load)])
        })
    });
    let sheet = lab.sheet(
        "niu-latency-chain",
        "Latency over the length of a chain",
        &format!("128-byte frames at {} Mpps, open loop.", load / 1e6),
        (Axis::names("chain", names), Axis::log("latency", "µs")),
    );
    let mut figure = lab.sweep(sheet, cases);
    let of = |mode: Mode| figure.at(&format!("{}, median", mode.name), 3.0);
    let values = (of(Mode::CACHED), of(Mode::PROCESS));
    let told = "three NFs in one function take less than in processes (µs)";
    figure.expect(values, told, |fused, processes| fused < processes);
    figure.add_note(trial::open_loop(lab.effort.latency_s));
    figure.paper("BESS", "Niu et al., section 5.2, between two servers on 10 GbE", [(2.0, 34.326)]);
    figure.add_note(
        "The paper's figures are averages, with the way between two servers and their NICs in them. Of BESS it states 34.326 µs for two \
         NFs, and 45.982 µs for both of them alone, added up.",
    );
    crowded(lab, &mut figure, 3);
    Ok(vec![figure])
}
