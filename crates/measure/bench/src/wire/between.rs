//! A system between two devices, to which loads are offered: a [`Wire`] with its devices and frames.

use super::devices::{Devices, Means};
use super::{Wire, WireOptions};
use crate::BenchError;
use std::sync::Arc;
use traffic::TrafficSpec;

/// Opens the sending and the receiving device, which may be the same: interfaces, which the tester reaches by
/// `means`, DPDK devices, or PCI addresses. Then sends every flow twice, and finds out how much of that comes
/// back. The tester's thread runs on `core`.
///
/// # Errors
/// When a device cannot be opened, frames cannot be made, or none comes back.
pub fn between(
    (send, receive): (&str, &str),
    means: Means,
    core: Option<usize>,
    spec: &TrafficSpec,
) -> Result<Wire, BenchError> {
    if let Some((_, mistake)) = spec.mistakes().into_iter().next() {
        return Err(BenchError::contradiction(mistake.to_string()));
    }
    let frames = Arc::new(spec.prepare(usize::try_from(spec.flows).unwrap_or(usize::MAX).max(1))?);
    let mut devices = Devices::start(&[send, receive])?;
    let ends = devices.open(send, receive, means, None)?;
    let options = WireOptions { core, ..WireOptions::default() };
    let mut wire = Wire { _devices: Some(devices), ..Wire::new(ends, frames, options)? };
    wire.warm_up()?;
    Ok(wire)
}
