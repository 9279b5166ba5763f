//! Leaves out steps whose outcome is known, and merges steps.
//!
//! On each way to a step some tests have been made. A way is moved past a step whose outcome follows from
//! them on every such path. To bound the work, a step keeps at most [`MOST_PATHS`] paths; where there are
//! more, only what they have in common is kept.

use super::{Jump, Step, Steps};
use std::collections::HashMap;

/// Most paths to a step that are told apart.
const MOST_PATHS: usize = 4;

/// The outcome of a test: the first step that makes it, and whether it passed.
type Fact = (usize, bool);

impl Step {
    fn is_one_bit(&self) -> bool {
        self.mask.is_power_of_two()
    }

    /// Asks for the opposite of a bit.
    fn flip(&mut self) {
        self.value ^= self.mask;
        self.jumps.swap(0, 1);
        self.short = !self.short;
    }

    /// Whether both tests may pass: they agree about the bits that both compare.
    fn agrees(&self, other: &Step) -> bool {
        let both = self.mask & other.mask;
        self.mask == 0 || other.mask == 0 || self.at == other.at && (self.value ^ other.value) & both == 0
    }

    /// The outcome of another test behind this one, if it is known. `known` bytes are there for sure.
    fn decides(&self, passed: bool, other: &Step, known: usize) -> Option<bool> {
        if other.mask == 0 {
            return Some(true);
        }
        if self.at != other.at {
            return None;
        }
        let both = self.mask & other.mask;
        let outcome = if passed {
            // It tests bits that are known now.
            (both == other.mask).then_some(self.value & both == other.value)?
        } else if both == self.mask && self.value == other.value & both {
            // It asks for all that failed, and perhaps for more.
            false
        } else if self.is_one_bit() && self.mask == other.mask {
            true
        } else {
            return None;
        };
        // A packet that was too short for this test says nothing of its bytes.
        let reach = self.reach();
        let told = self.short != passed || reach <= known || reach <= other.reach() && outcome == other.short;
        told.then_some(outcome)
    }
}

impl Steps {
    /// Sorts, leaves out and merges steps. `order` is the rank of an offset.
    pub(super) fn shorten(&mut self, order: impl Fn(u16) -> u16) {
        if self.steps.is_empty() {
            return;
        }
        self.sort(order);
        self.skip_decided();
        self.merge();
        self.prune();
    }

    /// Sorts tests that lead to one place if any of them fails (or passes): they may stand in any order.
    pub(super) fn sort(&mut self, order: impl Fn(u16) -> u16) {
        // The only step that leads to one; none for those behind the first, which Click does not move.
        let mut only: Vec<Option<usize>> = vec![None; self.steps.len()];
        let mut entries = vec![0; self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            for way in step.jumps {
                if let Jump::Step(to) = way {
                    entries[to] += 1;
                    only[to] = (entries[to] == 1 && at > 0).then_some(at);
                }
            }
        }
        let rank = |step: &Step| (order(step.at), step.mask);
        let mut at = 0;
        while at < self.steps.len() {
            let here = self.steps[at];
            let swapped = [0, 1].into_iter().find(|way| {
                let Jump::Step(next) = here.jumps[*way] else { return false };
                let then = &self.steps[next];
                only[next].is_some()
                    && here.jumps[1 - way] == then.jumps[1 - way]
                    && (rank(&here), here.value) > (rank(then), then.value)
            });
            let Some(way) = swapped else {
                at += 1;
                continue;
            };
            if let Jump::Step(next) = here.jumps[way] {
                let then = self.steps[next];
                self.steps[next] = here;
                self.steps[next].jumps[way] = then.jumps[way];
                self.steps[at] = then;
                self.steps[at].jumps[way] = Jump::Step(next);
            }
            // The step that moved up may belong further up.
            at = only[at].unwrap_or(at);
        }
    }

