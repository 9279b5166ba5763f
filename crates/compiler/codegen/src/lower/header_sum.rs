//! The checksum of an IP header.
//!
//! It sums little-endian 32-bit words, since the byte order matters only at the end (RFC 1071 section 2 B).

use super::Lowering;
use super::memory::flags;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use ir::analysis::ones_complement::{INVERSE, MOST_QUOTIENT};
use ir::program::Value;
use packet::field::Base;
use shm::descriptor::offset;

impl Lowering<'_, '_> {
    /// The sum, folded. The sum before folding is kept for [`Lowering::is_right_sum`].
    pub(super) fn ip_sum(&mut self, result: Option<Value>) -> clif::Value {
        let blocks = [(); 6].map(|()| self.f.create_block());
        let [there, usual, long, more, last, done] = blocks;
        let sum = self.f.append_block_param(done, types::I64);
        let net = self.base(Base::Net);
        let zero = self.f.ins().iconst(types::I64, 0);
        if self.known.has(Base::Net, 20) {
            self.f.ins().jump(there, &[]);
        } else {
            let bytes = self.f.ins().iconst(types::I64, 20);
            let is_there = self.is_there(Base::Net, bytes);
            self.f.ins().brif(is_there, there, &[], done, &[zero.into()]);
        }

        self.f.switch_to_block(there);
        // The first byte is the lowest one.
        let first = self.f.ins().uload32(flags(), net, 0);
        let words = self.f.ins().band_imm_s(first, 15);
        let is_usual = self.f.ins().icmp_imm_s(IntCC::Equal, words, 5);
        self.f.ins().brif(is_usual, usual, &[], long, &[]);
        self.f.switch_to_block(usual);
        let fixed = self.five_words(net);
        self.f.ins().jump(done, &[fixed.into()]);

        // Options, or an invalid header length. This block sums the header from its start, with a pointer of
        // its own: sharing values would take registers from packets that do not need this block.
        self.f.set_cold_block(long);
        self.f.switch_to_block(long);
        let buf = self.f.ins().load(types::I64, flags(), self.packet, offset::BUF);
        let at = self.f.use_var(self.offsets[Base::Net as usize]);
        let start = self.f.ins().iadd(buf, at);
        let bytes = self.f.ins().ishl_imm_s(words, 2);
        let header_end = self.f.ins().iadd(start, bytes);
        let fits = self.is_there(Base::Net, bytes);
        let enough = self.f.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, words, 5);
        let good = self.f.ins().band(fits, enough);
        self.f.ins().brif(good, more, &[start.into(), zero.into()], done, &[zero.into()]);
        self.f.set_cold_block(more);
        self.f.switch_to_block(more);
        let at = self.f.append_block_param(more, types::I64);
        let so_far = self.f.append_block_param(more, types::I64);
        let word = self.f.ins().uload32(flags(), at, 0);
        let so_far = self.f.ins().iadd(so_far, word);
        let at = self.f.ins().iadd_imm_s(at, 4);
        let is_more = self.f.ins().icmp(IntCC::UnsignedLessThan, at, header_end);
        self.f.ins().brif(is_more, more, &[at.into(), so_far.into()], last, &[]);
        self.f.set_cold_block(last);
        self.f.switch_to_block(last);
        self.f.ins().jump(done, &[so_far.into()]);

        self.f.switch_to_block(done);
        if let Some(result) = result {
            self.header_sums.insert(result, sum);
        }
        let folded = self.fold_64(sum);
        self.swap_16(folded)
    }

    fn five_words(&mut self, net: clif::Value) -> clif::Value {
        let mut sum = self.f.ins().uload32(flags(), net, 0);
        for at in [4, 8, 12, 16] {
            let word = self.f.ins().uload32(flags(), net, at);
            sum = self.f.ins().iadd(sum, word);
        }
        sum
    }

    /// Whether a comparison tests a header's sum for correctness.
    pub(super) fn is_right_sum_test(&self, sum: Value, other: Value) -> bool {
        self.header_sums.contains_key(&sum) && self.bounds.constant(other) == Some(0xffff)
    }

    /// Whether a sum folds to 0xffff, that is, whether it is a multiple of that and not 0. One multiplication
    /// tests that, without folding.
    pub(super) fn is_right_sum(&mut self, sum: Value) -> clif::Value {
        let sum = self.header_sums[&sum];
        let quotient = self.f.ins().imul_imm_s(sum, INVERSE as i64);
        // 0 becomes the largest number.
        let less_one = self.f.ins().iadd_imm_s(quotient, -1);
        let right = self.f.ins().icmp_imm_u(IntCC::UnsignedLessThan, less_one, MOST_QUOTIENT as i64);
        self.f.ins().uextend(types::I64, right)
    }
}
