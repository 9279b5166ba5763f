//! Elements that are nothing but a program.

use element::value::cell_text;
use element::{Element, Handlers, Row, Transparent, Work};
use ir::{BlockId, Builder};
use shm::burst::Batch;

type Build<S> = Box<dyn Fn(&S, &mut Builder) + Send>;
type SlowPath<S> = Box<dyn FnMut(&mut S, &mut Batch<'_>, &mut Work<'_>) + Send>;

/// An element without tables and tasks. Its handlers read and write its state and the cells of its program.
pub(crate) struct Program<S: 'static = ()> {
    class: &'static str,
    pub(crate) state: S,
    handlers: &'static [Row<S>],
    build: Build<S>,
    slow: SlowPath<S>,
    reasons: &'static [&'static str],
    writes: bool,
}

impl Program {
    /// An element of a class without state beside the cells of the program, which `build` writes.
    pub(crate) fn new(
        class: &'static str,
        handlers: &'static [Row<()>],
        build: impl Fn(&mut Builder) + Send + 'static,
    ) -> Program {
        Program::with_state(class, handlers, (), move |(), f| build(f))
    }
}

impl<S> Program<S> {
    /// An element of a class, with a state and the program that `build` writes for it.
    pub(crate) fn with_state(
        class: &'static str,
        handlers: &'static [Row<S>],
        state: S,
        build: impl Fn(&S, &mut Builder) + Send + 'static,
    ) -> Program<S> {
        let no_slow_path = move |_: &mut S, _: &mut Batch<'_>, _: &mut Work<'_>| {
            debug_assert!(false, "{class} has no slow path");
        };
        let (build, slow) = (Box::new(build), Box::new(no_slow_path));
        Program { class, state, handlers, build, slow, reasons: &[], writes: false }
    }

    /// Adds a slow path, its drop reasons, and whether it writes bytes of packets that came in.
    pub(crate) fn with_slow_path(
        self,
        reasons: &'static [&'static str],
        writes: bool,
        slow: impl FnMut(&mut S, &mut Batch<'_>, &mut Work<'_>) + Send + 'static,
    ) -> Program<S> {
        Program { slow: Box::new(slow), reasons, writes, ..self }
    }
}

impl<S: Send> Transparent for Program<S> {
    fn build(&self, f: &mut Builder) {
        f.name(self.class);
        (self.build)(&self.state, f);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        (self.slow)(&mut self.state, batch, work);
    }
}

impl<S: Send> Element for Program<S> {
    fn reasons(&self) -> &'static [&'static str] {
        self.reasons
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(&mut self.state, self.handlers)
    }
}

/// The handlers of a program whose first cell counts the packets that it drops.
pub(crate) const DROPS: &[Row<()>] = &[Row::sum("drops", |_, cells| cell_text(cells, 0))];

/// A block that counts a packet in a cell and ends as `end` says.
pub(crate) fn counted_block(f: &mut Builder, cell: u16, end: impl FnOnce(&mut Builder)) -> BlockId {
    f.aside(|f| {
        f.add_to_cell(cell, 1);
        end(f);
    })
}

/// An output that no element has: packets to it are dropped.
pub(crate) const NO_OUTPUT: usize = usize::MAX;
