//! The frames of a chain's port with generated traffic.

use chain::TrafficDecl;
use diag::Diagnostics;
use port::FrameSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use traffic::replay::replay;
use traffic::{FlowOrder, SizeMix, TrafficSpec};

/// Frames that stand ready where their sizes differ, at least: so many that a mix of sizes shows.
const LEAST_FRAMES: usize = 4_096;
/// The most that stand ready. What asks for more flows than that gets this many.
const MOST_FRAMES: usize = 1 << 20;

/// What an experiment makes otherwise than the chain file says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// Other frame sizes.
    pub size: Option<SizeMix>,
    /// Another number of flows.
    pub flows: Option<u64>,
    /// The frames of a capture, with the addresses that the chain file says ([`traffic::replay`]).
    pub capture: Option<PathBuf>,
}

/// Makes the frames of a port as its chain file says.
pub fn declared(declared: &TrafficDecl, diags: &mut Diagnostics) -> Option<Arc<FrameSet>> {
    frame_set(declared, &Change::default(), diags)
}

/// Makes the frames of a port with generated traffic: every flow of its `traffic` table equally often. Mistakes are
/// recorded at their place.
pub fn frame_set(declared: &TrafficDecl, change: &Change, diags: &mut Diagnostics) -> Option<Arc<FrameSet>> {
    let before = diags.errors();
    let mut spec: TrafficSpec = declared.read(diags)?;
    spec.size = change.size.clone().unwrap_or(spec.size);
    spec.flows = change.flows.unwrap_or(spec.flows);
    for (key, mistake) in spec.mistakes() {
        diags.error(declared.place(key), mistake.to_string());
    }
    if diags.errors() > before {
        return None;
    }
    if let Some(capture) = &change.capture {
        return captured(capture, &spec, declared, diags);
    }
    let flows = usize::try_from(spec.flows).unwrap_or(MOST_FRAMES).max(1);
    let frames = (flows * least_frames(&spec).div_ceil(flows)).min(MOST_FRAMES);
    let made = spec.prepare(frames).map_err(|error| error.to_string());
    match made.and_then(|made| FrameSet::new(made.iter()).map_err(|error| error.to_string())) {
        Ok(set) => Some(Arc::new(set)),
        Err(message) => {
            diags.error(declared.span, message);
            None
        }
    }
}

/// The frames of a capture.
fn captured(
    path: &Path,
    spec: &TrafficSpec,
    declared: &TrafficDecl,
    diags: &mut Diagnostics,
) -> Option<Arc<FrameSet>> {
    let found = replay(path, spec).map_err(|error| error.to_string());
    match found.and_then(|found| FrameSet::new(&found.frames).map_err(|error| error.to_string())) {
        Ok(set) => Some(Arc::new(set)),
        Err(message) => {
            diags.error(declared.span, message);
            None
        }
    }
}

/// So many frames show all that differs from frame to frame.
fn least_frames(spec: &TrafficSpec) -> usize {
    let is_one_size = matches!(&spec.size, SizeMix::InTurn(sizes) if sizes.len() == 1);
    if is_one_size && spec.order == FlowOrder::RoundRobin { 1 } else { LEAST_FRAMES }
}
