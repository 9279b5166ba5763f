//! A system between two devices, to which loads are offered: a [`Wire`] with its devices and frames.

use super::devices::{Devices, Means};
use super::{Wire, WireOptions};
use crate::BenchError;
use std::sync::Arc;
use traffic::TrafficSpec;

/// The tester's devices, and how to reach them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ways {
    /// The sending device: an interface, a DPDK device, or a PCI address.
    pub send: String,
    /// The receiving device, which may be the same.
    pub receive: String,
    /// How the tester reaches interfaces.
    pub means: Means,
    /// The core of the tester's thread.
    pub core: Option<usize>,
}

/// Opens the devices, sends every flow twice, and finds out how much of that comes back.
///
/// # Errors
/// When a device cannot be opened, frames cannot be made, or none comes back.
pub fn between(ways: &Ways, spec: &TrafficSpec) -> Result<Wire, BenchError> {
    if let Some((_, mistake)) = spec.mistakes().into_iter().next() {
        return Err(BenchError::contradiction(mistake.to_string()));
    }
    let frames = Arc::new(spec.prepare(usize::try_from(spec.flows).unwrap_or(usize::MAX).max(1))?);
    let mut devices = Devices::start(&[&ways.send, &ways.receive])?;
    let ends = devices.open(&ways.send, &ways.receive, ways.means, None)?;
    let options = WireOptions { core: ways.core, ..WireOptions::default() };
    let mut wire = Wire { _devices: Some(devices), ..Wire::new(ends, frames, options)? };
    wire.warm_up()?;
    Ok(wire)
}
