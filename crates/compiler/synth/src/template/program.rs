//! The program of a table of flow-cache entries.

use super::cache_entry;
use super::fault::Fault;
use super::key::{KEY_WORDS, Layout};
use super::model::Template;
use ir::eval::Exit;
use ir::expr::{load, now_ns, record};
use ir::program::{BlockId, Matching, Program, TableDecl, Term, Value};
use ir::verify::VerifyError;
use ir::{Builder, Inst, Verified};
use packet::field::Base;

/// The program under construction.
struct Writer {
    f: Builder,
    grain_ns: u64,
    /// The block of packets that run through the whole program.
    whole: BlockId,
}

/// A program that looks up the entry of a packet's flow and runs its template. Packets without an entry, or
/// whose guards fail, leave unchanged by the slow path after those of `whole`: they run through that program.
/// `layouts` has one layout for each entry point, `None` if all its packets are to run through the whole
/// program. Templates are identified by their index in the list, and belong to an entry point. The time
/// of the last packet in an entry is up to `grain_ns` old, so that few packets write to their entry.
///
/// # Errors
/// When it breaks the IR's invariants: a bug.
pub fn program(
    whole: &Verified,
    layouts: &[Option<Layout>],
    templates: &[(usize, Template)],
    entry_bytes: usize,
    grain_ns: u64,
) -> Result<Verified, VerifyError> {
    let entries = TableDecl {
        name: "flows".into(),
        key_words: KEY_WORDS as u8,
        record_bytes: entry_bytes as u16,
        matching: Matching::Unknown,
        deltas: vec![],
    };
    let mut slow = whole.slow.clone();
    slow.push("whole program".into());
    let mut f = Builder::of(Program {
        name: "templates".into(),
        outputs: whole.outputs,
        reasons: whole.reasons.clone(),
        cells: whole.cells.clone(),
        tables: vec![entries],
        slow,
        ..Program::default()
    });
    let path = Term::Slow(whole.slow.len() as u16);
    let whole_program = f.aside(|f| f.end(path));
    let mut writer = Writer { f, grain_ns, whole: whole_program };
    for input in 0..whole.entries.len() {
        writer.f.next_entry();
        let is_own = |at: usize| at == input || Fault::KeyWithoutInput.is_planted();
        let own = templates.iter().enumerate().filter(|(_, (at, _))| is_own(*at));
        let own: Vec<(u64, &Template)> = own.map(|(number, (_, own))| (number as u64, own)).collect();
        match layouts.get(input).copied().flatten() {
            Some(layout) if !own.is_empty() => writer.input(input, layout, &own),
            _ => writer.f.jump(whole_program),
        }
    }
    writer.f.finish()
}

impl Writer {
    fn input(&mut self, input: usize, layout: Layout, templates: &[(u64, &Template)]) {
        self.f.need(Base::Data, layout.bytes().into(), self.whole);
        let [pair, ports, protocol] = layout.fields().map(|field| self.f.eval(load(field)));
        let mut rest = self.f.eval(ports << 16 | protocol | ((input as u64 & 0xff) << 8));
        if Layout::key_bits() != u64::MAX {
            rest = self.f.eval(rest & Layout::key_bits());
        }
        let rec = self.f.lookup(0, &[pair, rest], self.whole);
        let cases = templates.iter().map(|(number, template)| (*number, self.template(rec, template)));
        let cases = cases.collect();
        self.f.switch(record(rec, cache_entry::TEMPLATE, 2), cases, self.whole);
    }

    fn template(&mut self, rec: Value, template: &Template) -> BlockId {
        let Template { need, room, insts, guards, effects, tallies, exit, .. } = template;
        let Writer { f, grain_ns, whole } = self;
        // Invalidates the entry; the packet runs through the whole program.
        let els = f.aside(|f| {
            f.store_record(rec, cache_entry::TEMPLATE, 2, cache_entry::OVER);
            f.jump(*whole);
        });
        let (late, taken) = (f.block(), f.block());
        f.aside(|f| {
            f.need(Base::Data, usize::from(*need), els);
            if *room > 0 {
                f.room(usize::from(*room), els);
            }
            let mut values = vec![rec];
            let placed = |mut inst: Inst, values: &[Value]| {
                inst.map_operands(|value| *value = values[value.0 as usize]);
                inst
            };
            for inst in insts {
                values.push(f.value(placed(*inst, &values)));
            }
            for (value, is_set) in guards {
                let value = values[value.0 as usize];
                if *is_set { f.check(value, els) } else { f.leave_if(value, els) }
            }
            let tallies = tallies.iter().map(|(one, at)| (one.placed(|value| values[value.0 as usize]), *at));
            let (often, seldom): (Vec<_>, Vec<_>) =
                tallies.partition(|(tally, at)| tally.is_settled(rec, *at).is_none());
            let is_recent = now_ns().at_most(record(rec, cache_entry::LAST_NS, 8) + *grain_ns);
            let settled = seldom.iter().filter_map(|(tally, at)| tally.is_settled(rec, *at));
            let is_settled = settled.fold(is_recent, |all, one| all & one);
            let is_settled = f.eval(is_settled);
            f.end(Term::Branch(is_settled, taken, late));
            // A packet that the entry counts.
            f.at(late);
            f.store_record(rec, cache_entry::LAST_NS, 8, now_ns());
            seldom.iter().for_each(|(tally, at)| tally.count(f, rec, *at));
            f.jump(taken);
            f.at(taken);
            often.iter().for_each(|(tally, at)| tally.count(f, rec, *at));
            effects.iter().for_each(|effect| f.act(placed(*effect, &values)));
            f.end(match *exit {
                Exit::Emit(port) => Term::Emit(port),
                Exit::Drop(reason) => Term::Drop(reason),
                Exit::Slow(slow) => Term::Slow(slow),
            });
        })
    }
}
