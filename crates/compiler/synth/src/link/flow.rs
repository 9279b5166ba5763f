//! How many packets passed each wire of a fused region, from what came in and what left.
//!
//! At each part, what comes in is what goes out, by wires, exits, drops and slow paths. Entries and exits
//! are counted by their lists anyway. The wires inside are unknown: those of a spanning forest follow from
//! the others, leaf by leaf, and the rest, the *chords*, are counted by cells. In a chain without branches
//! that join again there are no chords.

/// A wire between two parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wire {
    /// The part that packets come from, and its output port.
    pub from: (usize, usize),
    /// The part that they go to, and its input.
    pub to: (usize, usize),
}

/// How the wires' counts are worked out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// The wires.
    pub wires: Vec<Wire>,
    /// Those that a cell counts, in the order of their cells.
    pub counted: Vec<usize>,
    /// How the others follow, one after the other.
    pub steps: Vec<Step>,
}

/// What passed a wire is the difference of what else came into a part and left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The wire.
    pub wire: usize,
    /// The part.
    pub part: usize,
    /// Whether the wire leads out of the part or into it.
    pub side: Side,
}

/// Which end of a wire a part is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The wire leads into the part.
    Into,
    /// It leads out of it.
    OutOf,
}

impl Flow {
    /// What passed each wire, when `balance` is what each part got by entries less what left the fused region
    /// there, and `counted` what the cells say. All numbers wrap. `balance` is used up.
    pub fn solve(&self, balance: &mut [u64], counted: &[u64], passed: &mut Vec<u64>) {
        passed.clear();
        passed.resize(self.wires.len(), 0);
        for (wire, count) in self.counted.iter().zip(counted) {
            self.book(*wire, *count, balance, passed);
        }
        for step in &self.steps {
            let open = balance[step.part];
            let count = match step.side {
                Side::OutOf => open,
                Side::Into => open.wrapping_neg(),
            };
            self.book(step.wire, count, balance, passed);
        }
    }

    fn book(&self, wire: usize, count: u64, balance: &mut [u64], passed: &mut [u64]) {
        let Wire { from, to } = self.wires[wire];
        passed[wire] = count;
        balance[from.0] = balance[from.0].wrapping_sub(count);
        balance[to.0] = balance[to.0].wrapping_add(count);
    }
}

/// Finds chords and the order in which the other wires follow.
pub(super) fn plan(parts: usize, wires: &[Wire]) -> Flow {
    let mut group: Vec<usize> = (0..parts).collect();
    let mut tree = vec![false; wires.len()];
    for (at, wire) in wires.iter().enumerate() {
        let (a, b) = (root(&mut group, wire.from.0), root(&mut group, wire.to.0));
        if a != b {
            group[a] = b;
            tree[at] = true;
        }
    }
    let mut at_part: Vec<Vec<usize>> = vec![vec![]; parts];
    for (at, wire) in wires.iter().enumerate().filter(|(at, _)| tree[*at]) {
        at_part[wire.from.0].push(at);
        at_part[wire.to.0].push(at);
    }
    let mut open: Vec<usize> = at_part.iter().map(Vec::len).collect();
    let mut leaves: Vec<usize> = (0..parts).filter(|part| open[*part] == 1).collect();
    let mut known: Vec<bool> = tree.iter().map(|tree| !tree).collect();
    let mut steps = vec![];
    while let Some(part) = leaves.pop() {
        let Some(&wire) = at_part[part].iter().find(|wire| !known[**wire]) else { continue };
        known[wire] = true;
        let Wire { from, to } = wires[wire];
        let side = if from.0 == part { Side::OutOf } else { Side::Into };
        steps.push(Step { wire, part, side });
        for end in [from.0, to.0] {
            open[end] -= 1;
            if open[end] == 1 {
                leaves.push(end);
            }
        }
    }
    let counted = (0..wires.len()).filter(|at| !tree[*at]).collect();
    Flow { wires: wires.to_vec(), counted, steps }
}

fn root(group: &mut [usize], mut at: usize) -> usize {
    while group[at] != at {
        group[at] = group[group[at]];
        at = group[at];
    }
    at
}