    /// The bytes that are there for sure at each step.
    fn known_lengths(&self) -> Vec<usize> {
        let mut known = vec![usize::MAX; self.steps.len()];
        if let Some(first) = known.first_mut() {
            *first = 0;
        }
        for (at, step) in self.steps.iter().enumerate() {
            for passed in [false, true] {
                let there = if step.short == passed { known[at] } else { known[at].max(step.reach()) };
                if let Jump::Step(to) = step.jumps[usize::from(passed)] {
                    known[to] = known[to].min(there);
                }
            }
        }
        known
    }

    /// Moves jumps past the steps whose outcome is known on them.
    fn skip_decided(&mut self) {
        let known = self.known_lengths();
        let mut firsts = HashMap::new();
        let same: Vec<usize> = (self.steps.iter().enumerate())
            .map(|(at, step)| *firsts.entry((step.at, step.mask, step.value, step.short)).or_insert(at))
            .collect();
        let mut paths: Vec<Vec<Vec<Fact>>> = vec![vec![vec![]]];
        for at in 0..self.steps.len() {
            if at > 0 {
                let mut here = self.paths_to(at, &same, &paths);
                if let Some(passed) = known_on(&here, same[at]) {
                    // Ways lead past it that those of single steps did not show.
                    self.lead(0..at, Jump::Step(at), self.steps[at].jumps[usize::from(passed)]);
                    here.clear();
                }
                paths.push(here);
            }
            if paths[at].is_empty() {
                // Nothing gets here.
                self.steps[at].jumps = [Jump::Drop; 2];
                continue;
            }
            for passed in [true, false] {
                let Jump::Step(to) = self.steps[at].jumps[usize::from(passed)] else { continue };
                let visits: Vec<(Vec<usize>, Jump)> = (paths[at].iter())
                    .map(|path| self.skip_from(to, path, (same[at], passed), &known))
                    .collect();
                self.steps[at].jumps[usize::from(passed)] = common(&visits, to);
            }
        }
    }

    /// The paths to a step, by the steps before it.
    fn paths_to(&self, at: usize, same: &[usize], paths: &[Vec<Vec<Fact>>]) -> Vec<Vec<Fact>> {
        let mut found: Vec<Vec<Fact>> = vec![];
        for (from, step) in self.steps[..at].iter().enumerate() {
            let leads = [false, true].map(|passed| step.jumps[usize::from(passed)] == Jump::Step(at));
            if leads == [true, true] {
                found.extend(paths[from].iter().cloned());
                continue;
            }
            let Some(passed) = [false, true].into_iter().find(|passed| leads[usize::from(*passed)]) else {
                continue;
            };
            let fact = (same[from], passed);
            for path in paths[from].iter().filter(|path| !path.contains(&(fact.0, !passed))) {
                let mut path: Vec<Fact> = path.iter().copied().filter(|other| *other != fact).collect();
                path.push(fact);
                found.push(path);
            }
        }
        if found.len() > MOST_PATHS {
            let mut shared = found[0].clone();
            shared.retain(|fact| found[1..].iter().all(|path| path.contains(fact)));
            found = vec![shared];
        }
        found
    }

    /// The steps on the way to the first one whose outcome is not known, and where it ends.
    fn skip_from(&self, to: usize, path: &[Fact], last: Fact, known: &[usize]) -> (Vec<usize>, Jump) {
        let (mut visited, mut way) = (vec![], Jump::Step(to));
        while let Jump::Step(step) = way {
            visited.push(step);
            let outcome = std::iter::once(&last).chain(path.iter().rev()).find_map(|(made, passed)| {
                self.steps[*made].decides(*passed, &self.steps[step], known[*made])
            });
            match outcome {
                Some(passed) => way = self.steps[step].jumps[usize::from(passed)],
                None => break,
            }
        }
        (visited, way)
    }

    /// Makes one step of two that test the same word, where their jumps allow it.
    fn merge(&mut self) {
        for at in (0..self.steps.len()).rev() {
            while self.merge_one(at) {}
        }
    }

