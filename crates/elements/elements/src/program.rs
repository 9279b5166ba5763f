//! Elements that are nothing but a program.

use element::{Element, Handlers, Row, Transparent};
use ir::Builder;

/// An element without slow paths, tables and tasks, whose handlers read and write the cells of its program.
pub(crate) struct Program {
    class: &'static str,
    handlers: &'static [Row<Program>],
    build: Box<dyn Fn(&mut Builder) + Send>,
}

impl Program {
    /// An element of a class, with the program that `build` writes.
    pub(crate) fn new(
        class: &'static str,
        handlers: &'static [Row<Program>],
        build: impl Fn(&mut Builder) + Send + 'static,
    ) -> Program {
        Program { class, handlers, build: Box::new(build) }
    }
}

impl Transparent for Program {
    fn build(&self, f: &mut Builder) {
        f.name(self.class);
        (self.build)(f);
    }
}

impl Element for Program {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, self.handlers)
    }
}
