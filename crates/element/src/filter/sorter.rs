//! The element behind the three classes: it runs a [`Plan`].

use super::plan::Plan;
use crate::configure::Shape;
use crate::element::Element;
use crate::handler::Handler;
use ir::Program;
use ir::verify::VerifyError;

/// An element that sorts packets by rules.
pub struct Sorter {
    /// Its class.
    pub class: &'static str,
    /// The rules.
    pub plan: Plan,
}

impl Element for Sorter {
    fn lower(&self, shape: Shape) -> Option<Result<Program, VerifyError>> {
        Some(self.plan.program(self.class, shape.outputs))
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("program")] }
    }

    fn read(&self, handler: &str, _cells: &[u64]) -> Option<String> {
        (handler == "program").then(|| self.plan.describe())
    }
}
