//! What NetVM's throughput grows with: packet memory and its pages, and ports.

use super::curves::line_gbps;
use crate::BenchError;
use crate::experiment::lab::trial;
use crate::experiment::lab::{BURST, Case, Lab, Mode, Nf, SLOTS};
use crate::experiment::live::{LiveChain, Watched, await_until};
use crate::experiment::script::Script;
use crate::figure::{Axis, Figure};
use crate::shape::Shape;
use crate::start::{RunOptions, failed};
use crate::units::counted;
use shm::descriptor::SLOT_BYTES;
use shm::packet_region::HugePages;
use std::time::Duration;

const MEMORY: &str = "NetVM, figure 10: Xeon X5650, 64-byte frames, huge pages";
const PORTS: &str = "NetVM, section V.B: Xeon E5-2697 v3 at 2.6 GHz, four 10 GbE ports, 12 cores";

/// The pages of packet memory, and their curves.
const PAGES: [(&str, HugePages); 2] =
    [("4 KiB pages", HugePages::Never), ("2 MiB pages", HugePages::Require)];
/// Slots that a measured chain keeps free for packets that are received: those in processing and in a
/// worker's cache.
const FREE: u32 = 2_048;
/// How long the queue may take to fill.
const FULL_IN: Duration = Duration::from_secs(20);

/// Bytes in a MiB.
const MIB: f64 = (1u64 << 20) as f64;

/// The chain of figure 10: a queue holds nearly all slots, so that packets are received into the slots that
/// were used longest ago, and L3 forwarding reads each packet as it comes out of the queue.
fn holding(slots: u32) -> Script {
    let room = slots - FREE;
    Script::of_nf(
        1_000,
        &format!(
            "runs = \"modular\"\ninline = '''FromDevice(0) -> hold :: Queue({room}) -> go :: Unqueue(BURST {BURST}, ACTIVE false)\n\
             -> CheckIPHeader(OFFSET 14) -> DecIPTTL -> EtherMirror -> ToDevice(1);'''\n"
        ),
    )
}

/// The rate, in Mpps, that comes out of a chain which holds as many packets as the memory has slots.
fn with_memory(lab: &Lab, slots: u32, pages: HugePages) -> Result<(f64, bool), BenchError> {
    let run = RunOptions { slots, pages, burst: BURST, shape: Some(Shape::Modular), ..lab.setting() };
    let fill = |chain: &LiveChain| -> Result<(), BenchError> {
        let full =
            || chain.read("nf/hold.length").is_ok_and(|length| length.trim().parse() == Ok(slots - FREE));
        await_until(FULL_IN, full).ok_or_else(|| failed("the queue did not fill"))?;
        chain.write("nf/go.active", "true")
    };
    let sent = |chain: &LiveChain| Ok(chain.report().sent());
    let Watched { before, after, window, disturbed } =
        LiveChain::watched_as(lab, &holding(slots), &run, fill, sent)?;
    Ok((window.per_second(after - before) / 1e6, disturbed))
}

