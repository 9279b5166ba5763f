//! From rules to a program: which lowering they get, and the program itself.
//!
//! Few rules become a decision diagram, or a chain where the diagram would be too big. Rules are
//! numbered by what they decide: an output port, [`DENIED`] or [`NO_MATCH`].

use super::chain::chain;
use super::diagram::diagram;
use super::emit::emit;
use super::expr::{Expr, Headers};
use super::formula::{Formula, IP_BYTES, unify};
use super::graph::{Graph, To};
use ir::verify::VerifyError;
use ir::{BlockId, Builder, Program};
use packet::field::Base;

/// The decision of a rule that drops.
pub const DENIED: u32 = u32::MAX;
/// The decision where no rule matches.
pub const NO_MATCH: u32 = u32::MAX - 1;

/// What a rule says, and what it decides.
pub type Rule = (Formula, u32);

/// Rules made ready.
#[derive(Debug)]
pub struct Plan {
    graph: Graph,
    /// What becomes of packets without an IP header, where the rules are about IP packets.
    headless: Option<u32>,
}

/// Most rules that are tried as one diagram.
const DIAGRAM_RULES: usize = 64;

impl Plan {
    /// Makes rules over any packets ready.
    pub fn new(rules: Vec<Rule>) -> Plan {
        Plan::of(rules, None)
    }

    /// Makes rules over IP packets ready. The header is made sure of first; where there is none, all
    /// tests fail.
    pub fn ip(rules: &[(Expr, u32)]) -> Plan {
        let headless = rules.iter().find(|(expr, _)| expr.matches(&Headers::default()));
        let headless = headless.map_or(NO_MATCH, |(_, decision)| *decision);
        let rules = rules.iter().map(|(expr, decision)| (Formula::from(expr), *decision)).collect();
        Plan::of(rules, Some(headless))
    }

    fn of(mut rules: Vec<Rule>, headless: Option<u32>) -> Plan {
        unify(rules.iter_mut().map(|(formula, _)| formula), headless.is_some());
        let small = rules.len() <= DIAGRAM_RULES;
        let graph = small.then(|| diagram(&rules, NO_MATCH).ok()).flatten();
        let graph = graph.unwrap_or_else(|| chain(&rules, NO_MATCH));
        Plan { graph, headless }
    }

    /// Whether some packet may get this decision.
    pub fn decides(&self, decision: u32) -> bool {
        self.graph.leaves().contains(&decision)
    }

    /// The program of an element.
    ///
    /// # Errors
    /// What the verifier found.
    pub fn program(&self, name: &str, outputs: usize) -> Result<Program, VerifyError> {
        let mut f = Builder::new(name, outputs);
        let mut there = [0; 4];
        let headless = self.headless.filter(|headless| self.graph.root != To::Leaf(*headless));
        if let Some(headless) = headless {
            let headless = exit(&mut f, headless);
            f.need(Base::Net, usize::from(IP_BYTES), headless);
            there[Base::Net as usize] = IP_BYTES;
        }
        emit(&mut f, &self.graph, there, exit);
        f.finish()
    }

    /// The steps, for the `program` handler.
    pub fn describe(&self) -> String {
        self.graph.describe(decision_name)
    }
}

/// How a decision is written.
fn decision_name(decision: u32) -> String {
    match decision {
        DENIED => "[deny]".to_string(),
        NO_MATCH => "[X]".to_string(),
        port => format!("[{port}]"),
    }
}

/// A new block that does what was decided.
fn exit(f: &mut Builder, decision: u32) -> BlockId {
    let (block, here) = (f.block(), f.here());
    f.at(block);
    match decision {
        DENIED => f.drop("denied"),
        NO_MATCH => f.drop("no-match"),
        port => f.emit_or_drop(port as usize, "no-match"),
    }
    f.at(here);
    block
}
