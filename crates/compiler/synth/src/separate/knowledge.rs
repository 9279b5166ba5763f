//! What packets have behind them at a block that matters for what lies ahead: which fields are known because they were read
//! or written, and which were written.
//!
//! A read ahead is one too many where the field is known; a write ahead replaces one that was done before. Where paths
//! meet that differ in this, neither can be saved.

use ir::{BlockId, Inst, Program, Term};
use packet::field::Field;
use std::collections::BTreeMap;

/// The most fields that are looked at.
const MOST_FIELDS: usize = 128;

/// A set of fields.
pub(super) type Fields = u128;

/// What packets have behind them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Knowledge {
    /// Fields that were read or written.
    pub known: Fields,
    /// Fields that were written.
    pub written: Fields,
}

impl Knowledge {
    /// What is left of it for one who asks for `of`.
    pub(super) fn within(self, of: Knowledge) -> Knowledge {
        Knowledge { known: self.known & of.known, written: self.written & of.written }
    }

    /// How many fields one of the two knows or has written, and not the other.
    pub(super) fn apart(self, other: Knowledge) -> u32 {
        (self.known ^ other.known).count_ones() + (self.written ^ other.written).count_ones()
    }
}

/// What lies ahead.
#[derive(Clone, Copy, Default)]
struct Ahead {
    /// Fields that are read before they are written.
    read: Fields,
    /// Fields that are written, on some path.
    written: Fields,
    /// Fields that are written on each path, but where the packet is dropped.
    always: Fields,
    /// Whether there is a port.
    leads_on: bool,
}

/// A program's fields, and what lies ahead of its blocks.
pub(super) struct Outlook {
    fields: BTreeMap<Field, FieldSets>,
    ahead: Vec<Ahead>,
}

/// What a field is in sets of fields.
#[derive(Clone, Copy, Default)]
struct FieldSets {
    own: Fields,
    /// It and all that are parts of it.
    covered: Fields,
    /// It and all that it is a part of.
    around: Fields,
}

impl Outlook {
    /// That of a program; `order` is its topological order.
    pub(super) fn of(program: &Program, order: &[BlockId]) -> Outlook {
        let mut count: BTreeMap<Field, usize> = BTreeMap::new();
        for id in order {
            for (_, inst) in &program.block(*id).insts {
                if let Inst::Load(field) | Inst::Store(field, _) = inst {
                    *count.entry(*field).or_default() += 1;
                }
            }
        }
        let mut fields: Vec<(Field, usize)> = count.into_iter().collect();
        fields.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        fields.truncate(MOST_FIELDS);
        let sets = |(at, (of, _)): (usize, &(Field, usize))| {
            let all = |is: &dyn Fn(Field) -> bool| -> Fields {
                let these = fields.iter().enumerate().filter(|(_, (field, _))| is(*field));
                these.fold(0, |all, (at, _)| all | 1 << at)
            };
            let (covered, around) =
                (all(&|field| is_inside(field, *of)), all(&|field| is_inside(*of, field)));
            (*of, FieldSets { own: 1 << at, covered, around })
        };
        let fields = fields.iter().enumerate().map(sets).collect();
        let mut outlook = Outlook { fields, ahead: vec![Ahead::default(); program.blocks.len()] };
        for id in order.iter().rev() {
            outlook.ahead[id.index()] = outlook.look(program, *id);
        }
        outlook
    }

    fn look(&self, program: &Program, id: BlockId) -> Ahead {
        let block = program.block(id);
        let mut ahead =
            Ahead { leads_on: matches!(block.term, Term::Emit(_) | Term::EmitTo(..)), ..Ahead::default() };
        let next = block.term.successors();
        ahead.always = match &block.term {
            Term::Drop(_) => Fields::MAX,
            Term::Emit(_) | Term::EmitTo(..) | Term::Slow(_) => 0,
            _ => next.iter().fold(Fields::MAX, |all, to| all & self.ahead[to.index()].always),
        };
        for to in next {
            let behind = self.ahead[to.index()];
            if behind.leads_on {
                ahead.leads_on = true;
                ahead.read |= behind.read;
                ahead.written |= behind.written;
            }
        }
        for (_, inst) in block.insts.iter().rev() {
            match inst {
                Inst::Store(field, _) => {
                    let FieldSets { covered, around, .. } = self.sets(*field);
                    ahead.read &= !covered;
                    // What was written around it matters, too: it is another write to put off than one of the field.
                    ahead.written |= covered | around;
                    ahead.always |= covered;
                }
                Inst::IpSum | Inst::TransportSum(_) => ahead.always = 0,
                Inst::Load(field) => ahead.read |= self.sets(*field).own,
                _ => {}
            }
        }
        ahead
    }

    fn sets(&self, field: Field) -> FieldSets {
        self.fields.get(&field).copied().unwrap_or_default()
    }

    /// What matters at a block.
    pub(super) fn matters(&self, id: BlockId) -> Knowledge {
        let ahead = self.ahead[id.index()];
        match ahead.leads_on {
            true => Knowledge { known: ahead.read, written: ahead.written & !ahead.always },
            false => Knowledge::default(),
        }
    }

    /// What packets have behind them behind a block.
    pub(super) fn behind(&self, program: &Program, id: BlockId, mut knowledge: Knowledge) -> Knowledge {
        for (_, inst) in &program.block(id).insts {
            match inst {
                Inst::Load(field) => knowledge.known |= self.sets(*field).covered,
                Inst::Store(field, _) => {
                    let covered = self.sets(*field).covered;
                    knowledge.known |= covered;
                    knowledge.written |= covered;
                }
                _ => {}
            }
        }
        knowledge
    }
}

/// Whether a field is a part of another one.
fn is_inside(field: Field, of: Field) -> bool {
    let end = |field: Field| field.bit + u16::from(field.width);
    field.base == of.base && field.bit >= of.bit && end(field) <= end(of)
}
