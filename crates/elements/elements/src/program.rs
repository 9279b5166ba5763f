//! Elements that are nothing but a program.

use element::{Element, Handlers, Row, Transparent};
use ir::{BlockId, Builder};

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

/// A block that counts a packet in a cell and emits it, or drops it for a reason where the output is not wired.
pub(crate) fn counted_block(f: &mut Builder, cell: u16, output: usize, reason: &str) -> BlockId {
    f.aside(|f| {
        f.add_to_cell(cell, 1);
        f.emit_or_drop(output, reason);
    })
}

/// The output of [`counted_block`] for packets that are dropped.
pub(crate) const NO_OUTPUT: usize = usize::MAX;
