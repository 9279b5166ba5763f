//! The experiments of MVMP: forwarding beside l2fwd, NFs that share a device, chains of NFs in processes.

use super::curves::{Row, crowded, over_sizes, saturated, stated};
use crate::BenchError;
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::experiment::taps::{SATURATING, taps};
use crate::figure::{Axis, Figure};

/// What l2fwd and MVMP reach with 64 bytes, in Mpps, and how much less OpenNetVM does.
const STATED: f64 = 14.3;
const OPEN_NETVM: f64 = 0.7;
const PLACE: &str = "MVMP, section 4: Xeon E5-2650 v2 at 2.6 GHz, 10 GbE; larger frames fill the line";

/// Figure 5: forwarding in a process beside forwarding in one program.
pub fn forward(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let sizes = lab.effort.sizes;
    let rows = [
        Row::new("one program, modular", &[Nf::L2], Mode::MODULAR),
        Row::new("one program, fused", &[Nf::L2], Mode::FUSED),
        Row::new("host and a program as NF", &[Nf::PROGRAM], Mode::PROCESS),
        Row::new("host and Click as NF", &[Nf::L2], Mode::PROCESS),
    ];
    let sheet = lab.sheet(
        "mvmp-forward",
        "Forwarding in a process of its own",
        "L2 forwarding (addresses exchanged) in the packet thread, and in an NF in a process over shared memory.",
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, over_sizes(&rows, sizes));
    let own = |name: &str| figure.at(name, 64.0);
    let values = (own("one program, modular"), own("host and a program as NF"));
    let told = "a program as NF keeps a tenth of the rate at least (Mpps)";
    figure.expect(values, told, |one, process| process > one / 10.0);
    figure.series.push(stated("l2fwd, MVMP", PLACE, STATED, 128, sizes));
    figure.series.push(stated("OpenNetVM", PLACE, STATED * OPEN_NETVM, 128, sizes));
    Ok(vec![figure])
}

/// Figure 6: NFs that share a virtual device.
pub fn duplicate(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let sizes: &[u32] = if lab.effort.is_miniature() { &[64] } else { &[64, SATURATING] };
    Ok(taps(lab, sizes, lab.effort.most.min(5)))
}

/// Figure 7: NFs in processes in a row.
pub fn chain(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let most = lab.effort.most.min(5);
    let curves = [
        ("processes, one trust group", Nf::PROGRAM, Mode::PROCESS),
        ("processes, a trust group each", Nf::PROGRAM, Mode::APART),
        // Exchanged twice, addresses are what they were, and nothing would be left of two NFs in one
        // function.
        ("one process, L3, modular", Nf::L3, Mode::MODULAR),
        ("one process, L3, fused", Nf::L3, Mode::FUSED),
    ];
    let cases = (1..=most).flat_map(|count| curves.map(|curve| (count, curve)));
    let cases = cases.map(|(count, (name, nf, mode))| {
        Case::point(name, count as f64, move |lab| saturated(lab, &vec![nf; count], mode, 64))
    });
    let devices = "processes, a rootless device between each two";
    let by_devices = (1..=most).map(|count| {
        Case::point(devices, count as f64, move |lab| {
            let path = lab.row_by_devices(&vec![Nf::PROGRAM; count], Mode::PROCESS)?;
            trial::saturation(lab, &path, &lab.run_options(Mode::PROCESS, Some(64)))
        })
    });
    let cases = cases.chain(by_devices);
    let sheet = lab.sheet(
        "mvmp-chain",
        "NFs in a row",
        "L2 forwarding, 64-byte frames, over the number of NFs: programs in processes over shared memory, linked to each other \
         or, as in the paper, each to a rootless device, and L3 forwarders as elements and as one function.",
        (Axis::linear("NFs", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    let last = most as f64;
    let (one, group) = ("processes, one trust group", "processes, a trust group each");
    let values = (figure.at(one, last), figure.at(group, last));
    figure.expect(values, &format!("{most} NFs carry more without copies (Mpps)"), |shared, copied| {
        shared > copied
    });
    let values = (figure.at(devices, 1.0), figure.at(devices, last));
    let told = format!("through rootless devices {most} NFs carry what one does, within a tenth (Mpps)");
    figure.expect(values, &told, |one, many| many > one * 0.9);
    let values = (figure.at("one process, L3, fused", last), figure.at("one process, L3, modular", last));
    let told = format!("{most} NFs as one function carry more than as elements (Mpps)");
    figure.expect(values, &told, |fused, modular| fused > modular);
    let flat = (1..=most).map(|count| (count as f64, STATED));
    figure.paper("MVMP", PLACE, flat);
    let open = [(1.0, STATED * OPEN_NETVM), (5.0, STATED / 3.0)];
    let open = open.into_iter().filter(|(count, _)| *count <= last);
    figure.paper("OpenNetVM", PLACE, open);
    let virtual_functions = [(5.0, STATED / 7.0)].into_iter().filter(|(count, _)| *count <= last);
    figure.paper("SR-IOV", PLACE, virtual_functions);
    figure.series.retain(|series| !series.points.is_empty());
    crowded(lab, &mut figure, most);
    Ok(vec![figure])
}
