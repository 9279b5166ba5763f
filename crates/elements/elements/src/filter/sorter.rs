//! The element behind the three classes: it runs a [`FilterPlan`].

use super::acl::AclTable;
use super::expr::Expr;
use super::filter_plan::FilterPlan;
use diag::Spanned;
use element::handler::PATTERN;
use element::{Configure, Element, Row, Scope, Transparent};
use ir::{Builder, Table};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use table::acl::RuleList;
use table::acl::{AclError, Limits};

/// An element that sorts packets by rules.
pub struct Sorter {
    class: &'static str,
    plan: Arc<FilterPlan>,
    tables: Vec<AclTable>,
    /// The text of each output's pattern; none where rules are no patterns.
    patterns: Vec<String>,
}

impl Sorter {
    /// An element of a class.
    pub fn new(class: &'static str, plan: Arc<FilterPlan>) -> Sorter {
        let tables = plan.tables().map(|acl| AclTable::new(acl.clone())).collect();
        Sorter { class, plan, tables, patterns: vec![] }
    }

    /// An element with an output for each pattern; warns of patterns that no packet gets to.
    pub fn of_patterns(
        cx: &mut Configure<'_>,
        class: &'static str,
        plan: Arc<FilterPlan>,
        patterns: &[Spanned],
    ) -> Sorter {
        for (output, text) in patterns.iter().enumerate() {
            if !plan.decides(output as u32) {
                cx.diags
                    .warning(text.span, "no packet matches this pattern")
                    .help("it contradicts itself, or patterns before it match all that it does");
            }
        }
        let patterns = patterns.iter().map(|text| text.text.clone()).collect();
        Sorter { patterns, ..Sorter::new(class, plan) }
    }
}

/// The plan of rules over IP packets, which the elements of all workers share. Records an error if the rules
/// do not fit into the limits.
pub fn ip_plan(cx: &mut Configure<'_>, rules: &[(Expr, u32)], limits: Limits) -> Option<Arc<FilterPlan>> {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    (limits.max_bytes, limits.max_build_ms).hash(&mut hasher);
    // A configuration that replaces this one may have other rules under the same name.
    let key = format!("{} {:016x}", cx.name, hasher.finish());
    let made = cx.shared(Scope::AllWorkers, &key, || FilterPlan::ip(rules, limits).map(Arc::new));
    let made = made.unwrap_or_else(|| Arc::new(FilterPlan::ip(rules, limits).map(Arc::new)));
    match &*made {
        Ok(plan) => Some(plan.clone()),
        Err(AclError::OutOfBytes { rules, needed, limit }) => {
            let fit = (*rules as u64 * *limit as u64 / (*needed as u64).max(1)).min(*rules as u64);
            let (needed, limit) = (needed.div_ceil(1 << 20), limit >> 20);
            let message = format!(
                "{rules} boxes of rules take {needed} MiB at least, more than {limit}: about {fit} boxes fit"
            );
            cx.error(cx.span, message)
                .help(format!("write `TABLE_MEMORY {needed}` among an IPFilter's arguments"));
            None
        }
        Err(error) => {
            cx.error(cx.span, error.to_string());
            None
        }
    }
}

impl Transparent for Sorter {
    fn build(&self, f: &mut Builder) {
        self.plan.build(self.class, f);
    }

    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.tables.get_mut(index).map(|table| -> &mut dyn Table { table })
    }

    fn first_match(&self) -> Option<RuleList> {
        self.plan.first_match()
    }
}

impl Element for Sorter {
    element::facts!(handlers: HANDLERS);
}

const HANDLERS: &[Row<Sorter>] = &[
    Row::read("program", |sorter, _| Some(sorter.plan.list())),
    Row::read("steps", |sorter, _| Some(sorter.plan.describe())),
    // The host writes them: it makes a new element, as for `config`.
    Row::numbered(
        PATTERN,
        |sorter| sorter.patterns.len(),
        |sorter, number| sorter.patterns.get(number).cloned(),
        |_, _, _, _| Err("patterns cannot be exchanged here".into()),
    ),
];
