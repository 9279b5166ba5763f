//! Reads and writes: packet bytes, descriptor, annotations, cells, records.

use super::Lowering;
use super::memory::flags;
use crate::abi::Context;
use crate::intrinsic;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use ir::program::{Inst, Value};
use packet::field::{Base, Field};
use shm::descriptor::{BUF_BYTES, NO_HEADER, offset};
use std::mem::offset_of;

fn base_offset(base: Base) -> i32 {
    match base {
        Base::Data => offset::DATA,
        Base::Mac => offset::MAC,
        Base::Net => offset::NET,
        Base::Trans => offset::TRANS,
    }
}

impl Lowering<'_, '_> {
    /// Reads the addresses that the region needs.
    pub(super) fn load_bases(&mut self) {
        if !self.touched.read.contains(&true) {
            return;
        }
        let buf = self.f.ins().load(types::I64, flags(), self.packet, offset::BUF);
        for base in Base::ALL.into_iter().filter(|base| self.touched.read[*base as usize]) {
            let at = self.f.ins().uload16(types::I64, flags(), self.packet, base_offset(base));
            let address = self.f.ins().iadd(buf, at);
            self.f.def_var(self.bases[base as usize], address);
            self.f.def_var(self.offsets[base as usize], at);
        }
        if self.touched.end {
            let len = self.f.ins().uload32(flags(), self.packet, offset::LEN);
            self.f.def_var(self.len, len);
        }
    }

    /// Whether the first segment has at least that many bytes from a base on. An unset header's offset is
    /// after every end.
    pub(super) fn is_there(&mut self, base: Base, bytes: clif::Value) -> clif::Value {
        let condition = IntCC::UnsignedLessThanOrEqual;
        if base == Base::Data {
            let len = self.f.use_var(self.len);
            return self.f.ins().icmp(condition, bytes, len);
        }
        let start = self.f.use_var(self.offsets[base as usize]);
        let (needed, end) = (self.f.ins().iadd(start, bytes), self.end());
        self.f.ins().icmp(condition, needed, end)
    }

    /// The first segment's end, counted from the buffer's start.
    fn end(&mut self) -> clif::Value {
        let data = self.f.use_var(self.offsets[Base::Data as usize]);
        let len = self.f.use_var(self.len);
        self.f.ins().iadd(data, len)
    }

