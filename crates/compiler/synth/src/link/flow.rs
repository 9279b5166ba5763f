//! Computes how many packets passed each wire of a fused region, from those that entered and left.
//!
//! At each part, packets in equal packets out, over wires, exits, drops and slow paths. Entries and exits are
//! counted by their lists anyway. The wires inside are unknown: those of a spanning forest follow from the
//! others, leaf by leaf, and cells count the rest, the *chords*. A chain without branches that join again has
//! no chords. Of wires that could be chords, those on the longest ways are none: most packets take such a way, and
//! only those that take a shorter one are counted.

/// A wire between two parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wire {
    /// The part that sends packets, and its output port.
    pub from: (usize, usize),
    /// The part that receives them, and its input.
    pub to: (usize, usize),
}

/// The computation of the wires' counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// The wires.
    pub wires: Vec<Wire>,
    /// The wires that a cell counts, in the order of their cells.
    pub counted: Vec<usize>,
    /// The computation of the others, in order.
    pub steps: Vec<Step>,
}

/// The packets on a wire are the difference of the other packets that entered a part and left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The wire.
    pub wire: usize,
    /// The part.
    pub part: usize,
    /// The direction of the wire at that part.
    pub side: Side,
}

/// The direction of a wire at a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The wire leads into the part.
    Into,
    /// The wire leads out of the part.
    OutOf,
}

impl Flow {
    /// Computes the packets on each wire. `balance` has, for each part, the packets from entries minus those
    /// that left the fused region there; `counted` has the values of the cells. All numbers wrap. `balance`
    /// is used up.
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

/// Finds chords and the order in which the other wires are computed.
pub(super) fn plan(parts: usize, wires: &[Wire]) -> Flow {
    let mut group: Vec<usize> = (0..parts).collect();
    let mut tree = vec![false; wires.len()];
    let lengths = longest_ways(parts, wires);
    let mut order: Vec<usize> = (0..wires.len()).collect();
    order.sort_by_key(|wire| (std::cmp::Reverse(lengths[*wire]), *wire));
    for at in order {
        let wire = &wires[at];
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

/// For each wire, the number of parts on the longest way by it.
fn longest_ways(parts: usize, wires: &[Wire]) -> Vec<usize> {
    let (mut ahead, mut inputs) = (vec![vec![]; parts], vec![0; parts]);
    for wire in wires {
        ahead[wire.from.0].push(wire.to.0);
        inputs[wire.to.0] += 1;
    }
    // Parts behind all that lead to them; those of a cycle are left out.
    let mut order: Vec<usize> = (0..parts).filter(|part| inputs[*part] == 0).collect();
    let mut seen = 0;
    while let Some(&part) = order.get(seen) {
        seen += 1;
        for to in &ahead[part] {
            inputs[*to] -= 1;
            if inputs[*to] == 0 {
                order.push(*to);
            }
        }
    }
    let (mut until, mut from) = (vec![1; parts], vec![1; parts]);
    for &part in &order {
        for &to in &ahead[part] {
            until[to] = until[to].max(until[part] + 1);
        }
    }
    for &part in order.iter().rev() {
        from[part] = ahead[part].iter().map(|to| from[*to] + 1).max().unwrap_or(1);
    }
    wires.iter().map(|wire| until[wire.from.0] + from[wire.to.0]).collect()
}

fn root(group: &mut [usize], mut at: usize) -> usize {
    while group[at] != at {
        group[at] = group[group[at]];
        at = group[at];
    }
    at
}
