//! How a chain runs that is measured.

use chain::ExecutionMode;
use std::str::FromStr;
use worker::fusion::FlowCache;

/// How the NFs of this process run.
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
    /// All of them.
    pub const ALL: [Shape; 3] = [Shape::Modular, Shape::Fused, Shape::Cached];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Modular => "modular",
            Shape::Fused => "fused",
            Shape::Cached => "cached",
        }
    }

    /// The form.
    pub fn mode(self) -> ExecutionMode {
        if self == Shape::Modular { ExecutionMode::Modular } else { ExecutionMode::Fused }
    }

    /// Whether with a flow cache.
    pub fn cache(self) -> FlowCache {
        if self == Shape::Cached { FlowCache::Auto } else { FlowCache::Off }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let known = Shape::ALL.into_iter().find(|shape| shape.name() == text);
        known.ok_or_else(|| format!("forms are modular, fused or cached, not `{text}`"))
    }
}