    pub(super) fn access(&mut self, inst: Inst) -> Option<clif::Value> {
        match inst {
            Inst::Load(field) => return Some(self.load_field(field)),
            Inst::Store(field, value) => match self.bounds.exchanged(value) {
                Some((whole, half)) if field.is_byte_aligned() && half * 2 == u64::from(field.width) => {
                    self.store_exchanged(field, whole, half);
                }
                _ => {
                    let value = self.value(value);
                    self.store_field(field, value);
                }
            },
            Inst::LoadAnno(anno) => {
                let at = offset::ANNO + i32::from(anno.offset);
                return Some(self.load_sized(self.packet, at, anno.len));
            }
            Inst::StoreAnno(anno, value) => {
                let (value, at) = (self.value(value), offset::ANNO + i32::from(anno.offset));
                self.store_sized(self.packet, at, anno.len, value);
            }
            Inst::Len => return Some(self.f.ins().uload32(flags(), self.packet, offset::TOTAL)),
            Inst::Avail(base) => return Some(self.avail(base)),
            Inst::Offset(base) => return Some(self.offset(base)),
            Inst::SetBase(base, value) => {
                let (from_data, most) = (self.value(value), self.bounds.most(value));
                self.set_base(base, from_data, most);
            }
            Inst::ClearBase(base) => {
                let none = self.f.ins().iconst(types::I64, i64::from(NO_HEADER));
                self.write_base(base, none);
            }
            Inst::Pull(value) => {
                let is_there = self.known.has(Base::Data, self.bounds.most(value));
                let value = self.value(value);
                self.pull(value, is_there);
            }
            Inst::Push(bytes) => self.push(bytes),
            Inst::Take(value) => {
                let fits = self.known.single && self.known.within == Some(value);
                let value = self.value(value);
                self.take(value, fits);
            }
            Inst::CellLoad(cell) if self.cells.contains_key(&cell) => {
                return self.cells.get(&cell).copied();
            }
            Inst::CellLoad(cell) => {
                let cells = self.cells();
                return Some(self.f.ins().load(types::I64, flags(), cells, 8 * i32::from(cell)));
            }
            Inst::CellStore(cell, value) => {
                let (value, cells) = (self.value(value), self.cells());
                self.f.ins().store(flags(), value, cells, 8 * i32::from(cell));
            }
            Inst::CellAdd(cell, value) => {
                let (value, at, cells) = (self.value(value), 8 * i32::from(cell), self.cells());
                let old = self.f.ins().load(types::I64, flags(), cells, at);
                let new = self.f.ins().iadd(old, value);
                self.f.ins().store(flags(), new, cells, at);
            }
            Inst::RecLoad(record, at, bytes) => {
                let record = self.value(record);
                return Some(self.load_sized(record, i32::from(at), bytes));
            }
            Inst::RecStore(record, at, bytes, value) => {
                let (record, value) = (self.value(record), self.value(value));
                self.store_sized(record, i32::from(at), bytes, value);
            }
            Inst::TransportSum(proto) => {
                let proto = self.value(proto);
                return Some(
                    self.call(intrinsic::transport_sum as *const () as usize, &[self.packet, proto]),
                );
            }
            Inst::Now => return Some(self.pointer(None, offset_of!(Context, now_ns))),
            Inst::Timestamp => {
                return Some(self.f.ins().load(types::I64, flags(), self.packet, offset::TIMESTAMP_NS));
            }
            Inst::PacketType => {
                return Some(self.f.ins().uload8(types::I64, flags(), self.packet, offset::PACKET_TYPE));
            }
            Inst::SetPacketType(value) => {
                let value = self.value(value);
                self.f.ins().istore8(flags(), value, self.packet, offset::PACKET_TYPE);
            }
            Inst::FlowHash => return Some(self.f.ins().uload32(flags(), self.packet, offset::FLOW_HASH)),
            Inst::Origin => {
                return Some(self.f.ins().uload16(types::I64, flags(), self.packet, offset::ORIGIN));
            }
            Inst::IpSum | Inst::Const(..) | Inst::Bin(..) | Inst::Select(..) | Inst::CsumUpdate(..) => {}
        }
        None
    }

    /// A little-endian number of 1, 2, 4 or 8 bytes.
    fn load_sized(&mut self, address: clif::Value, at: i32, bytes: u8) -> clif::Value {
        let ins = self.f.ins();
        match bytes {
            1 => ins.uload8(types::I64, flags(), address, at),
            2 => ins.uload16(types::I64, flags(), address, at),
            4 => ins.uload32(flags(), address, at),
            _ => ins.load(types::I64, flags(), address, at),
        }
    }

    fn store_sized(&mut self, address: clif::Value, at: i32, bytes: u8, value: clif::Value) {
        // Narrowed first: the compiler removes that if the number was narrow before.
        let narrow = self.narrow(value, bytes);
        self.f.ins().store(flags(), narrow, address, at);
    }

    pub(super) fn narrow(&mut self, value: clif::Value, bytes: u8) -> clif::Value {
        match width(bytes) {
            types::I64 => value,
            width => self.f.ins().ireduce(width, value),
        }
    }

    /// A big-endian number of 1, 2, 4 or 8 bytes.
    fn load_be(&mut self, address: clif::Value, at: i32, bytes: u8) -> clif::Value {
        if bytes == 1 {
            return self.load_sized(address, at, 1);
        }
        let width = width(bytes);
        let raw = if width == types::I32 {
            // As a header's sum reads its words: one read does for both.
            let word = self.f.ins().uload32(flags(), address, at);
            self.f.ins().ireduce(width, word)
        } else {
            self.f.ins().load(width, flags(), address, at)
        };
        let swapped = self.f.ins().bswap(raw);
        if width == types::I64 { swapped } else { self.f.ins().uextend(types::I64, swapped) }
    }

    fn store_be(&mut self, address: clif::Value, at: i32, bytes: u8, value: clif::Value) {
        if bytes == 1 {
            return self.store_sized(address, at, 1, value);
        }
        let narrow = self.narrow(value, bytes);
        let swapped = self.f.ins().bswap(narrow);
        self.f.ins().store(flags(), swapped, address, at);
    }