/// Figure 10: throughput over packet memory, of which all is used.
pub fn memory(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let slots: &[u32] =
        if lab.effort.is_miniature() { &[4_096, 16_384] } else { &[4_096, 16_384, 65_536, 262_144] };
    let x = |slots: u32| (f64::from(slots) * SLOT_BYTES as f64 / MIB).round();
    let cases = slots.iter().flat_map(|slots| PAGES.map(|pages| (*slots, pages)));
    let cases = cases
        .map(|(slots, (name, pages))| Case::point(name, x(slots), move |lab| with_memory(lab, slots, pages)));
    let sheet = lab.sheet(
        "netvm-memory",
        "Throughput over packet memory and its pages",
        "L2 forwarding of 64-byte frames that checks the IP header. A queue holds as many packets as the memory has slots, so \
         that all of it is used, one slot after the other.",
        (Axis::log("packet memory", "MiB"), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    let ends = (slots.first().map(|slots| x(*slots)), slots.last().map(|slots| x(*slots)));
    if let (Some(least), Some(most)) = ends {
        for (name, _) in PAGES {
            let values = (figure.at(name, least), figure.at(name, most));
            let told = format!("{name}: {most} MiB carry as much as {least} MiB at least (Mpps)");
            figure.expect(values, &told, |few, many| many >= few);
        }
        let values = (figure.at(PAGES[0].0, most), figure.at(PAGES[1].0, most));
        let told = format!("with {most} MiB pages of 2 MiB carry more than those of 4 KiB (Mpps)");
        figure.expect(values, &told, |small, large| large > small);
    }
    figure.add_note(format!(
        "The paper ({MEMORY}) states that too little memory costs up to 26 % of the throughput, and that the line rate needs \
         6 GB: its rings lie there, and what finds no room is lost. Here the source waits for free slots, so that more memory \
         means more cache misses and not less loss."
    ));
    Ok(vec![figure])
}

/// The name of a curve over ports.
fn ports_curve(mode: Mode, workers: usize) -> String {
    format!("{}, {}", mode.name, counted(workers, "worker"))
}

/// Figure 13: one to four ports, with one packet thread and with two.
pub fn ports(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let ports: &[usize] = if lab.effort.is_miniature() { &[1, 4] } else { &[1, 2, 3, 4] };
    let workers: &[usize] = if lab.machine.cores.len() > 1 { &[1, 2] } else { &[1] };
    // An NF of one element is as it is when it is fused.
    let modes = [Mode::MODULAR, Mode::PROCESS];
    let curves = modes.into_iter().flat_map(|mode| workers.iter().map(move |workers| (mode, *workers)));
    let curves: Vec<(Mode, usize)> = curves.collect();
    let cases = ports.iter().flat_map(|ports| curves.iter().map(move |curve| (*ports, *curve)));
    let cases = cases.map(|(ports, (mode, workers))| {
        Case::point(&ports_curve(mode, workers), ports as f64, move |lab| {
            let path = lab.side_by_side(Nf::L2, mode, ports)?;
            let slots = SLOTS * workers as u32;
            let run = RunOptions { cores: lab.cores(workers), slots, ..lab.run_options(mode, Some(64)) };
            let (mpps, disturbed) = trial::saturation(lab, &path, &run)?;
            Ok((line_gbps(mpps, 64.0), disturbed))
        })
    });
    let sheet = lab.sheet(
        "netvm-ports",
        "One to four ports",
        "L2 forwarding of 64-byte frames from each port to one of its own, each by an NF of its own: bits a second on all lines \
         together, with 20 bytes of preamble and gap for each frame.",
        (Axis::linear("ports", ""), Axis::linear("throughput", "Gbit/s")),
    );
    let mut figure = lab.saturate(sheet, cases);
    let last = ports.last().map_or(1.0, |ports| *ports as f64);
    if workers.len() < 2 {
        figure.skip("2 workers", "there is one core");
    }
    for mode in modes {
        let at = |workers: usize| figure.at(&ports_curve(mode, workers), last);
        let told = format!("{}: two packet threads carry more of {last} ports than one (Gbit/s)", mode.name);
        figure.expect((at(1), at(2)), &told, |one, two| two > one);
    }
    figure.paper("NetVM, four VMs", PORTS, [(4.0, 34.5)]);
    figure.paper("DPDK, not virtualized", PORTS, [(4.0, 36.4)]);
    figure.paper("SR-IOV, one VM", PORTS, [(4.0, 22.0)]);
    figure.add_note(
        "The paper's ports have lines; ours have none, so one core alone may carry more than they do.",
    );
    Ok(vec![figure])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn all_of_the_memory_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let figures = memory(&mut lab).expect("a figure");
        let [figure] = figures.as_slice() else { panic!("{figures:#?}") };
        // Huge pages are there where somebody has reserved them.
        assert!(
            figure.skipped.iter().all(|skipped| skipped.what.contains("2 MiB pages")),
            "{:#?}",
            figure.skipped
        );
        let own = figure.series("4 KiB pages").expect("measured");
        assert!(own.points.len() == 2 && own.points.iter().all(|point| point.y.median > 0.0), "{own:?}");
        assert!(!figure.expected.is_empty());
    }

    #[test]
    fn each_port_has_its_traffic() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let figures = ports(&mut lab).expect("a figure");
        let [figure] = figures.as_slice() else { panic!("{figures:#?}") };
        let not_of_processes = |what: &str| !what.contains("processes") && !what.contains("2 workers");
        assert!(
            !figure.skipped.iter().any(|skipped| not_of_processes(&skipped.what)),
            "{:#?}",
            figure.skipped
        );
        let measured = |ports: &f64| figure.at("modular, 1 worker", *ports).is_some_and(|gbps| gbps > 0.0);
        assert!([1.0, 4.0].iter().all(measured), "{figure:#?}");
        let counted = lab.take_accounting().expected();
        assert!(counted.iter().all(|one| one.holds), "{counted:#?}");
    }
}
