//! The traits of elements.

use crate::configure::Shape;
use crate::handler::Handlers;
use crate::steering::FlowSteering;
use crate::work::Work;
use ir::verify::VerifyError;
use ir::{Builder, Table, Tables, Verified};
use shm::burst::{Batch, Vector};
use std::ops::{Deref, DerefMut};
use table::acl::RuleList;

/// The result of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It moved packets; call again soon.
    Worked,
    /// There was nothing to do.
    Idle,
    /// There will never be anything to do again.
    Finished,
}

/// An element of one worker.
///
/// [`Transparent`] or [`Opaque`] processes packets, and [`Task`] works without being called with packets. This trait has
/// what every element may have: handlers, timers, a start and a stop.
#[expect(unused_variables, reason = "defaults ignore their arguments")]
pub trait Element: Send {
    /// Its task, if it has one.
    fn task(&mut self) -> Option<&mut dyn Task> {
        None
    }

    /// Names of the reasons that [`Batch::drop`] and [`Work::drop`] count. A transparent element's slow paths
    /// use them beside the reasons of its program.
    fn reasons(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether its Rust code may change bytes of packets. Packets that others read meanwhile are copied
    /// before an element that does.
    fn writes(&self) -> bool {
        true
    }

    /// Whether it prints lines about packets ([`Work::print_about`]). They are printed in the order of the packets, as
    /// if these came one by one, whichever elements print them.
    fn prints(&self) -> bool {
        false
    }

    /// Gets, before the first packet, the name of an element downstream that may change bytes of its packets,
    /// if there is one.
    fn note_writer(&mut self, writer: Option<&str>) {}

    /// Answers a call of a handler that it does not list: a read, or a write of this value. `None` if it answers none,
    /// as all elements do but scripts that stand for handlers.
    fn answer_call(
        &mut self,
        handler: &str,
        value: Option<&str>,
        work: &mut Work<'_>,
    ) -> Option<Result<String, String>> {
        None
    }

    /// Called before the first packet.
    fn start(&mut self, work: &mut Work<'_>) {}

    /// Called at the time that the element set with [`Work::fire_at`].
    fn fire(&mut self, work: &mut Work<'_>) {}

    /// Housekeeping between bursts: ageing, growth. Does a bounded amount of work.
    fn tick(&mut self, now_ns: u64) {}

    /// The same, behind [`Element::tick`], with the cells of its program: what a program counts may be looked
    /// at here, so that it need not be for each packet.
    fn tick_cells(&mut self, cells: &[u64], now_ns: u64) {}

    /// Called after the last packet: drops the packets that it holds, closes files.
    fn stop(&mut self, work: &mut Work<'_>) {}

    /// Whether packets that it holds wait for an event that will come within a bounded time: a run does not
    /// end before. Called when nothing else is left to do.
    fn awaits(&self) -> bool {
        false
    }

    /// Whether packets may come from it that it does not count as held, because nobody has told it of them: an
    /// NF in a process of its own makes packets. A run waits for a moment for them before it ends. Called when
    /// nothing else is left to do.
    fn may_make(&self) -> bool {
        false
    }

    /// Whether a script of it runs or waits for a time: until then the run does not end with its sources, nor
    /// with another NF. Called between packets.
    fn holds_run(&self) -> bool {
        false
    }

    /// Whether a handler has its last value only when the element has stopped ([`Element::stop`]). All others that are
    /// wanted of a run's end are read before elements drop what they hold.
    fn counts_until_stopped(&self, handler: &str) -> bool {
        let _ = handler;
        false
    }

    /// Whether its task has something to do, or may get it by itself: for the handler `scheduled`.
    fn is_scheduled(&self) -> bool {
        true
    }

    /// Whether a pull from it may give packets, where `of_input` says so of what it pulls from: for the handler
    /// `scheduled` of what pulls from it. None if it gives what its inputs give.
    fn may_give(&self, of_input: &dyn Fn(usize) -> bool) -> Option<bool> {
        None
    }

    /// Whether it is a script that decides about the end of its NF: requests of other elements for that are
    /// its steps ([`Element::take_stop`]). The NF ends when it requests that itself.
    fn decides_end(&self) -> bool {
        false
    }

    /// Of such a script: called between bursts for each request of its NF's elements to end the run. When all
    /// sources have ended, it is called a last time.
    fn take_stop(&mut self, is_last: bool, work: &mut Work<'_>) {}

    /// Of such a script: called when the run ends before it has ended. Packets still wait in their elements.
    fn end_script(&mut self, work: &mut Work<'_>) {}

    /// The number of packets after which it will call a handler of another element. Shortly before, the host
    /// processes packets one by one: the packets behind the one that it names find what the handler changed.
    /// The program's state cells belong to the host, which passes them.
    fn packets_until_call(&self, cells: &[u64]) -> u64 {
        u64::MAX
    }

    /// Its handlers beside those of every element (`name`, `class`, `config`, …). The program's state cells
    /// belong to the host, which passes them.
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::default()
    }

    /// Called when another element of its worker has written a handler of it, as soon as that one returns to the worker
    /// or says so ([`Work::follow_writes`]): for what the handler asks for and needs the worker.
    fn follow_write(&mut self, work: &mut Work<'_>) {}

    /// New warnings for the user, for example of a capture that ends in the middle of a frame. Each is
    /// returned once.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The name and counters of its port, for the report of a run.
    fn port_stats(&self) -> Option<(String, port::PortStats)> {
        None
    }
}

/// States, inside of an `impl Element`, what is the same for all elements of the type: [`Element::reasons`],
/// [`Element::writes`], and the rows of [`Element::handlers`]; for example
/// `facts!(writes: false, reasons: REASONS, handlers: HANDLERS);`.
#[macro_export]
macro_rules! facts {
    (@reasons $names:expr) => {
        fn reasons(&self) -> &'static [&'static str] {
            $names
        }
    };
    (@writes $writes:expr) => {
        fn writes(&self) -> bool {
            $writes
        }
    };
    (@prints $prints:expr) => {
        fn prints(&self) -> bool {
            $prints
        }
    };
    (@handlers $rows:expr) => {
        fn handlers(&mut self) -> $crate::Handlers<'_> {
            $crate::Handlers::of(self, $rows)
        }
    };
    ($($fact:ident: $value:expr),+ $(,)?) => {
        $($crate::facts!(@$fact $value);)+
    };
}

/// Declares an element's drop reasons: `REASONS`, their names, and for each of them a constant with its place
/// there; for example `reasons!(TOO_LONG = "too-long", NO_ROOM = "no-room");`.
#[macro_export]
macro_rules! reasons {
    (@$place:expr;) => {};
    (@$place:expr; $first:ident $($rest:ident)*) => {
        pub(super) const $first: usize = $place;
        $crate::reasons!(@$place + 1; $($rest)*);
    };
    ($($constant:ident = $name:literal),+ $(,)?) => {
        pub(super) const REASONS: &[&str] = &[$($name),+];
        $crate::reasons!(@0; $($constant)+);
    };
}

/// An element with a program: the host runs it as machine code or by the evaluator, alone or fused with
/// others.
#[expect(unused_variables, reason = "defaults ignore their arguments")]
pub trait Transparent: Element {
    /// Builds and names the program.
    fn build(&self, f: &mut Builder);

    /// The table with that number in the program's declarations.
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        None
    }

    /// The outputs by which packets of an input usually leave; `None` if its program says all. Packets that
    /// leave by another output do the same, but elements process them one by one from there on.
    fn usual_outputs(&self, input: usize) -> Option<Vec<usize>> {
        None
    }

    /// Its list of rules, if a switch can apply it instead.
    fn first_match(&self) -> Option<RuleList> {
        None
    }

    /// Whether its cells and its packets are the same in whatever order the packets of a burst come, though the
    /// program reads what it wrote to cells.
    fn ignores_order(&self) -> bool {
        false
    }

    /// Processes packets that the program sent to slow path `path`.
    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {}
}

/// An element in Rust, which the compiler of programs does not see. Its class's processing code states
/// whether it pushes or pulls.
#[expect(unused_variables, reason = "defaults ignore their arguments")]
pub trait Opaque: Element {
    /// Processes packets from an input.
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {}

    /// Puts up to `most` packets for an output into a vector, and returns their number.
    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        0
    }

    /// Whether it answers pulls itself ([`Opaque::pull`]) where its output is pulled and the class leaves open whether
    /// it is. Other elements are run over the packets that are pulled through their first input.
    fn answers_pull(&self) -> bool {
        false
    }

    /// The input from which packets are always pulled through an output, and left as they are. Whoever pulls from
    /// that output is wired to what feeds the input: the element itself may be in the middle of a pull then.
    fn pulls_from(&self, output: usize) -> Option<usize> {
        None
    }

    /// Of a queue: whether so many packets, pushed at once, may pass it without waiting in it. The host asks
    /// before the first packet and before each burst; what pulls from the queue is asked, too
    /// ([`Task::takes_at_once`]).
    ///
    /// # Errors
    /// Why they have to wait, as the end of a sentence about the queue.
    fn lets_pass(&self, packets: usize) -> Result<(), &'static str> {
        Err("keeps its packets")
    }

    /// Builds the program of what it does with packets that pass a queue: as the queue, or as the element
    /// that pulls from it. Returns whether it has one.
    fn build_passing(&self, f: &mut Builder) -> bool {
        false
    }
}

/// An element with a task: it receives, pulls or makes packets.
#[expect(unused_variables, reason = "defaults ignore their arguments")]
pub trait Task: Element {
    /// Does a piece of work; the host calls it again and again. Packets that it puts into the empty vector
    /// leave by output 0.
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress;

