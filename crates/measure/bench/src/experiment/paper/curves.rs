//! Shared parts of the papers' experiments: rows of NFs as curves over the frame size, and line rates.

use crate::BenchError;
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::figure::{Figure, Series};
use crate::units::{Rate, wire_bits};

/// The frame rate of a line, in Mpps. `size` is in bytes with FCS.
pub(super) fn line_mpps(gbps: f64, size: f64) -> f64 {
    Rate::Bits(gbps * 1e9).frames(size) / 1e6
}

/// The bit rate on a line, in Gbit/s, of a frame rate in Mpps.
pub(super) fn line_gbps(mpps: f64, size: f64) -> f64 {
    wire_bits(mpps * 1e6, size) / 1e9
}

/// A row of NFs, their execution mode, and the name of their curve.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) nfs: Vec<Nf>,
    pub(super) mode: Mode,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, nfs: &[Nf], mode: Mode) -> Row {
        Row { name: name.into(), nfs: nfs.to_vec(), mode }
    }
}

/// Cases that measure the saturation of rows over the frame size, in Mpps.
pub(super) fn over_sizes<'r>(rows: &'r [Row], sizes: &'r [u16]) -> impl Iterator<Item = Case<'r>> {
    sizes.iter().flat_map(|size| {
        rows.iter().map(move |row| {
            Case::point(&row.name, f64::from(*size), move |lab| saturated(lab, &row.nfs, row.mode, *size))
        })
    })
}

/// Throughput of a row at saturation, in Mpps, and whether the measurement was disturbed.
pub(super) fn saturated(lab: &Lab, nfs: &[Nf], mode: Mode, size: u16) -> Result<(f64, bool), BenchError> {
    let path = lab.row(nfs, mode)?;
    trial::saturation(lab, &path, &lab.run_options(mode, Some(size)))
}

/// What a paper states over frame sizes: a rate of 64 bytes, and that of a line of 10 Gbit/s from a size on.
pub(super) fn stated(name: &str, place: &str, smallest: f64, full_from: u16, sizes: &[u16]) -> Series {
    let points = sizes.iter().filter_map(|size| match f64::from(*size) {
        64.0 => Some((64.0, smallest)),
        bytes => (*size >= full_from).then(|| (bytes, line_mpps(10.0, bytes))),
    });
    Series::paper(name, place, points)
}

/// A notice where processes have to share cores: papers give each NF its own.
pub(super) fn crowded(lab: &Lab, figure: &mut Figure, nfs: usize) {
    let cores = lab.machine.cores.len();
    if cores < nfs + 1 {
        figure.add_note(format!(
            "{cores} cores for the packet thread and up to {nfs} NFs in processes, which share what is left; the paper \
             has a core and more for each."
        ));
    }
}
