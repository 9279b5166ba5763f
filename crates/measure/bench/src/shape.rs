//! The execution mode of a measured chain.

use chain::ExecutionMode;
use std::str::FromStr;
use worker::fusion::FlowCache;

/// The execution mode of the NFs in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    /// Element by element.
    #[default]
    Modular,
    /// Fused, every packet through the whole program.
    Fused,
    /// Fused, with a flow cache where that is worth it.
    Cached,
}

impl Shape {
    /// All modes.
    pub const ALL: [Shape; 3] = [Shape::Modular, Shape::Fused, Shape::Cached];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Modular => "modular",
            Shape::Fused => "fused",
            Shape::Cached => "cached",
        }
    }

    /// The chain's execution mode.
    pub fn mode(self) -> ExecutionMode {
        if self == Shape::Modular { ExecutionMode::Modular } else { ExecutionMode::Fused }
    }

    /// The flow cache setting.
    pub fn cache(self) -> FlowCache {
        if self == Shape::Cached { FlowCache::Auto } else { FlowCache::Off }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let known = Shape::ALL.into_iter().find(|shape| shape.name() == text);
        known.ok_or_else(|| format!("modes are modular, fused or cached, not `{text}`"))
    }
}
