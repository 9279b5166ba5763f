//! The element behind the three classes: it runs a [`Plan`].

use super::acl::AclTable;
use super::expr::Expr;
use super::plan::Plan;
use crate::configure::{Configure, Scope, Shape};
use crate::element::Element;
use crate::handler::Handler;
use ir::verify::VerifyError;
use ir::{Program, Table};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// An element that sorts packets by rules.
pub struct Sorter {
    class: &'static str,
    plan: Arc<Plan>,
    tables: Vec<AclTable>,
}

impl Sorter {
    /// An element of a class.
    pub fn new(class: &'static str, plan: Arc<Plan>) -> Sorter {
        let tables = plan.tables().map(|acl| AclTable::new(acl.clone())).collect();
        Sorter { class, plan, tables }
    }
}

/// The plan of rules over IP packets; elements of all workers share it.
pub fn ip_plan(cx: &mut Configure<'_>, rules: &[(Expr, u32)]) -> Arc<Plan> {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    // Other rules under the same name, in a configuration that replaces this one, are another plan.
    let key = format!("{} {:016x}", cx.name, hasher.finish());
    let plan = cx.shared(Scope::AllWorkers, &key, || Plan::ip(rules));
    plan.unwrap_or_else(|| Arc::new(Plan::ip(rules)))
}

impl Element for Sorter {
    fn lower(&self, shape: Shape) -> Option<Result<Program, VerifyError>> {
        Some(self.plan.program(self.class, shape.outputs))
    }

    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.tables.get_mut(index).map(|table| -> &mut dyn Table { table })
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("program")] }
    }

    fn read(&self, handler: &str, _cells: &[u64]) -> Option<String> {
        (handler == "program").then(|| self.plan.describe())
    }
}
