//! Decision diagrams: each path tests a variable once at most, in a fixed order.
//!
//! This is an interval decision diagram (a "firewall decision diagram"). It is reduced and shared, so that
//! rules that overlap, repeat or shadow each other cost nothing. Rules with many independent fields can make
//! it explode: building has a budget of arms and may fail. [`super::chain`] never fails.

use super::formula::{Formula, IP_BYTES, Var};
use super::graph::{Arm, Graph, Node, To};
use packet::field::Base;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The diagram needs more arms than the budget allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooBig;

/// Most arms of one diagram while it is built, intermediate nodes included.
const MAX_ARMS: usize = 40_000;
/// Most arms that all tried orders make together.
const MAX_EFFORT: usize = 250_000;

struct Builder<'a> {
    level: &'a HashMap<Var, usize>,
    order: &'a [Var],
    /// Children come before their parents.
    nodes: Vec<Node>,
    known: HashMap<Node, usize>,
    done: HashMap<(To, To, To), To>,
    /// Arms that may still be made.
    budget: usize,
}

impl Builder<'_> {
    fn level(&self, to: To) -> usize {
        match to {
            To::Node(node) => self.level.get(&self.nodes[node].var).copied().unwrap_or(usize::MAX),
            To::Leaf(_) => usize::MAX,
        }
    }

    fn node(&mut self, var: Var, mut arms: Vec<Arm>) -> Result<To, TooBig> {
        Node::join(&mut arms);
        if let [only] = arms.as_slice() {
            return Ok(only.to);
        }
        let node = Node { var, arms };
        if let Some(&known) = self.known.get(&node) {
            return Ok(To::Node(known));
        }
        self.budget = self.budget.checked_sub(node.arms.len()).ok_or(TooBig)?;
        self.nodes.push(node.clone());
        self.known.insert(node, self.nodes.len() - 1);
        Ok(To::Node(self.nodes.len() - 1))
    }

    /// The diagram of `yes` where `condition` is 1, and of `no` elsewhere.
    fn choose(&mut self, condition: To, yes: To, no: To) -> Result<To, TooBig> {
        match condition {
            To::Leaf(0) => return Ok(no),
            To::Leaf(_) => return Ok(yes),
            To::Node(_) if yes == no => return Ok(yes),
            To::Node(_) if (yes, no) == (To::Leaf(1), To::Leaf(0)) => return Ok(condition),
            To::Node(_) => {}
        }
        if let Some(&known) = self.done.get(&(condition, yes, no)) {
            return Ok(known);
        }
        let parts = [condition, yes, no];
        let level = parts.iter().map(|part| self.level(*part)).min().unwrap_or(0);
        let var = self.order[level];
        let arms = parts.map(|part| match part {
            To::Node(node) if self.nodes[node].var == var => self.nodes[node].arms.clone(),
            other => vec![Arm { last: var.largest(), to: other }],
        });
        let mut at = [0; 3];
        let mut merged = vec![];
        while let (Some(c), Some(y), Some(n)) = (arms[0].get(at[0]), arms[1].get(at[1]), arms[2].get(at[2])) {
            let last = c.last.min(y.last).min(n.last);
            let ends = [c.last, y.last, n.last];
            let to = self.choose(c.to, y.to, n.to)?;
            merged.push(Arm { last, to });
            for (at, end) in at.iter_mut().zip(ends) {
                *at += usize::from(end == last);
            }
        }
        let result = self.node(var, merged)?;
        self.done.insert((condition, yes, no), result);
        Ok(result)
    }

    fn formula(&mut self, formula: &Formula) -> Result<To, TooBig> {
        Ok(match formula {
            Formula::Const(value) => To::Leaf(u32::from(*value)),
            Formula::Atom(var, set) => self.node(*var, Node::split(*var, set, To::Leaf(1), To::Leaf(0)))?,
            Formula::Not(inner) => {
                let inner = self.formula(inner)?;
                self.choose(inner, To::Leaf(0), To::Leaf(1))?
            }
            Formula::All(parts) => parts.iter().try_fold(To::Leaf(1), |all, part| {
                let part = self.formula(part)?;
                self.choose(part, all, To::Leaf(0))
            })?,
            Formula::Any(parts) => parts.iter().try_fold(To::Leaf(0), |any, part| {
                let part = self.formula(part)?;
                self.choose(part, To::Leaf(1), any)
            })?,
            Formula::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                let parts = (self.formula(condition)?, self.formula(yes)?, self.formula(no)?);
                self.choose(parts.0, parts.1, parts.2)?
            }
        })
    }
}

/// The first-match decision over rules with variables in an order; also returns how many arms were made.
fn build(rules: &[(Formula, u32)], default: u32, order: &[Var]) -> (Result<Graph, TooBig>, usize) {
    let level = order.iter().enumerate().map(|(level, var)| (*var, level)).collect();
    let (known, done) = (HashMap::new(), HashMap::new());
    let mut builder = Builder { level: &level, order, nodes: vec![], known, done, budget: MAX_ARMS };
    let root = rules.iter().rev().try_fold(To::Leaf(default), |rest, (formula, decision)| {
        let condition = builder.formula(formula)?;
        builder.choose(condition, To::Leaf(*decision), rest)
    });
    let made = MAX_ARMS - builder.budget;
    let graph = root.map(|root| Graph::turned(builder.nodes, root).pruned());
    (graph, made)
}

