//! Prefix lookups that machine code does itself, packet by packet, in a table small enough to stay in the
//! nearer caches. They need no sorting of the batch and no carried values.

use super::Lowering;
use super::memory::{flags, load_pointer};
use super::table_place::{TablePlace, record_bytes};
use crate::abi::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use ir::program::{BlockId, Value};
use ir::table::PrefixWalk;
use std::mem::offset_of;
use table::lpm::Layout4;

/// Bits of a node's index.
const NODE_BITS: i64 = Layout4::FAN.ilog2() as i64;

const _: () = assert!(Layout4::ROOT_BITS == 16 && Layout4::FAN == 256);

impl Lowering<'_, '_> {
    /// Ends a block with a lookup in a table of IPv4 prefixes.
    pub(super) fn walk(&mut self, table: u16, key: &[Value], rec: Value, hit: BlockId, miss: BlockId) {
        let Some(&key) = key.first() else { return };
        let number = usize::from(table);
        let (Some(Some(TablePlace { root, entries, records })), Some(decl)) =
            (self.walks.get(number).copied(), self.program.tables.get(number))
        else {
            return;
        };
        let address = self.low_bits(key, u64::from(u32::MAX));
        let first = self.f.ins().ushr_imm_s(address, 16);
        let entry = self.element(root, first, 3);
        let entry = self.f.ins().load(types::I64, flags(), entry, 0);
        let so_far = self.f.ins().band_imm_s(entry, 0xffff_ffff);
        let node = self.f.ins().ushr_imm_s(entry, 32);
        let second = self.f.ins().ushr_imm_s(address, 8);
        let entry = self.node_entry(entries, node, second);

        let [deep, found, there] = [(); 3].map(|()| self.f.create_block());
        let code = self.f.append_block_param(found, types::I64);
        let below = self.f.ins().band_imm_s(entry, i64::from(Layout4::BELOW));
        let here = self.f.ins().select(entry, entry, so_far);
        self.f.ins().brif(below, deep, &[], found, &[here.into()]);

        // Prefixes longer than /24.
        self.f.set_cold_block(deep);
        self.f.switch_to_block(deep);
        let node = self.f.ins().band_imm_s(entry, i64::from(!Layout4::BELOW));
        let walks = load_pointer(self.f, self.context.context, offset_of!(Context, walks));
        let at = number * size_of::<PrefixWalk>() + offset_of!(PrefixWalk, above);
        let above = load_pointer(self.f, walks, at);
        let above = self.element(above, node, 2);
        let above = self.f.ins().uload32(flags(), above, 0);
        let so_far = self.f.ins().select(above, above, so_far);
        let entry = self.node_entry(entries, node, address);
        let here = self.f.ins().select(entry, entry, so_far);
        self.f.ins().jump(found, &[here.into()]);

        self.f.switch_to_block(found);
        // In a union, value 0 stands for prefixes from which packets of the row do not go on.
        let is_found = match number < self.plan.first_union {
            true => self.f.ins().icmp_imm_s(IntCC::NotEqual, code, 0),
            false => self.f.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, code, 1),
        };
        let miss = self.blocks[&miss];
        self.f.ins().brif(is_found, there, &[], miss, &[]);
        self.f.switch_to_block(there);
        let from_first = self.f.ins().imul_imm_s(code, record_bytes(decl));
        let record = self.f.ins().iadd(records, from_first);
        self.values.insert(rec, record);
        let hit = self.blocks[&hit];
        self.f.ins().jump(hit, &[]);
    }

    /// The address of an element of an array whose elements have `1 << shift` bytes.
    fn element(&mut self, array: clif::Value, index: clif::Value, shift: i64) -> clif::Value {
        let at = self.f.ins().ishl_imm_s(index, shift);
        self.f.ins().iadd(array, at)
    }

    /// The entry of a node that the low bits of `bits` select.
    fn node_entry(&mut self, entries: clif::Value, node: clif::Value, bits: clif::Value) -> clif::Value {
        let first = self.f.ins().ishl_imm_s(node, NODE_BITS);
        let own = self.f.ins().band_imm_s(bits, Layout4::FAN as i64 - 1);
        let at = self.f.ins().bor(first, own);
        let at = self.element(entries, at, 2);
        self.f.ins().uload32(flags(), at, 0)
    }
}