    fn merge_one(&mut self, at: usize) -> bool {
        let mut step = self.steps[at];
        if let Jump::Step(next) = step.jumps[0] {
            let no = self.steps[next];
            let differs = step.value ^ no.value;
            if no.agrees(&step) && step.is_one_bit() {
                step.flip();
                self.steps[at] = step;
            } else if step.at != 0
                && step.at == no.at
                && step.mask != 0
                && step.mask == no.mask
                && (step.short || !no.short)
                && step.jumps[1] == no.jumps[1]
                && differs & differs.wrapping_sub(1) == 0
                && (Step { mask: step.mask & !differs, ..step }).reach() == step.reach()
            {
                // Two values that differ in one bit: the bit does not matter.
                step.mask &= !differs;
                step.value &= !differs;
                step.jumps[0] = no.jumps[0];
                self.steps[at] = step;
                return true;
            }
        }
        let Jump::Step(next) = step.jumps[1] else { return false };
        if step.jumps[0] == self.steps[next].jumps[1] && self.steps[next].is_one_bit() {
            self.steps[next].flip();
        }
        let yes = self.steps[next];
        let short_alike =
            step.mask == 0 || yes.mask == 0 || step.short == yes.short || step.reach() >= yes.reach();
        if step.jumps[0] != yes.jumps[0] || !step.agrees(&yes) || !short_alike {
            return false;
        }
        if step.mask == 0 {
            step.at = yes.at;
        }
        step.value |= yes.value;
        step.mask |= yes.mask;
        step.jumps[1] = yes.jumps[1];
        self.steps[at] = step;
        true
    }

    /// Leaves out steps that decide nothing and those that nothing leads to.
    fn prune(&mut self) {
        let count = self.steps.len();
        let mut leads = vec![Jump::Drop; count];
        for at in (0..count).rev() {
            let step = &mut self.steps[at];
            step.jumps = step.jumps.map(|way| if let Jump::Step(to) = way { leads[to] } else { way });
            let decides = step.jumps[0] != step.jumps[1] && step.mask != 0;
            leads[at] = if decides { Jump::Step(at) } else { step.jumps[1] };
        }
        let Some(Jump::Step(first)) = leads.first().copied() else {
            self.all = leads.first().copied();
            self.steps.clear();
            return;
        };
        self.steps[0] = self.steps[first];
        let mut reached = vec![false; count];
        reached[0] = true;
        let mut moved = vec![0; count];
        let mut kept = vec![];
        for at in 0..count {
            if reached[at] {
                moved[at] = kept.len();
                kept.push(self.steps[at]);
                for way in self.steps[at].jumps {
                    if let Jump::Step(to) = way {
                        reached[to] = true;
                    }
                }
            }
        }
        for step in &mut kept {
            step.jumps =
                step.jumps.map(|way| if let Jump::Step(to) = way { Jump::Step(moved[to]) } else { way });
        }
        self.steps = kept;
        self.all = None;
    }
}

/// The outcome of a test, if it is the same on all paths.
fn known_on(paths: &[Vec<Fact>], test: usize) -> Option<bool> {
    let mut outcomes = paths.iter().map(|path| path.iter().rfind(|fact| fact.0 == test).map(|fact| fact.1));
    let first = outcomes.next()??;
    outcomes.all(|outcome| outcome == Some(first)).then_some(first)
}

/// The last step that is on all ways, or the end that all have.
fn common(visits: &[(Vec<usize>, Jump)], first: usize) -> Jump {
    let Some((steps, end)) = visits.first() else { return Jump::Step(first) };
    if !matches!(end, Jump::Step(_)) && visits.iter().all(|(_, other)| other == end) {
        return *end;
    }
    let shared = steps.iter().filter(|step| visits.iter().all(|(visited, _)| visited.contains(step)));
    Jump::Step(shared.copied().max().unwrap_or(first))
}
