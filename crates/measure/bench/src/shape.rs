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
    Whole,
    /// Fused, with entries for flows of which a table has state: the chain's records.
    Fused,
    /// Fused, with a flow cache where that is worth it.
    Cached,
}

impl Shape {
    /// All modes that are measured where nobody says which.
    pub const ALL: [Shape; 3] = [Shape::Modular, Shape::Fused, Shape::Cached];
    /// All modes.
    pub const KNOWN: [Shape; 4] = [Shape::Modular, Shape::Whole, Shape::Fused, Shape::Cached];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Modular => "modular",
            Shape::Whole => "whole",
            Shape::Fused => "fused",
            Shape::Cached => "cached",
        }
    }

    /// The chain's execution mode.
    pub fn mode(self) -> ExecutionMode {
        if self == Shape::Modular { ExecutionMode::Modular } else { ExecutionMode::Fused }
    }

    /// Whether flows may have entries, which are there some time after the first packets.
    pub fn has_entries(self) -> bool {
        matches!(self, Shape::Fused | Shape::Cached)
    }

    /// The flow cache setting.
    pub fn cache(self) -> FlowCache {
        match self {
            Shape::Cached => FlowCache::Auto,
            Shape::Whole => FlowCache::Never,
            Shape::Modular | Shape::Fused => FlowCache::Off,
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let known = Shape::KNOWN.into_iter().find(|shape| shape.name() == text);
        known.ok_or_else(|| format!("modes are modular, whole, fused or cached, not `{text}`"))
    }
}
