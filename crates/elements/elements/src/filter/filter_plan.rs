//! The lowering of rules, and the program.
//!
//! A few rules become a decision diagram, or a chain of tests if the diagram would be too big. In a long
//! list, runs of rules over addresses, protocols and ports become tables. Other rules stay diagrams or chains
//! before or behind the tables, so that the first match wins.
//!
//! A rule's number is its decision: an output port, [`DENIED`] or [`NO_MATCH`].

use super::acl::{self, Acl, AclBuilder};
use super::chain::chain;
use super::diagram::diagram;
use super::emit::emit;
use super::expr::{Expr, Test};
use super::formula::{Formula, IP_BYTES, PORT_BYTES, unify};
use super::graph::{Graph, To};
use super::listing::{self, Clause};
use ir::expr::{load, record};
use ir::{BlockId, Builder, Value};
use packet::field::{self, Base};
use std::sync::Arc;
use table::acl::RuleList;
use table::acl::{AclError, Limits};

/// The decision of a rule that drops.
pub const DENIED: u32 = u32::MAX;
/// The decision where no rule matches.
pub const NO_MATCH: u32 = u32::MAX - 1;
/// The decision of a stage to ask the next one.
const NEXT: u32 = u32::MAX - 2;

/// Most rules that become one diagram or chain.
const SHORT: usize = 32;
/// Fewest rules that are worth a table.
const TABLE_RULES: usize = 16;
/// Most rules that are listed in Click's form: the work grows with the square of their tests.
const MOST_LISTED: usize = 256;
/// Most tables of one list: each costs a stage.
const MAX_TABLES: usize = 4;

/// The stages that rules were lowered to.
#[derive(Debug)]
pub struct FilterPlan {
    /// Run one after the other; the last one always decides.
    stages: Vec<Stage>,
    /// The decision for packets without an IP header, if the rules are about IP packets.
    headless: Option<u32>,
    rules: Rules,
}

/// What the stages were lowered from, for the handler `program`.
#[derive(Debug)]
enum Rules {
    Patterns(Vec<Vec<Clause>>),
    Ip(Vec<(Expr, u32)>),
    /// Too many to list.
    Many,
}

#[derive(Debug)]
enum Stage {
    Graph(Graph),
    Table(Arc<Acl>),
}

/// A range of a long list.
enum RuleGroup {
    Other(Vec<(Expr, u32)>),
    Table(AclBuilder),
}

/// The graph for rules: a diagram, or a chain if that would be too big.
pub(super) fn graph(mut rules: Vec<(Formula, u32)>, default: u32, ip: bool) -> Graph {
    unify(rules.iter_mut().map(|(formula, _)| formula), ip);
    let small = rules.len() <= SHORT;
    let diagram = small.then(|| diagram(&rules, default).ok()).flatten();
    diagram.unwrap_or_else(|| chain(&rules, default))
}

fn ip_graph(rules: &[(Expr, u32)], default: u32) -> Graph {
    graph(rules.iter().map(|(expr, decision)| (Formula::from(expr), *decision)).collect(), default, true)
}

/// Splits a list into runs for tables and the rules between them.
fn ranges(rules: &[(Expr, u32)]) -> Vec<RuleGroup> {
    let mut found: Vec<RuleGroup> = vec![];
    let other = |found: &mut Vec<RuleGroup>, rules: Vec<(Expr, u32)>| match found.last_mut() {
        Some(RuleGroup::Other(open)) => open.extend(rules),
        _ if rules.is_empty() => {}
        _ => found.push(RuleGroup::Other(rules)),
    };
    let close = |found: &mut Vec<RuleGroup>, builder: AclBuilder, run: &[(Expr, u32)]| {
        let tables = found.iter().filter(|range| matches!(range, RuleGroup::Table(_))).count();
        if run.len() >= TABLE_RULES && tables < MAX_TABLES {
            found.push(RuleGroup::Table(builder));
        } else {
            other(found, run.to_vec());
        }
    };
    // The first rule of the run.
    let (mut builder, mut first) = (AclBuilder::default(), 0);
    for (at, rule) in rules.iter().enumerate() {
        if builder.add(&rule.0, rule.1) {
            continue;
        }
        close(&mut found, std::mem::take(&mut builder), &rules[first..at]);
        first = at;
        // The rule may need bits that the previous run used up.
        if !builder.add(&rule.0, rule.1) {
            builder = AclBuilder::default();
            other(&mut found, vec![rule.clone()]);
            first = at + 1;
        }
    }
    close(&mut found, builder, &rules[first..]);
    found
}

