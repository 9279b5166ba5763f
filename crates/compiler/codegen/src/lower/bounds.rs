//! How large values can get: where that is known to be small, machine code can leave out work.

use crate::region::Region;
use ir::program::{BinOp, Inst, Program, Value};
use std::collections::BTreeMap;

/// Upper bounds of a region's values.
#[derive(Default)]
pub(super) struct Bounds {
    most: BTreeMap<Value, u64>,
    constants: BTreeMap<Value, u64>,
}

impl Bounds {
    /// Bounds of all values that the region defines.
    pub fn of(program: &Program, region: &Region) -> Bounds {
        let mut bounds = Bounds::default();
        // Topological order: operands come first.
        for &(result, inst) in region.blocks.iter().flat_map(|block| &program.block(*block).insts) {
            if let Some(result) = result {
                let most = bounds.bound(inst);
                bounds.most.insert(result, most);
            }
            if let (Some(result), Inst::Const(number)) = (result, inst) {
                bounds.constants.insert(result, number);
            }
        }
        bounds
    }

    /// The most that a value can be.
    pub fn most(&self, value: Value) -> u64 {
        self.most.get(&value).copied().unwrap_or(u64::MAX)
    }

    /// The value, where it is a constant.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.constants.get(&value).copied()
    }

    fn bound(&self, inst: Inst) -> u64 {
        let bytes = |count: u8| u64::MAX >> (64 - 8 * u32::from(count.clamp(1, 8)));
        // All numbers of as many bits as the larger of two.
        let bits = |a: u64, b: u64| u64::MAX.checked_shr((a | b).leading_zeros()).unwrap_or(0);
        match inst {
            Inst::Const(number) => number,
            Inst::Bin(op, a, b) => {
                let (a, b) = (self.most(a), self.most(b));
                match op {
                    BinOp::Add => a.saturating_add(b),
                    BinOp::Mul => a.saturating_mul(b),
                    BinOp::Sub => u64::MAX,
                    BinOp::Rem => a.min(b.saturating_sub(1)),
                    BinOp::And | BinOp::Min => a.min(b),
                    BinOp::Or | BinOp::Xor => bits(a, b),
                    BinOp::Shl if b < 64 && a.leading_zeros() as u64 >= b => a << b,
                    BinOp::Shl => u64::MAX,
                    BinOp::Shr => a,
                    BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le => 1,
                }
            }
            Inst::Select(_, a, b) => self.most(a).max(self.most(b)),
            Inst::Load(field) => field.max_value(),
            Inst::LoadAnno(anno) => bytes(anno.len),
            Inst::RecLoad(_, _, count) => bytes(count),
            Inst::Len | Inst::Avail(_) | Inst::FlowHash => u64::from(u32::MAX),
            Inst::IpSum | Inst::TransportSum(_) | Inst::CsumUpdate(..) => 0xffff,
            Inst::PacketType => 0xff,
            Inst::Origin => 0xffff,
            _ => u64::MAX,
        }
    }
}