/// The fields, and the reaches that guard each of them.
#[derive(Default)]
struct Fields {
    all: BTreeSet<Var>,
    reaches: BTreeSet<Var>,
    behind: BTreeMap<Var, Vec<Var>>,
}

impl Fields {
    fn collect(&mut self, formula: &Formula, open: &[Var]) {
        match formula {
            Formula::Const(_) => {}
            Formula::Atom(var @ Var::Reach(..), _) => {
                self.reaches.insert(*var);
            }
            Formula::Atom(var @ Var::Field(field), _) => {
                self.all.insert(*var);
                let behind = self.behind.entry(*var).or_default();
                for reach in open {
                    let guards = matches!(reach, Var::Reach(base, _) if *base == field.base);
                    if guards && !behind.contains(reach) {
                        behind.push(*reach);
                    }
                }
            }
            Formula::Not(inner) => self.collect(inner, open),
            Formula::Any(parts) => parts.iter().for_each(|part| self.collect(part, open)),
            Formula::If(parts) => parts.iter().for_each(|part| self.collect(part, open)),
            Formula::All(parts) => {
                let here = parts.iter().filter_map(|part| match part {
                    Formula::Atom(var @ Var::Reach(..), _) => Some(*var),
                    _ => None,
                });
                let open: Vec<Var> = open.iter().copied().chain(here).collect();
                parts.iter().for_each(|part| self.collect(part, &open));
            }
        }
    }

    /// An order of all variables from an order of the fields: each reach comes before its fields.
    fn order(&self, fields: &[Var]) -> Vec<Var> {
        let behind = |field: &Var| self.behind.get(field).into_iter().flatten().copied();
        let fields = fields.iter().flat_map(|field| behind(field).chain([*field]));
        let mut order = vec![];
        // In rules over frames the transport header depends on the IP header.
        let ip = Var::Reach(Base::Net, IP_BYTES);
        order.extend(self.reaches.contains(&ip).then_some(ip));
        for var in fields.chain(self.reaches.iter().copied()) {
            if !order.contains(&var) {
                order.push(var);
            }
        }
        order
    }
}

/// The expected number of tests for a packet, if at every node half of the packets are spread evenly over the
/// arms and half over the values. Each arm adds a little, since code takes room.
pub fn cost(graph: &Graph) -> f64 {
    let mut costs = vec![0.0; graph.nodes.len()];
    let of = |costs: &[f64], to: To| if let To::Node(node) = to { costs[node] } else { 0.0 };
    let mut arms = 0;
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        let (count, all) = (node.arms.len() as f64, node.var.largest() as f64 + 1.0);
        arms += node.arms.len();
        let share = |first: u64, last: u64| 0.5 / count + 0.5 * ((last - first) as f64 + 1.0) / all;
        let expected: f64 = node.spans().map(|(first, last, to)| share(first, last) * of(&costs, to)).sum();
        costs[at] = 1.0 + count.log2() + expected;
    }
    of(&costs, graph.root) + arms as f64 * 0.02
}

/// The first-match decision over rules as a diagram, with variables in the best order found.
///
/// # Errors
/// When every order that was tried needs too many arms.
pub fn diagram(rules: &[(Formula, u32)], default: u32) -> Result<Graph, TooBig> {
    let mut known = Fields::default();
    rules.iter().for_each(|(formula, _)| known.collect(formula, &[]));
    let mut fields: Vec<Var> = known.all.iter().copied().collect();
    // A good start for firewalls: variables that most rules name, and those with few values, come first.
    let mut uses: BTreeMap<Var, usize> = BTreeMap::new();
    rules.iter().for_each(|(formula, _)| formula.atoms(&mut |var, _| *uses.entry(var).or_default() += 1));
    fields.sort_by_key(|var| (std::cmp::Reverse(uses.get(var).copied().unwrap_or(0)), var.largest()));
    let mut effort = 0;
    let mut best: Option<(f64, Graph)> = None;
    let mut attempt = |fields: &[Var], best: &mut Option<(f64, Graph)>| {
        let (graph, made) = build(rules, default, &known.order(fields));
        effort += made + 100;
        let better = graph.ok().map(|graph| (cost(&graph), graph));
        let improved = better.is_some_and(|(cost, graph)| {
            let improved = best.as_ref().is_none_or(|(least, _)| cost < *least - 1e-9);
            if improved {
                *best = Some((cost, graph));
            }
            improved
        });
        (improved, effort < MAX_EFFORT)
    };
    attempt(&fields, &mut best);
    // Each variable is tried at each position, as long as that helps and the effort allows.
    loop {
        let mut improved = false;
        for from in 0..fields.len() {
            for to in 0..fields.len() {
                if from == to {
                    continue;
                }
                let mut moved = fields.clone();
                let var = moved.remove(from);
                moved.insert(to, var);
                let (better, more) = attempt(&moved, &mut best);
                if better {
                    fields = moved;
                    improved = true;
                }
                if !more {
                    return best.map(|(_, graph)| graph).ok_or(TooBig);
                }
            }
        }
        if !improved {
            return best.map(|(_, graph)| graph).ok_or(TooBig);
        }
    }
}