impl FilterPlan {
    /// Lowers patterns of bytes, one for each output.
    pub fn of_patterns(patterns: Vec<Vec<Clause>>, formulas: Vec<Formula>) -> FilterPlan {
        let rules = formulas.into_iter().zip(0..).collect();
        let stages = vec![Stage::Graph(graph(rules, NO_MATCH, false))];
        FilterPlan { stages, headless: None, rules: Rules::Patterns(patterns) }
    }

    /// Lowers rules over IP packets. The program checks the header first; without one all tests fail.
    ///
    /// # Errors
    /// When a list does not fit into the limits.
    pub fn ip(rules: &[(Expr, u32)], limits: Limits) -> Result<FilterPlan, AclError> {
        let headless = rules.iter().find(|(expr, _)| expr.holds(&|_| false));
        let headless = Some(headless.map_or(NO_MATCH, |(_, decision)| *decision));
        let listed = if rules.len() <= MOST_LISTED { Rules::Ip(rules.to_vec()) } else { Rules::Many };
        // No packet passes a rule for all packets.
        let end = rules.iter().position(|(expr, _)| *expr == Expr::True);
        let default = end.and_then(|end| rules.get(end)).map_or(NO_MATCH, |(_, decision)| *decision);
        let rules = rules.get(..end.unwrap_or(rules.len())).unwrap_or(rules);
        if rules.len() <= SHORT {
            let stages = vec![Stage::Graph(ip_graph(rules, default))];
            return Ok(FilterPlan { stages, headless, rules: listed });
        }
        let mut stages: Vec<Stage> = vec![];
        for range in ranges(rules) {
            stages.push(match range {
                RuleGroup::Other(rules) => Stage::Graph(ip_graph(&rules, NEXT)),
                RuleGroup::Table(builder) => Stage::Table(Arc::new(builder.build(limits)?)),
            });
        }
        stages.push(Stage::Graph(Graph { nodes: vec![], root: To::Leaf(default) }));
        Ok(FilterPlan { stages, headless, rules: listed })
    }

    /// Whether any packet may get this decision.
    pub fn decides(&self, decision: u32) -> bool {
        self.stages.iter().any(|stage| match stage {
            Stage::Graph(graph) => graph.leaves().contains(&decision),
            Stage::Table(acl) => acl.decisions().any(|known| known == decision),
        })
    }

    /// The tables that the program looks up, in the order of their numbers.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Acl>> {
        self.stages.iter().filter_map(|stage| match stage {
            Stage::Graph(_) => None,
            Stage::Table(acl) => Some(acl),
        })
    }

    /// The first stage as a list of boxes, if it is a table of nothing but boxes.
    pub fn first_match(&self) -> Option<RuleList> {
        let drops = |decision: u32| decision == DENIED || decision == NO_MATCH;
        let (Some(Stage::Table(acl)), rest) = (self.stages.first(), self.stages.get(1..)?) else {
            return None;
        };
        let others_dropped = match rest {
            [Stage::Graph(Graph { root: To::Leaf(decision), .. })] => Some(drops(*decision)),
            _ => None,
        };
        let boxes = acl.boxes()?.map(|(five, decision)| (five, drops(decision))).collect();
        Some(RuleList { boxes, others_dropped })
    }

    /// Builds the program of an element.
    pub fn build(&self, class: &str, f: &mut Builder) {
        f.name(class);
        // The same for all rules, because other rules may replace these while packets pass.
        f.reason("no-match");
        if class == "IPFilter" {
            f.reason("denied");
        }
        let mut there = [0; 4];
        let headless = self.headless.filter(|headless| match self.stages.as_slice() {
            [Stage::Graph(only)] => only.root != To::Leaf(*headless),
            _ => true,
        });
        if let Some(headless) = headless {
            let headless = exit(f, headless);
            f.need(Base::Net, usize::from(IP_BYTES), headless);
            there[Base::Net as usize] = IP_BYTES;
        }
        let mut exits = Exits { known: vec![], next: f.here() };
        for (at, stage) in self.stages.iter().enumerate() {
            let last = at + 1 == self.stages.len();
            exits.next = if last { f.here() } else { f.block() };
            match stage {
                Stage::Graph(graph) => emit(f, graph, there, |f, decision| exits.block(f, decision)),
                Stage::Table(acl) => look_up(f, acl, there, &mut exits),
            }
            if !last {
                f.at(exits.next);
            }
        }
    }

    /// The rules as Click lists them, for the handler `program`; where it has no such list, the steps.
    pub fn list(&self) -> String {
        let listed = match &self.rules {
            Rules::Patterns(patterns) => listing::of_clauses(patterns),
            Rules::Ip(rules) => listing::of_ip(rules, |decision| matches!(decision, DENIED | NO_MATCH)),
            Rules::Many => None,
        };
        listed.unwrap_or_else(|| self.describe())
    }

    /// The steps, for the handler `steps`.
    pub fn describe(&self) -> String {
        let stages = self.stages.iter().map(|stage| match stage {
            Stage::Graph(graph) => graph.describe(decision_name),
            Stage::Table(acl) => {
                let (boxes, bytes) = acl.size();
                let decisions: Vec<String> = acl.decisions().map(decision_name).collect();
                let decisions = decisions.join(" or ");
                format!("table of {boxes} boxes, {bytes} bytes: {decisions}, else [next]")
            }
        });
        stages.collect::<Vec<_>>().join("\n")
    }
}

