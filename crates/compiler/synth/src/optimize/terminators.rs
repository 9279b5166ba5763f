//! Terminators of blocks: the successors of a packet's block, and the facts in each of them.

use super::forward::Forward;
use super::optimizer_state::IsSet;
use super::value::{Expr, Vn};
use ir::analysis::interval::Interval;
use ir::{BinOp, BlockId, Term, Value};
use packet::field::Base;
use std::collections::HashSet;

/// If the default is taken: the number of cases up to which each is recorded as not taken.
const FEW_CASES: usize = 4;

impl Forward<'_> {
    fn jump(&mut self, to: BlockId) -> Term {
        let state = self.state.clone();
        self.send(to, state, &[]);
        Term::Jump(to, vec![])
    }

    /// Rewrites the end of a block.
    pub(super) fn term(&mut self, term: &Term) -> Term {
        match term {
            Term::Jump(to, args) => {
                let numbers: Vec<Vn> = args.iter().map(|arg| self.number(*arg)).collect();
                let args = numbers.iter().map(|number| self.value(*number)).collect();
                let state = self.state.clone();
                self.send(*to, state, &numbers);
                Term::Jump(*to, args)
            }
            Term::Branch(value, yes, no) => self.branch(self.number(*value), *yes, *no),
            Term::Need { base, bytes, then, els } => self.need(*base, *bytes, *then, *els),
            Term::Room { bytes, then, els } => {
                if self.state.extent.room() >= u32::from(*bytes) || then == els {
                    return self.jump(*then);
                }
                self.send(*els, self.state.clone(), &[]);
                let mut state = self.state.clone();
                state.extent.free(*bytes);
                self.send(*then, state, &[]);
                term.clone()
            }
            Term::Switch(value, cases, default) => self.switch(self.number(*value), cases, *default),
            Term::EmitTo(value, els) => self.emit_to(self.number(*value), *els),
            Term::Emit(_) | Term::Drop(_) | Term::Slow(_) => term.clone(),
            &Term::Lookup { table, ref key, ref args, rec, hit, miss, stage } => {
                let key: Vec<Vn> = key.iter().map(|word| self.number(*word)).collect();
                let Some(args) = args else {
                    // Packets that did not wait with others of the stage would overtake them.
                    let may_skip = stage.is_none() || !self.program.is_barrier(term, self.known.is_walked);
                    if may_skip && let Some(known) = self.known_outcome(table, &key, rec, (hit, miss)) {
                        return known;
                    }
                    let words = key.iter().map(|word| self.value(*word)).collect();
                    let rec = self.lookup_boundary(rec, hit, miss, (table, key), false);
                    return Term::Lookup { table, key: words, args: None, rec, hit, miss, stage };
                };
                let words = key.iter().map(|word| self.value(*word)).collect();
                let args = args.iter().map(|arg| self.value(self.number(*arg))).collect();
                self.state.looked.retain(|looked| looked.0 != table);
                let rec = self.lookup_boundary(rec, hit, miss, (table, key), true);
                Term::Lookup { table, key: words, args: Some(args), rec, hit, miss, stage }
            }
        }
    }

    /// Continues behind the stage boundary of a lookup. The outcome of one that creates nothing is recorded.
    fn lookup_boundary(
        &mut self,
        rec: Value,
        hit: BlockId,
        miss: BlockId,
        (table, key): (u16, Vec<Vn>),
        creates: bool,
    ) -> Value {
        let (number, value) = (self.values.own(Interval::ALL), self.fresh());
        self.records.insert(number, (table, key.clone()));
        self.numbers[rec.0 as usize] = number;
        if self.order.preds[hit.index()] == 1 {
            self.settle_at(number, value, hit);
        }
        let mut state = self.state.clone();
        state.pass_barrier(&mut self.values, &self.anchors);
        let mut missed = state.clone();
        if !creates {
            missed.note_lookup((table, key.clone(), None));
            state.note_lookup((table, key, Some(number)));
        }
        self.send(hit, state, &[]);
        self.send(miss, missed, &[]);
        value
    }

    /// What takes the place of a lookup whose outcome is known.
    fn known_outcome(
        &mut self,
        table: u16,
        key: &[Vn],
        rec: Value,
        (hit, miss): (BlockId, BlockId),
    ) -> Option<Term> {
        let known = self.state.looked.iter().find(|looked| looked.0 == table && looked.1 == key);
        match known?.2 {
            None => Some(self.jump(miss)),
            Some(record) => {
                self.holder(record, true)?;
                self.numbers[rec.0 as usize] = record;
                Some(self.jump(hit))
            }
        }
    }

    fn need(&mut self, base: Base, bytes: u16, then: BlockId, els: BlockId) -> Term {
        let at = self.state.at[base as usize];
        let extent = &self.state.extent;
        // For the verifier, headroom that was made by pulling is taken from the packet's known bytes.
        let pulls = base == Base::Data && self.relies_on_pulls;
        let there = extent.accessible(base) >= u32::from(bytes)
            && (!pulls || extent.in_packet(base) >= u32::from(bytes));
        let known =
            self.state.set[base as usize] == IsSet::Yes && self.state.bytes_from(at) >= i64::from(bytes);
        if there && known || then == els {
            return self.jump(then);
        }
        let is_set = self.state.set[base as usize];
        if is_set == IsSet::No || is_set == IsSet::Yes && self.state.lacks(at, bytes.into()) {
            return self.jump(els);
        }
        let mut short = self.state.clone();
        if is_set == IsSet::Yes && self.known.has_copies {
            short.note_lack(at, bytes.into());
        }
        self.send(els, short, &[]);
        let mut state = self.state.clone();
        state.extent.need(base, bytes);
        state.set[base as usize] = IsSet::Yes;
        state.note_bytes(at, i64::from(bytes));
        self.send(then, state, &[]);
        Term::Need { base, bytes, then, els }
    }

    fn branch(&mut self, test: Vn, yes: BlockId, no: BlockId) -> Term {
        if yes == no {
            return self.jump(yes);
        }
        let (mut taken, mut other) = (self.state.clone(), self.state.clone());
        if !self.values.assume(test, true, &mut taken.facts) {
            return self.jump(no);
        }
        if !self.values.assume(test, false, &mut other.facts) {
            return self.jump(yes);
        }
        self.learn(test, &mut taken);
        // Avoids the negation of a value that is available.
        let (mut test, mut swapped) = (test, false);
        if let Expr::Bin(BinOp::Eq, inner, zero) = self.values.expr(test)
            && self.values.number(zero) == Some(0)
            && self.holder(test, false).is_none()
            && self.holder(inner, false).is_some()
        {
            (test, swapped) = (inner, true);
        }
        let value = self.value(test);
        self.send(yes, taken, &[]);
        self.send(no, other, &[]);
        if swapped { Term::Branch(value, no, yes) } else { Term::Branch(value, yes, no) }
    }

    fn switch(&mut self, value: Vn, cases: &[(u64, BlockId)], default: BlockId) -> Term {
        if let Some(number) = self.values.range(value, &self.state.facts).number() {
            let case = cases.iter().find(|case| case.0 == number);
            return self.jump(case.map_or(default, |case| case.1));
        }
        let mut numbers: Vec<u64> = cases.iter().map(|case| case.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let none = self.values.within(value, numbers.clone());
        if cases.iter().all(|case| case.1 == default)
            || self.values.truth(none, &self.state.facts) == Some(false)
        {
            return self.jump(default);
        }
        let mut other = self.state.clone();
        let mut open = self.values.assume(none, false, &mut other.facts);
        let mut left = vec![];
        let mut seen = HashSet::new();
        for &(number, to) in cases {
            let equal = self.values.bin_const(BinOp::Eq, value, number, &self.state.facts);
            let mut state = self.state.clone();
            if !seen.insert(number) || !self.values.assume(equal, true, &mut state.facts) {
                continue;
            }
            left.push((number, to));
            self.send(to, state, &[]);
        }
        for &number in numbers.iter().take(FEW_CASES) {
            let equal = self.values.bin_const(BinOp::Eq, value, number, &self.state.facts);
            open = open && self.values.assume(equal, false, &mut other.facts);
        }
        if !open {
            // Every remaining packet is one of the cases: the last one becomes the default.
            if let Some((_, last)) = left.pop() {
                if left.is_empty() {
                    return Term::Jump(last, vec![]);
                }
                return Term::Switch(self.value(value), left, last);
            }
        }
        self.send(default, other, &[]);
        if left.is_empty() {
            return Term::Jump(default, vec![]);
        }
        if let [(number, to)] = left[..] {
            let equal = self.values.bin_const(BinOp::Eq, value, number, &self.state.facts);
            if let Some(test) = self.operand(equal) {
                return Term::Branch(test, to, default);
            }
        }
        Term::Switch(self.value(value), left, default)
    }

    fn emit_to(&mut self, port: Vn, els: BlockId) -> Term {
        let outputs = u64::from(self.program.outputs);
        let range = self.values.range(port, &self.state.facts);
        match range.number() {
            Some(port) if port < outputs => return Term::Emit(port as u16),
            _ if range.lo >= outputs => return self.jump(els),
            _ => {}
        }
        let mut state = self.state.clone();
        let above = Interval { lo: outputs, hi: u64::MAX };
        // Even if every port exists, the block after it must exist.
        let _ = self.values.assume_range(port, above, &mut state.facts);
        self.send(els, state, &[]);
        Term::EmitTo(self.value(port), els)
    }
}
