//! Upper bounds of values, with which machine code omits work.

use crate::lookup_region::LookupRegion;
use ir::analysis::interval::{Interval, yields};
use ir::program::{Program, Value};
use std::collections::BTreeMap;

/// Bounds of a region's values.
#[derive(Default)]
pub(super) struct Bounds(BTreeMap<Value, Interval>);

impl Bounds {
    /// Bounds of all values that the region defines.
    pub fn of(program: &Program, region: &LookupRegion) -> Bounds {
        let mut bounds = Bounds::default();
        // Topological order: operands come first.
        for &(result, inst) in region.blocks.iter().flat_map(|block| &program.block(*block).insts) {
            if let Some(result) = result {
                let interval = yields(inst, |value| bounds.interval(value));
                bounds.0.insert(result, interval);
            }
        }
        bounds
    }

    fn interval(&self, value: Value) -> Interval {
        self.0.get(&value).copied().unwrap_or(Interval::ALL)
    }

    /// The upper bound of a value.
    pub fn most(&self, value: Value) -> u64 {
        self.interval(value).hi
    }

    /// The value, where it is the same for all packets.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.interval(value).number()
    }
}