    /// Whether it takes so many packets at once from the queue in front of it, whenever there are any. Then
    /// the host may push packets into it that pass the queue. It asks before the first packet and before each
    /// burst.
    ///
    /// # Errors
    /// Why they have to wait, as the end of a sentence about the element.
    fn takes_at_once(&self, packets: usize) -> Result<(), &'static str> {
        Err("takes packets when it chooses to")
    }

    /// Says, before the first packet, that packets pass the queue in front of it. Those that are pushed and
    /// not taken yet are the element's: it must neither drop them, nor pull others before them.
    fn note_passing(&mut self) {}

    /// Whether it has work of its own although packets are pushed into it: completions return to it.
    fn works_alone(&self) -> bool {
        false
    }

    /// Whether its packets are as a port delivers them, from outside: the MAC header is the first byte, no other header is
    /// set and no annotation ([`packet::anno::UNSET`]).
    fn is_from_port(&self) -> bool {
        false
    }

    /// The flow steering for its task's packets, if they may belong to other workers.
    fn steering(&self) -> Option<FlowSteering> {
        None
    }
}

/// A transparent or an opaque element.
pub enum BoxElement {
    /// An element with a program.
    Transparent(Box<dyn Transparent>),
    /// An element without one.
    Opaque(Box<dyn Opaque>),
}

