//! The start and the end of a packet, and the positions of its headers.

use super::byte_range::{Point, Position};
use super::forward::Forward;
use super::known::DelayedPulls;
use super::optimization_note::OptimizationNote;
use super::optimizer_state::{IsSet, OptimizerState};
use super::value::{Expr, Vn};
use ir::analysis::interval::Interval;
use ir::{BinOp, Inst};
use packet::field::Base;

/// Buffers are shorter, so a header that starts no further after a packet's first byte is set.
const SURELY_INSIDE: u64 = 0x7fff;
/// The longest packet.
const MOST_BYTES: u64 = u32::MAX as u64;

impl Forward<'_> {
    fn moving(base: Base) -> OptimizationNote {
        OptimizationNote { moves: Some(base), ..OptimizationNote::PURE }
    }

    pub(super) fn set_base(&mut self, base: Base, value: Vn) {
        let value = self.values.settled(value, &self.state.facts);
        let (at, which) = (self.behind_data(value), base as usize);
        let same_as = |other: usize| self.state.at[other] == at && self.state.set[other] == IsSet::Yes;
        let inside = self.values.range(value, &self.state.facts).hi <= SURELY_INSIDE;
        let set = if inside || (0..4).any(same_as) { IsSet::Yes } else { IsSet::Maybe };
        let mut extent = self.state.extent;
        extent.set_base(base, self.values.number(value));
        if self.is_there(self.state.at[which], at)
            && self.state.set[which] == IsSet::Yes
            && set == IsSet::Yes
            && self.state.extent.accessible(base) >= extent.accessible(base)
        {
            return;
        }
        let operand = self.value(value);
        self.act(Inst::SetBase(base, operand), Self::moving(base));
        self.state.at[which] = at;
        self.state.set[which] = set;
        self.state.extent = extent;
        self.state.ip_sum = None;
    }

    /// Whether two positions are one, by what is known here: a header may be behind one whose length was not known.
    fn is_there(&self, a: Position, b: Position) -> bool {
        let [a, b] = [a, b].map(|at| self.anchors.resolved(at, &self.values, &self.state.facts));
        a == b
    }

    pub(super) fn clear_base(&mut self, base: Base) {
        if base == Base::Data || self.state.set[base as usize] == IsSet::No {
            return;
        }
        self.act(Inst::ClearBase(base), Self::moving(base));
        self.state.set[base as usize] = IsSet::No;
        self.state.extent.clear_base(base);
        self.state.ip_sum = None;
    }

    pub(super) fn pull(&mut self, value: Vn) {
        let number = self.values.range(value, &self.state.facts).number();
        if number == Some(0) {
            return;
        }
        let data = self.state.at[Base::Data as usize];
        let is_verified = number.is_some_and(|by| u64::from(self.state.extent.in_packet(Base::Data)) >= by);
        self.state.extent.pull(number);
        let operand = self.values.settled(value, &self.state.facts);
        let operand = self.value(operand);
        let whole =
            number.and_then(|by| i64::try_from(by).ok()).filter(|by| self.state.bytes_from(data) >= *by);
        let whole_for = match whole {
            Some(_) if is_verified => DelayedPulls::Verified,
            Some(_) => DelayedPulls::All,
            None => DelayedPulls::None,
        };
        self.act(Inst::Pull(operand), OptimizationNote { whole: whole_for, ..Self::moving(Base::Data) });
        match whole {
            Some(by) => self.move_front(by),
            None => {
                // Only bytes that are there are removed.
                let point = Point::Somewhere(self.values.fresh());
                let at = Position { anchor: self.anchors.of(point), bytes: 0 };
                self.state.at[Base::Data as usize] = at;
                self.state.note_bytes(at, 0);
                if let Some(most) = self.state.most_bytes_from(data)
                    && let Some(by) = number.and_then(|by| i64::try_from(by).ok())
                {
                    self.state.note_lack(at, most.saturating_sub(by).max(0) + 1);
                }
                self.state.len = None;
                self.state.end_version = self.values.fresh();
            }
        }
    }

    pub(super) fn push(&mut self, bytes: u16) {
        if bytes == 0 {
            return;
        }
        self.act(Inst::Push(bytes), Self::moving(Base::Data));
        self.state.extent.push(bytes);
        self.move_front(-i64::from(bytes));
    }

    /// The packet starts that many bytes further behind: all that it loses are there.
    fn move_front(&mut self, by: i64) {
        let avail = self.data_avail();
        self.state.at[Base::Data as usize].bytes += by;
        self.state.end_version = self.values.fresh();
        let more = by.wrapping_neg() as u64;
        if let Some(len) = self.state.len {
            self.state.len = Some(self.values.bin_const(BinOp::Add, len, more, &self.state.facts));
        }
        if let Some(avail) = avail.filter(|_| self.data_avail().is_none()) {
            let avail = self.values.bin_const(BinOp::Add, avail, more, &self.state.facts);
            self.state.avails.push((self.state.at[Base::Data as usize], avail));
        }
    }

    /// Bytes from the packet's first byte to the end of its first segment, if the program read them.
    fn data_avail(&self) -> Option<Vn> {
        let data = self.state.at[Base::Data as usize];
        self.state.avails.iter().find(|avail| avail.0 == data).map(|avail| avail.1)
    }

    pub(super) fn take(&mut self, value: Vn) {
        let value = self.values.settled(value, &self.state.facts);
        let avail = self.data_avail();
        if let Some(avail) = avail
            && self.values.is_at_most(avail, value, &self.state.facts)
        {
            return;
        }
        let operand = self.value(value);
        self.act(Inst::Take(operand), OptimizationNote::PURE);
        self.state.extent.take(self.values.number(value));
        let data = self.state.at[Base::Data as usize];
        let range = self.values.range(value, &self.state.facts);
        let least = i64::try_from(range.lo).unwrap_or(i64::MAX - FAR_BYTES).min(i64::MAX - FAR_BYTES);
        // A bound is kept as far as its bytes are known to be before the cut.
        let mut ends = std::mem::take(&mut self.state.ends);
        ends.retain_mut(|(anchor, bytes)| {
            let way = self.anchors.distance(data.anchor, *anchor, &self.values, &self.state.facts);
            way.is_some_and(|way| {
                *bytes = (*bytes).min(data.bytes + least - way.hi);
                true
            })
        });
        self.state.ends = ends;
        if !self.keeps_header(value, data) {
            self.state.right = None;
        }
        self.state.ip_sum = None;
        self.state.end_version = self.values.fresh();
        self.state.avails.clear();
        self.state.len = None;
        if self.state.single
            && let Some(avail) = avail
        {
            let fits = self.values.is_at_most(value, avail, &self.state.facts);
            let left =
                if fits { value } else { self.values.bin(BinOp::Min, avail, value, &self.state.facts) };
            self.state.avails.push((data, left));
            self.state.len = Some(left);
        }
    }

    /// Whether a cut after that many bytes keeps the whole IPv4 header whose sum is known.
    fn keeps_header(&mut self, value: Vn, data: Position) -> bool {
        let Some(right) = &self.state.right else { return false };
        if right.at.anchor != data.anchor {
            return false;
        }
        let (ahead, length) = (data.bytes - right.at.bytes, right.length);
        let (end, extra) = self.values.with_const(BinOp::Add, value).unwrap_or((value, 0));
        let longest = length.map_or(60, |length| self.values.range(length, &self.state.facts).hi.min(60));
        let range = self.values.range(value, &self.state.facts);
        if range.lo <= SURELY_INSIDE && range.lo as i64 + ahead >= longest as i64 {
            return true;
        }
        // The end is at least the header's length plus the bytes before the header.
        let small = self.values.range(end, &self.state.facts).hi <= MOST_BYTES && extra <= SURELY_INSIDE;
        small
            && extra as i64 + ahead >= 0
            && length.is_some_and(|length| self.values.is_at_most(length, end, &self.state.facts))
    }

    pub(super) fn extent(&mut self, inst: Inst) -> Vn {
        match inst {
            Inst::Len => {
                let version = self.state.end_version;
                let len = || self.values.leaf(Expr::Len(version), MOST_BYTES);
                let number = *self.state.len.get_or_insert_with(len);
                let least = self.state.bytes_from(self.state.at[Base::Data as usize]).max(0) as u64;
                let range = Interval { lo: least, hi: MOST_BYTES };
                let _ = self.values.assume_range(number, range, &mut self.state.facts);
                let number = self.values.settled(number, &self.state.facts);
                self.read_here(number, inst, OptimizationNote::PURE)
            }
            Inst::Avail(base) => {
                let (at, set) = (self.state.at[base as usize], self.state.set[base as usize]);
                if set == IsSet::No {
                    return self.values.constant(0);
                }
                if set == IsSet::Maybe {
                    let number = self.values.own(Interval::up_to(2 * MOST_BYTES));
                    return self.read_here(number, inst, OptimizationNote::using(base));
                }
                let known = self.state.avails.iter().find(|avail| avail.0 == at).map(|avail| avail.1);
                let number = known.unwrap_or_else(|| {
                    let expr = Expr::Avail(self.state.end_version, at.anchor, at.bytes);
                    self.values.leaf(expr, 2 * MOST_BYTES)
                });
                if known.is_none() {
                    self.state.avails.push((at, number));
                }
                let least = self.state.bytes_from(at).max(0) as u64;
                let range = Interval { lo: least, hi: 2 * MOST_BYTES };
                let _ = self.values.assume_range(number, range, &mut self.state.facts);
                self.read_here(number, inst, OptimizationNote::using(base))
            }
            Inst::Offset(base) => {
                let (at, data) = (self.state.at[base as usize], self.state.at[Base::Data as usize]);
                let by = at.bytes.wrapping_sub(data.bytes) as u64;
                let known = match self.anchors.point(at.anchor) {
                    _ if self.state.set[base as usize] == IsSet::No => Some(self.values.constant(u64::MAX)),
                    _ if self.state.set[base as usize] == IsSet::Maybe => None,
                    _ if at.anchor == data.anchor => Some(self.values.constant(by)),
                    Point::Behind(from, step) if from == data.anchor => {
                        Some(self.values.bin_const(BinOp::Add, step, by, &self.state.facts))
                    }
                    _ => None,
                };
                match known.filter(|number| self.operand(*number).is_some()) {
                    Some(number) => number,
                    None => {
                        let number = self.values.own(Interval::ALL);
                        self.read_here(number, inst, OptimizationNote::using(base))
                    }
                }
            }
            _ => self.values.own(Interval::ALL),
        }
    }

    /// Facts about the packet, other than values, that follow from a test's outcome.
    pub(super) fn learn(&mut self, test: Vn, state: &mut OptimizerState) {
        let Expr::Bin(BinOp::Eq, a, b) = self.values.expr(test) else { return };
        let avail = self.data_avail();
        if avail.is_some()
            && ((avail, state.len) == (Some(a), Some(b)) || (state.len, avail) == (Some(a), Some(b)))
        {
            state.single = true;
            // From here on they are one value.
            let (data, len) = (state.at[Base::Data as usize], state.len);
            state.avails.retain(|avail| avail.0 != data);
            state.avails.extend(len.map(|len| (data, len)));
        }
        self.learn_sum(a, b, state);
    }
}

/// More bytes than any packet has; keeps sums of lengths from overflowing.
const FAR_BYTES: i64 = 1 << 40;
