//! The frames of a chain's port with generated traffic.

use chain::TrafficDecl;
use diag::Diagnostics;
use port::FrameSet;
use std::path::PathBuf;
use std::sync::Arc;
use traffic::replay::replay;
use traffic::{FlowOrder, SizeMix, TrafficError, TrafficSpec};

/// The least number of prepared frames if their sizes differ: enough for a mix of sizes.
const LEAST_FRAMES: usize = 4_096;
/// The most prepared frames. Traffic with more flows gets this many.
const MOST_FRAMES: usize = 1 << 20;

/// An experiment's changes to the traffic of a chain file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// Other frame sizes.
    pub size: Option<SizeMix>,
    /// Another number of flows.
    pub flows: Option<u64>,
    /// The frames of a capture, with the addresses of the chain file ([`traffic::replay`]).
    pub capture: Option<PathBuf>,
}

/// Generates the frames of a port as its chain file defines.
pub fn declared(declared: &TrafficDecl, diags: &mut Diagnostics) -> Option<Arc<FrameSet>> {
    frame_set(declared, &Change::default(), diags)
}

/// Generates the frames of a port: every flow of its `traffic` table equally often. Errors are recorded at
/// their locations.
pub fn frame_set(declared: &TrafficDecl, change: &Change, diags: &mut Diagnostics) -> Option<Arc<FrameSet>> {
    let before = diags.errors();
    let mut spec: TrafficSpec = declared.read(diags)?;
    spec.size = change.size.clone().unwrap_or(spec.size);
    spec.flows = change.flows.unwrap_or(spec.flows);
    for file in [&mut spec.acl.rules, &mut spec.acl.trace].into_iter().flatten() {
        *file = declared.folder.join(&*file);
    }
    for (key, mistake) in spec.mistakes() {
        diags.error(declared.place(key), mistake.to_string());
    }
    if diags.errors() > before {
        return None;
    }
    match frames(&spec, change) {
        Ok(set) => Some(Arc::new(set)),
        Err(error) => {
            diags.error(declared.span, error.to_string());
            None
        }
    }
}

/// Frames of a capture, or generated ones.
fn frames(spec: &TrafficSpec, change: &Change) -> Result<FrameSet, TrafficError> {
    if let Some(capture) = &change.capture {
        return Ok(FrameSet::new(&replay(capture, spec)?.frames)?);
    }
    let flows = usize::try_from(spec.flows).unwrap_or(MOST_FRAMES).max(1);
    let frames = (flows * least_frames(spec).div_ceil(flows)).min(MOST_FRAMES);
    spec.prepare(frames)
}

/// The number of frames that contains all differences between frames.
fn least_frames(spec: &TrafficSpec) -> usize {
    let is_one_size = matches!(&spec.size, SizeMix::InTurn(sizes) if sizes.len() == 1);
    if is_one_size && spec.order == FlowOrder::RoundRobin { 1 } else { LEAST_FRAMES }
}
