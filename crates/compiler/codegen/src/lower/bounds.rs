//! Upper bounds of values, with which machine code omits work.

use crate::lookup_region::LookupRegion;
use ir::analysis::interval::{Interval, yields};
use ir::program::{Inst, Program, Value};
use std::collections::BTreeMap;

/// Bounds of a region's values.
#[derive(Default)]
pub(super) struct Bounds {
    intervals: BTreeMap<Value, Interval>,
    constants: BTreeMap<Value, u64>,
}

impl Bounds {
    /// Bounds of all values that the region defines.
    pub fn of(program: &Program, region: &LookupRegion) -> Bounds {
        let mut bounds = Bounds::default();
        // Topological order: operands come first.
        for &(result, inst) in region.blocks.iter().flat_map(|block| &program.block(*block).insts) {
            if let Some(result) = result {
                let interval = yields(inst, |value| bounds.interval(value));
                bounds.intervals.insert(result, interval);
            }
            if let (Some(result), Inst::Const(number)) = (result, inst) {
                bounds.constants.insert(result, number);
            }
        }
        bounds
    }

    fn interval(&self, value: Value) -> Interval {
        self.intervals.get(&value).copied().unwrap_or(Interval::ALL)
    }

    /// The upper bound of a value.
    pub fn most(&self, value: Value) -> u64 {
        self.interval(value).hi
    }

    /// The value, where it is a constant.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.constants.get(&value).copied()
    }
}