/// How a decision is written.
fn decision_name(decision: u32) -> String {
    match decision {
        DENIED => "[deny]".to_string(),
        NO_MATCH => "[X]".to_string(),
        NEXT => "[next]".to_string(),
        port => format!("[{port}]"),
    }
}

/// A new block that carries out a decision.
fn exit(f: &mut Builder, decision: u32) -> BlockId {
    f.aside(|f| match decision {
        DENIED => f.drop("denied"),
        NO_MATCH | NEXT => f.drop("no-match"),
        port => f.emit_or_drop(port as usize, "no-match"),
    })
}

/// The blocks of decisions, which all stages share.
struct Exits {
    known: Vec<(u32, BlockId)>,
    /// Where the next stage starts.
    next: BlockId,
}

impl Exits {
    fn block(&mut self, f: &mut Builder, decision: u32) -> BlockId {
        if decision == NEXT {
            return self.next;
        }
        let known = self.known.iter().find(|(known, _)| *known == decision);
        known.map(|(_, block)| *block).unwrap_or_else(|| {
            let block = exit(f, decision);
            self.known.push((decision, block));
            block
        })
    }
}

/// Ends the current block with a lookup and its decision.
fn look_up(f: &mut Builder, acl: &Acl, there: [u16; 4], exits: &mut Exits) {
    let addresses = f.eval(load(field::IP_PAIR));
    let mut rest = f.eval(load(field::IP_PROTO) << acl::PROTO_SHIFT);
    if acl.ports {
        let joined = f.block();
        let param = f.param(joined);
        let without = f.aside(|f| f.jump_with(joined, [rest | (1 << acl::NO_PORTS_BIT)]));
        f.leave_if(load(field::IP_FRAG), without);
        f.need(Base::Trans, usize::from(PORT_BYTES), without);
        f.jump_with(joined, [rest | load(field::L4_PORTS)]);
        f.at(joined);
        rest = param;
    }
    for (at, test) in acl.tests.iter().enumerate() {
        rest = find_out(f, *test, there, rest, 1 << (acl::TESTS_BIT + at as u64));
    }
    let table = f.table("rules", acl::KEY_WORDS, acl::RECORD_BYTES);
    let rule = f.lookup(table, &[addresses, rest], exits.next);
    if let Some(only) = acl.only_decision() {
        let to = exits.block(f, only);
        return f.jump(to);
    }
    let denied = exits.block(f, DENIED);
    f.emit_to(record(rule, 0, 4), denied);
}

/// Sets a bit of a number if a test holds; continues in a new block.
fn find_out(f: &mut Builder, test: Test, there: [u16; 4], rest: Value, bit: u64) -> Value {
    let rules = vec![(Formula::from(test), 1)];
    let joined = f.block();
    let param = f.param(joined);
    let set = f.eval(rest | bit);
    emit(f, &graph(rules, 0, true), there, |f, holds| {
        f.aside(|f| f.jump_with(joined, [if holds == 1 { set } else { rest }]))
    });
    f.at(joined);
    param
}
