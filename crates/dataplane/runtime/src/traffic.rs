//! The frames of a chain's port with generated traffic.

use chain::TrafficDecl;
use diag::Diagnostics;
use port::FrameSet;
use std::path::PathBuf;
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
    match frames(&spec, change) {
        Ok(set) => Some(Arc::new(set)),
        Err(error) => {
            diags.error(declared.span, error.to_string());
            None
        }
    }
}

/// Those of a capture, or generated ones.
fn frames(spec: &TrafficSpec, change: &Change) -> Result<FrameSet, Box<dyn std::error::Error>> {
    if let Some(capture) = &change.capture {
        return Ok(FrameSet::new(&replay(capture, spec)?.frames)?);
    }
    let flows = usize::try_from(spec.flows).unwrap_or(MOST_FRAMES).max(1);
    let frames = (flows * least_frames(spec).div_ceil(flows)).min(MOST_FRAMES);
    Ok(FrameSet::new(spec.prepare(frames)?.iter())?)
}

/// So many frames show all that differs from frame to frame.
fn least_frames(spec: &TrafficSpec) -> usize {
    let is_one_size = matches!(&spec.size, SizeMix::InTurn(sizes) if sizes.len() == 1);
    if is_one_size && spec.order == FlowOrder::RoundRobin { 1 } else { LEAST_FRAMES }
}
