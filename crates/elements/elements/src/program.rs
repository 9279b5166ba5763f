//! Elements that are nothing but a program.

use element::value::cell_text;
use element::{Element, Handlers, Row, Transparent, Work};
use ir::{BlockId, Builder};
use shm::burst::Batch;

type SlowPath = Box<dyn FnMut(&mut Batch<'_>, &mut Work<'_>) + Send>;

/// An element without tables and tasks, whose handlers read and write the cells of its program.
pub(crate) struct Program {
    class: &'static str,
    handlers: &'static [Row<Program>],
    build: Box<dyn Fn(&mut Builder) + Send>,
    slow: SlowPath,
    reasons: &'static [&'static str],
    writes: bool,
}

impl Program {
    /// An element of a class, with the program that `build` writes.
    pub(crate) fn new(
        class: &'static str,
        handlers: &'static [Row<Program>],
        build: impl Fn(&mut Builder) + Send + 'static,
    ) -> Program {
        let no_slow_path =
            move |_: &mut Batch<'_>, _: &mut Work<'_>| debug_assert!(false, "{class} has no slow path");
        let (build, slow) = (Box::new(build), Box::new(no_slow_path));
        Program { class, handlers, build, slow, reasons: &[], writes: false }
    }

    /// Adds a slow path, its drop reasons, and whether it writes bytes of packets that came in.
    pub(crate) fn with_slow_path(
        self,
        reasons: &'static [&'static str],
        writes: bool,
        slow: impl FnMut(&mut Batch<'_>, &mut Work<'_>) + Send + 'static,
    ) -> Program {
        Program { slow: Box::new(slow), reasons, writes, ..self }
    }
}

impl Transparent for Program {
    fn build(&self, f: &mut Builder) {
        f.name(self.class);
        (self.build)(f);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        (self.slow)(batch, work);
    }
}

impl Element for Program {
    fn reasons(&self) -> &'static [&'static str] {
        self.reasons
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, self.handlers)
    }
}

/// The handlers of a program whose first cell counts the packets that it drops.
pub(crate) const DROPS: &[Row<Program>] = &[Row::sum("drops", |_, cells| cell_text(cells, 0))];

/// A block that counts a packet in a cell and emits it, or drops it for a reason where the output is not wired.
pub(crate) fn counted_block(f: &mut Builder, cell: u16, output: usize, reason: &str) -> BlockId {
    f.aside(|f| {
        f.add_to_cell(cell, 1);
        f.emit_or_drop(output, reason);
    })
}

/// The output of [`counted_block`] for packets that are dropped.
pub(crate) const NO_OUTPUT: usize = usize::MAX;