    /// The bytes that a field touches, as one big-endian number: in pieces of 4, 2 and 1 bytes if their
    /// number is no power of two, so that no other byte is touched.
    fn load_bytes(&mut self, field: Field) -> clif::Value {
        let address = self.base(field.base);
        let (mut at, mut left) = (i32::from(field.first_byte()), field.byte_len());
        let mut value = None;
        while left > 0 {
            let piece = piece(left);
            let part = self.load_be(address, at, piece);
            value = Some(match value {
                None => part,
                Some(value) => {
                    let shifted = self.f.ins().ishl_imm_s(value, i64::from(piece) * 8);
                    self.f.ins().bor(shifted, part)
                }
            });
            at += i32::from(piece);
            left -= u16::from(piece);
        }
        value.unwrap_or(address)
    }

    fn store_bytes(&mut self, field: Field, value: clif::Value) {
        let address = self.base(field.base);
        let (mut at, mut left) = (i32::from(field.first_byte()), field.byte_len());
        while left > 0 {
            let piece = piece(left);
            left -= u16::from(piece);
            let part = if left == 0 { value } else { self.f.ins().ushr_imm_s(value, i64::from(left) * 8) };
            self.store_be(address, at, piece, part);
            at += i32::from(piece);
        }
    }

    fn load_field(&mut self, field: Field) -> clif::Value {
        let mut value = self.load_bytes(field);
        if field.shift() > 0 {
            value = self.f.ins().ushr_imm_s(value, i64::from(field.shift()));
        }
        if !field.bit.is_multiple_of(8) {
            value = self.f.ins().band_imm_s(value, field.max_value() as i64);
        }
        value
    }

    fn store_field(&mut self, field: Field, value: clif::Value) {
        if field.is_byte_aligned() {
            return self.store_bytes(field, value);
        }
        let mask = field.max_value() << field.shift();
        let old = self.load_bytes(field);
        let old = self.f.ins().band_imm_s(old, !mask as i64);
        let new = self.f.ins().ishl_imm_s(value, i64::from(field.shift()));
        let new = self.f.ins().band_imm_s(new, mask as i64);
        let new = self.f.ins().bor(old, new);
        self.store_bytes(field, new);
    }

    /// Writes a value with its halves exchanged. In the packet's order of bytes that is the same, so that what was read
    /// from a packet is turned as it is there.
    fn store_exchanged(&mut self, field: Field, value: Value, half: u64) {
        let (whole, address) = (self.value(value), self.base(field.base));
        let narrow = self.narrow(whole, field.width / 8);
        let swapped = self.f.ins().bswap(narrow);
        let turned = self.f.ins().rotl_imm_s(swapped, half as i64);
        self.f.ins().store(flags(), turned, address, i32::from(field.first_byte()));
    }

    fn avail(&mut self, base: Base) -> clif::Value {
        if base == Base::Data {
            return self.len();
        }
        let (start, end) = (self.f.use_var(self.offsets[base as usize]), self.end());
        let between = self.f.ins().isub(end, start);
        let zero = self.f.ins().iconst(types::I64, 0);
        let inside = self.f.ins().icmp(IntCC::UnsignedLessThan, start, end);
        self.f.ins().select(inside, between, zero)
    }

    fn offset(&mut self, base: Base) -> clif::Value {
        let [start, data] = [base, Base::Data].map(|base| self.f.use_var(self.offsets[base as usize]));
        let distance = self.f.ins().isub(start, data);
        let unset = self.f.ins().icmp_imm_s(IntCC::Equal, start, i64::from(NO_HEADER));
        let none = self.f.ins().iconst(types::I64, -1);
        self.f.ins().select(unset, none, distance)
    }

    /// Sets a base to an offset from the buffer's start, in the descriptor and the variable.
    fn write_base(&mut self, base: Base, at: clif::Value) {
        self.f.ins().istore16(flags(), at, self.packet, base_offset(base));
        if !self.touched.bases[base as usize] {
            return;
        }
        let buf = self.f.ins().load(types::I64, flags(), self.packet, offset::BUF);
        let address = self.f.ins().iadd(buf, at);
        self.f.def_var(self.bases[base as usize], address);
        self.f.def_var(self.offsets[base as usize], at);
    }