impl BoxElement {
    /// Boxes a transparent element.
    pub fn transparent(element: impl Transparent + 'static) -> BoxElement {
        BoxElement::Transparent(Box::new(element))
    }

    /// Boxes an opaque element.
    pub fn opaque(element: impl Opaque + 'static) -> BoxElement {
        BoxElement::Opaque(Box::new(element))
    }

    /// The element if it is transparent.
    #[inline(always)]
    pub fn as_transparent(&mut self) -> Option<&mut dyn Transparent> {
        if let BoxElement::Transparent(element) = self { Some(element.as_mut()) } else { None }
    }

    /// The element if it is opaque.
    #[inline(always)]
    pub fn as_opaque(&mut self) -> Option<&mut dyn Opaque> {
        if let BoxElement::Opaque(element) = self { Some(element.as_mut()) } else { None }
    }

    /// The program of a transparent element with these ports.
    pub fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let BoxElement::Transparent(element) = self else { return None };
        let mut f = Builder::new("", shape.outputs);
        element.build(&mut f);
        Some(f.finish())
    }

    /// The program for packets that pass a queue ([`Opaque::build_passing`]) of an opaque element with these
    /// ports.
    pub fn lower_passing(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let BoxElement::Opaque(element) = self else { return None };
        let mut f = Builder::new("", shape.outputs);
        element.build_passing(&mut f).then(|| f.finish())
    }

    /// [`Transparent::usual_outputs`].
    pub fn usual_outputs(&self, input: usize) -> Option<Vec<usize>> {
        if let BoxElement::Transparent(element) = self { element.usual_outputs(input) } else { None }
    }

    /// [`Transparent::ignores_order`].
    pub fn ignores_order(&self) -> bool {
        if let BoxElement::Transparent(element) = self { element.ignores_order() } else { false }
    }

    /// [`Transparent::first_match`].
    pub fn first_match(&self) -> Option<RuleList> {
        if let BoxElement::Transparent(element) = self { element.first_match() } else { None }
    }
}

impl Tables for BoxElement {
    #[inline(always)]
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.as_transparent()?.table(index)
    }
}

impl Deref for BoxElement {
    type Target = dyn Element;

    #[inline(always)]
    fn deref(&self) -> &(dyn Element + 'static) {
        match self {
            BoxElement::Transparent(element) => element.as_ref(),
            BoxElement::Opaque(element) => element.as_ref(),
        }
    }
}

impl DerefMut for BoxElement {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut (dyn Element + 'static) {
        match self {
            BoxElement::Transparent(element) => element.as_mut(),
            BoxElement::Opaque(element) => element.as_mut(),
        }
    }
}