    /// An offset that is known to be small cannot reach [`NO_HEADER`], and its address does not wait for
    /// the descriptor.
    fn set_base(&mut self, base: Base, from_data: clif::Value, most: u64) {
        let data = self.f.use_var(self.offsets[Base::Data as usize]);
        let at = self.f.ins().iadd(data, from_data);
        if most > BUF_BYTES as u64 {
            let none = self.f.ins().iconst(types::I64, i64::from(NO_HEADER));
            let at = self.f.ins().umin(at, none);
            return self.write_base(base, at);
        }
        self.f.ins().istore16(flags(), at, self.packet, base_offset(base));
        if self.touched.bases[base as usize] {
            let data = self.base(Base::Data);
            let address = self.f.ins().iadd(data, from_data);
            self.f.def_var(self.bases[base as usize], address);
            self.f.def_var(self.offsets[base as usize], at);
        }
    }

    /// The length of the first segment, which is read once where the region asks for it.
    fn len(&mut self) -> clif::Value {
        match self.touched.end {
            true => self.f.use_var(self.len),
            false => self.f.ins().uload32(flags(), self.packet, offset::LEN),
        }
    }

    /// Removes bytes from the front; with `is_there`, they are known to be in the first segment.
    fn pull(&mut self, bytes: clif::Value, is_there: bool) {
        let len = self.len();
        let bytes = if is_there { bytes } else { self.f.ins().umin(bytes, len) };
        self.move_front(len, bytes);
    }

    fn push(&mut self, bytes: u16) {
        let len = self.len();
        let less = self.f.ins().iconst(types::I64, -i64::from(bytes));
        self.move_front(len, less);
    }

    /// The packet starts that many bytes further behind.
    fn move_front(&mut self, len: clif::Value, by: clif::Value) {
        let len = self.f.ins().isub(len, by);
        self.f.ins().istore32(flags(), len, self.packet, offset::LEN);
        if self.touched.end {
            self.f.def_var(self.len, len);
        }
        let total = self.f.ins().uload32(flags(), self.packet, offset::TOTAL);
        let total = self.f.ins().isub(total, by);
        self.f.ins().istore32(flags(), total, self.packet, offset::TOTAL);
        let data = self.f.use_var(self.offsets[Base::Data as usize]);
        let data = self.f.ins().iadd(data, by);
        self.f.def_var(self.offsets[Base::Data as usize], data);
        self.f.ins().istore16(flags(), data, self.packet, offset::DATA);
        let address = self.base(Base::Data);
        let address = self.f.ins().iadd(address, by);
        self.f.def_var(self.bases[Base::Data as usize], address);
    }

    /// Only packets of one segment are cut: for them `total` equals `len`. With `fits`, the packet is
    /// known to have one segment and to be no shorter.
    fn take(&mut self, keep: clif::Value, fits: bool) {
        let (single, after) = (self.f.create_block(), self.f.create_block());
        let len = self.len();
        if self.known.single {
            self.f.ins().jump(single, &[]);
        } else {
            let total = self.f.ins().uload32(flags(), self.packet, offset::TOTAL);
            let is_single = self.f.ins().icmp(IntCC::Equal, len, total);
            self.f.ins().brif(is_single, single, &[], after, &[]);
        }
        self.f.switch_to_block(single);
        let new = if fits { keep } else { self.f.ins().umin(len, keep) };
        self.f.ins().istore32(flags(), new, self.packet, offset::LEN);
        self.f.ins().istore32(flags(), new, self.packet, offset::TOTAL);
        self.f.def_var(self.len, new);
        self.f.ins().jump(after, &[]);
        self.f.switch_to_block(after);
    }

    fn call(&mut self, address: usize, args: &[clif::Value]) -> clif::Value {
        let mut signature = clif::Signature::new(cranelift_codegen::isa::CallConv::SystemV);
        signature.params.extend(args.iter().map(|_| clif::AbiParam::new(types::I64)));
        signature.returns.push(clif::AbiParam::new(types::I64));
        let signature = self.f.import_signature(signature);
        let callee = self.f.ins().iconst(types::I64, address as i64);
        let call = self.f.ins().call_indirect(signature, callee, args);
        self.f.inst_results(call)[0]
    }
}

/// The largest power of two, up to 8, that is at most `left`.
fn piece(left: u16) -> u8 {
    match left {
        8.. => 8,
        4..=7 => 4,
        2..=3 => 2,
        _ => 1,
    }
}

/// The type of a number of 1, 2, 4 or 8 bytes.
fn width(bytes: u8) -> clif::Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
